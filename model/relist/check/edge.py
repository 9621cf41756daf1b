"""One step of a machine as a value, and what can be read off that of a catalog."""

from typing import NamedTuple

from relist import inputs as i
from relist.effects import (
    AbandonWalk,
    CatalogEffect,
    DoubtList,
    LinkEffect,
    ListenEffect,
    Publish,
    RequestPage,
    Withdraw,
)
from relist.policy import Policy
from relist.values import Catalog, Doubt, Items, Link, LinkPhase, Listen


class Edge(NamedTuple):
    """What a catalog was, what it heard, what it became and asked for."""

    before: Catalog
    heard: i.CatalogInput
    after: Catalog
    effects: tuple[CatalogEffect, ...]
    policy: Policy

    @property
    def answered(self) -> bool:
        """Whether the answer to the one outstanding request was heard."""
        walk, heard = self.before.walk, self.heard
        if not isinstance(heard, i.PageArrived | i.PageFailed):
            return False
        return walk is not None and heard.serial == walk.serial

    @property
    def late(self) -> bool:
        """Whether the answer to anything else was heard."""
        return isinstance(self.heard, i.PageArrived | i.PageFailed) and not self.answered

    @property
    def requests(self) -> tuple[RequestPage, ...]:
        """The pages asked for."""
        return tuple(told for told in self.effects if isinstance(told, RequestPage))

    @property
    def begins(self) -> bool:
        """Whether a walk begins."""
        return any(told.cursor is None for told in self.requests)

    @property
    def abandoned(self) -> tuple[int, ...]:
        """The serials of the requests that were given up."""
        return tuple(told.serial for told in self.effects if isinstance(told, AbandonWalk))

    @property
    def published(self) -> Publish | None:
        """The list that readers see from now on."""
        return next((told for told in self.effects if isinstance(told, Publish)), None)

    @property
    def withdrawn(self) -> bool:
        """Whether the list went away."""
        return any(isinstance(told, Withdraw) for told in self.effects)

    @property
    def doubted(self) -> tuple[Doubt, ...]:
        """The doubts that were announced."""
        return tuple(told.doubt for told in self.effects if isinstance(told, DoubtList))

    @property
    def whole(self) -> tuple[Items, ...] | None:
        """All pages of the walk that ended complete in this step; None when none did."""
        walk, heard = self.before.walk, self.heard
        if walk is None or not self.answered or not isinstance(heard, i.PageArrived):
            return None
        return None if heard.next_cursor is not None else (*walk.pages, heard.items)


ASKING = (LinkPhase.PROBING, LinkPhase.HANDSHAKING)
UP = (LinkPhase.OPENING, *ASKING, LinkPhase.LIVE)


class LinkEdge(NamedTuple):
    """One step of the link chart."""

    before: Link
    heard: i.LinkInput
    after: Link
    effects: tuple[LinkEffect, ...]
    policy: Policy


class ListenEdge(NamedTuple):
    """One step of the listen chart."""

    before: Listen
    heard: i.ListenInput
    after: Listen
    effects: tuple[ListenEffect, ...]
    policy: Policy
