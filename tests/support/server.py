"""The server of a play: lists that change, pages, declared channels, who is told of a change."""

from functools import cache

from attrs import define, field, frozen

from relist import inputs as i
from relist.effects import RequestPage
from relist.values import (
    CHANNEL_OF,
    KINDS,
    Capabilities,
    Channel,
    Failure,
    Item,
    Items,
    Kind,
    Scope,
)

KEYS = ("a", "b", "c")
DEAD_CURSOR = Failure("error answer", code=-32602)
ENDLESS = 9  # more pages than any policy of a play allows


@frozen
class Listed:
    """The content of one kind: everything a client can learn of it."""

    version: int = 2
    endless: bool = False
    turned: bool = False  # the same entries in another order

    @cache  # noqa: B019 (few are ever made)
    def pages(self) -> tuple[Items, ...]:
        """One to three pages; an entry ``m`` wanders over them as versions go by."""
        count = 1 + self.version % 3
        pages: list[Items] = []
        for number in range(ENDLESS if self.endless else count):
            key = KEYS[number] if number < len(KEYS) else f"x{number}"
            entries: Items = (Item(key, f"{key}@{self.version}".encode()),)
            if number == (self.version // 2) % count:
                entries = (Item("m", b"m@0"), *entries)
            pages.append(entries)
        return tuple(page[::-1] for page in pages[::-1]) if self.turned else tuple(pages)

    @cache  # noqa: B019
    def items(self) -> frozenset[Item]:
        """All entries."""
        return frozenset(entry for page in self.pages() for entry in page)


def page_of(cursor: str | None) -> int:
    """Cursors are opaque to the client; here they are numbers, and the second is empty."""
    return 0 if cursor is None else 1 if cursor == "" else int(cursor)


def cursor_of(page: int) -> str:
    """The cursor of a page but the first. Rule: DISC-04: the empty string is one."""
    return "" if page == 1 else str(page)


@define
class Server:
    """Plays the peer. ``pushing`` are the channels it announces at the moment."""

    modern: bool
    declares_push: bool
    ttl_ms: int | None = None
    scope: Scope = Scope.PUBLIC
    lacks: Kind | None = None  # a kind that it does not declare
    listed: dict[Kind, Listed] = field(factory=lambda: dict.fromkeys(KINDS, Listed()))
    pushing: frozenset[Channel] = frozenset()
    subscription: int | None = None
    updates: int | None = None  # the subscription for single resources
    chatty: bool = False  # it notifies from its list handler, whether or not anything changed

    def capabilities(self) -> Capabilities:
        """All kinds but the one that this server does not have."""
        kinds = frozenset(kind for kind in KINDS if kind is not self.lacks)
        channels = frozenset(CHANNEL_OF[kind] for kind in kinds)
        pushes = self.declares_push
        return Capabilities(kinds, channels if pushes else frozenset(), subscribe=pushes)

    def answer(self, asked: RequestPage, now_ms: int) -> i.PageArrived | i.PageFailed:
        """The page as it is now, whatever it was when the walk began. ``now_ms``: of receipt."""
        pages, number = self.listed[asked.kind].pages(), page_of(asked.cursor)
        if number >= len(pages):
            return i.PageFailed(asked.kind, asked.serial, DEAD_CURSOR, now_ms)
        return i.PageArrived(
            asked.kind,
            asked.serial,
            pages[number],
            cursor_of(number + 1) if number + 1 < len(pages) else None,
            self.ttl_ms if self.modern else None,
            self.scope,
            now_ms,
        )

    def silence(self) -> None:
        """Nobody is told of changed lists any more."""
        self.pushing, self.subscription = frozenset(), None
