"""What a server really has of each kind, and every page of it that it ever served."""

from collections.abc import Iterator

from attrs import frozen

from relist.values import Kind

Entries = frozenset[tuple[str, str]]
"""Key and text of each entry; the text names kind, revision and owner."""

SHARED = "all"

KEYS = {
    Kind.TOOLS: "tool{}",
    Kind.PROMPTS: "prompt{}",
    Kind.RESOURCES: "x://resource{}",
    Kind.TEMPLATES: "x://template{}/{{id}}",
}


class DeadCursor(Exception):
    """The list has changed since the cursor was given out."""


@frozen
class Page:
    """A page as it was served: on which link, after which cursor, and with which next one."""

    link: int
    kind: Kind
    cursor: str | None
    entries: tuple[tuple[str, str], ...]
    next_cursor: str | None


class Truth:
    """Four lists that are replaced as a whole. Two pages never share a cursor.

    ``strict``: a cursor dies with the list it was made for; else it goes on at its offset.
    ``owner``: whose list it is; ``shared``: everybody has the same one.
    """

    def __init__(self, page_size: int, *, strict: bool, shared: bool) -> None:
        self.page_size = page_size
        self.strict = strict
        self.shared = shared
        self.owner = ""
        self.served: list[Page] = []
        self._revisions = dict.fromkeys(Kind, 0)
        self._cursors: dict[str, tuple[int, int]] = {}

    def change(self, kind: Kind) -> None:
        """Replace the list: other entries, or fewer, or more."""
        self._revisions[kind] += 1

    def revision(self, kind: Kind) -> int:
        """How often the list was replaced."""
        return self._revisions[kind]

    def entries(self, kind: Kind) -> list[tuple[str, str]]:
        """The list at this moment: none to four entries.

        Each change also moves the old ones on, so that a walk across it may meet a key twice.
        """
        revision = self._revisions[kind]
        text = f"{kind.value} {revision} {SHARED if self.shared else self.owner}"
        numbers = [(n - revision) % 7 for n in range((3 + 2 * revision) % 5)]
        return [(KEYS[kind].format(number), text) for number in numbers]

    def serve(self, link: int, kind: Kind, cursor: str | None) -> Page:
        """One page, remembered. Raises DeadCursor."""
        now = self._revisions[kind]
        revision, start = (now, 0) if cursor is None else self._cursors[cursor]
        if self.strict and revision != now:
            raise DeadCursor(cursor)
        entries, end = self.entries(kind), start + self.page_size
        following = f"c{len(self.served)}" if end < len(entries) else None
        if following is not None:
            self._cursors[following] = (now, end)
        page = Page(link, kind, cursor, tuple(entries[start:end]), following)
        self.served.append(page)
        return page

    def walks(self, link: int, kind: Kind) -> Iterator[tuple[int, list[tuple[str, str]]]]:
        """Each complete walk on this link: where its first page stands in ``served``, its entries.

        In the order of their last pages. What goes on from a page of another link is no walk.
        """
        begun: dict[str, tuple[int, list[tuple[str, str]]]] = {}
        for place, page in enumerate(self.served):
            if (page.link, page.kind) != (link, kind):
                continue
            start = (place, []) if page.cursor is None else begun.get(page.cursor)
            if start is None:
                continue
            walk = (start[0], [*start[1], *page.entries])
            if page.next_cursor is None:
                yield walk
            else:
                begun[page.next_cursor] = walk
