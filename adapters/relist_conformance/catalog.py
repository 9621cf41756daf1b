"""The lists that the referee serves: pages, versions and cursors of the four kinds."""

from collections.abc import Mapping

from attrs import frozen

from relist.check.history import LIST_METHODS
from relist_conformance.script import ServerSetup
from relist_conformance.steps import Pages
from relist_conformance.wire import CAPABILITY


@frozen
class Page:
    """One page: its place in its version of the list, its items and the cursor of the next."""

    number: int
    items: tuple[str, ...]
    next_cursor: str | None


class Catalogs:
    """The current pages of each declared kind, and the pages that old cursors still lead to.

    A cursor stays valid and leads on in the version of the list it was minted for, so a walk sees
    one view. A cursor that the case names leads into the current version. Rule: EMIT-12.
    """

    def __init__(self, setup: ServerSetup) -> None:
        self._named = setup.cursors
        self._first: dict[str, Page] = {}
        self._by_cursor: dict[tuple[str, str], Page] = {}
        self._version = dict.fromkeys(CAPABILITY, 0)
        for kind, capability in CAPABILITY.items():
            if capability in setup.capabilities:
                self.change(kind, setup.pages.get(kind, ((),)))

    def serves(self, kind: str) -> bool:
        """Whether the kind was declared."""
        return kind in self._first

    def change(self, kind: str, pages: Pages) -> None:
        """Put new pages in force."""
        self._version[kind] += 1
        named = self._named.get(kind, ())
        cursors = [self._cursor(kind, number, named) for number in range(1, len(pages))]
        for number, items in enumerate(pages, start=1):
            following = cursors[number - 1] if number < len(pages) else None
            page = Page(number, items, following)
            if number == 1:
                self._first[kind] = page
            else:
                self._by_cursor[kind, cursors[number - 2]] = page

    def page(self, kind: str, cursor: str | None) -> Page | None:
        """The page a list request asks for; None for a cursor never given out."""
        return self._first.get(kind) if cursor is None else self._by_cursor.get((kind, cursor))

    def tools(self) -> tuple[str, ...]:
        """The names of all tools in force, in list order."""
        names: list[str] = []
        page = self._first.get("tools")
        while page is not None:
            names += [label.rpartition("@")[0] for label in page.items]
            page = self.page("tools", page.next_cursor) if page.next_cursor is not None else None
        return tuple(names)

    def _cursor(self, kind: str, after: int, named: tuple[str, ...]) -> str:
        if after <= len(named):
            return named[after - 1]
        return f"{kind}.{self._version[kind]}.{after + 1}"


KIND_OF_METHOD: Mapping[str, str] = {method: kind for kind, method in LIST_METHODS.items()}
"""Which kind a list request lists."""
