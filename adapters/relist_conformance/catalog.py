"""The lists that the referee serves: pages, versions and cursors of the four kinds."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from relist.check.history import LIST_METHODS
from relist_conformance.script import ServerSetup
from relist_conformance.steps import Pages
from relist_conformance.wire import CAPABILITY, item


@frozen
class Page:
    """One page: its place in its version of the list, its items and the cursor of the next."""

    number: int
    items: tuple[str, ...]
    next_cursor: str | None


class Catalogs:
    """The current pages of each declared kind, and the pages that old cursors still lead to; and
    what single items say.

    A cursor stays valid and leads on in the version of the list it was minted for, so a walk sees
    one view. A cursor that the case names leads into the current version. A principal without
    pages of its own sees those of nobody (""). Rule: EMIT-12.
    """

    def __init__(self, setup: ServerSetup) -> None:
        self._named = setup.cursors
        self._current: dict[tuple[str, str], Pages] = {}
        self._by_cursor: dict[tuple[str, str, str | None], Page] = {}
        self._version = dict.fromkeys(CAPABILITY, 0)
        self._contents: dict[tuple[str, str], str] = {}
        self.declare(setup.capabilities)
        for kind in CAPABILITY:
            self.change(kind, setup.pages.get(kind, ((),)))
        for principal, pages in setup.principals.items():
            for kind in pages:
                self.change(kind, pages[kind], principal)
        for principal, contents in setup.contents.items():
            self.fill(contents, principal)

    def declare(self, capabilities: Mapping[str, Any]) -> None:
        """Serve what these capabilities declare, and nothing else."""
        self._declared = {kind for kind, name in CAPABILITY.items() if name in capabilities}

    def serves(self, kind: str) -> bool:
        """Whether the kind was declared."""
        return kind in self._declared

    def change(self, kind: str, pages: Pages, principal: str = "") -> None:
        """Put new pages in force."""
        self._version[kind] += 1
        self._current[principal, kind] = pages
        named = self._named.get(kind, ())
        cursors = [self._cursor(kind, number, named) for number in range(1, len(pages))]
        for number, (items, asked, following) in enumerate(
            zip(pages, [None, *cursors], [*cursors, None], strict=True), start=1
        ):
            self._by_cursor[principal, kind, asked] = Page(number, items, following)

    def page(self, kind: str, cursor: str | None, principal: str = "") -> Page | None:
        """The page a list request asks for; None for a cursor never given out."""
        if not self.serves(kind):
            return None
        return self._by_cursor.get((self._view(kind, principal), kind, cursor))

    def fill(self, contents: Mapping[str, str], principal: str = "") -> None:
        """From now on these resources contain these texts, listed or not."""
        self._contents |= {(principal, uri): text for uri, text in contents.items()}

    def text(self, uri: str, principal: str = "") -> str | None:
        """What a resource contains: what was said of it, or its label; None where there is none."""
        for who in (principal, ""):
            if (who, uri) in self._contents:
                return self._contents[who, uri]
        labels = self._labels("resources", principal)
        return next((one for one in labels if item("resources", one)["uri"] == uri), None)

    def label(self, kind: str, name: str, principal: str = "") -> str | None:
        """The item of this name in force."""
        labels = self._labels(kind, principal)
        return next((one for one in labels if one.rpartition("@")[0] == name), None)

    def tools(self, principal: str = "") -> tuple[str, ...]:
        """The names of all tools in force, in list order."""
        return tuple(label.rpartition("@")[0] for label in self._labels("tools", principal))

    def _labels(self, kind: str, principal: str) -> tuple[str, ...]:
        return tuple(label for page in self.truth(principal).get(kind, ()) for label in page)

    def truth(self, principal: str = "") -> dict[str, Pages]:
        """What the declared kinds hold for this principal."""
        return {
            kind: self._current[self._view(kind, principal), kind]
            for kind in CAPABILITY
            if self.serves(kind)
        }

    def _view(self, kind: str, principal: str) -> str:
        return principal if (principal, kind) in self._current else ""

    def _cursor(self, kind: str, after: int, named: tuple[str, ...]) -> str:
        if after <= len(named):
            return named[after - 1]
        return f"{kind}.{self._version[kind]}.{after + 1}"


KIND_OF_METHOD: Mapping[str, str] = {method: kind for kind, method in LIST_METHODS.items()}
"""Which kind a list request lists."""
