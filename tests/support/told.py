"""A core that is fed by hand, and what the fold says of each step."""

from typing import Any, TypeVar

from relist import effects as e
from relist import inputs as i
from relist.core import Relist
from relist.effects import Effect
from relist.inputs import SessionInput
from relist.session import Session
from relist.values import Capabilities, Channel, Failure, Kind, Scope, Wire
from relist_mcp.events import Event
from relist_mcp.fold import Seen, fold
from relist_mcp.loop import Fed
from support.one import MODERN, items, policy

EventT = TypeVar("EventT", bound=Event)
ONLY_TOOLS = Capabilities(frozenset({Kind.TOOLS}), frozenset({Channel.TOOLS}))
ALL = Capabilities(frozenset(Kind), frozenset(Channel))


class Teller:
    """``told``: all events so far. Pages answer the open walk, unless a serial is given."""

    def __init__(self, offer: Capabilities = ONLY_TOOLS, **rules: Any) -> None:
        self.core = Relist(Wire.PIPE, policy(**rules), "A")
        self.offer = offer
        self.now_ms = 1_000
        self.seen = Seen()
        self.told: list[Event] = []
        self.effects: tuple[Effect, ...] = ()

    @property
    def session(self) -> Session:
        """The state of the core."""
        return self.core.session

    def hear(self, heard: SessionInput) -> tuple[Event, ...]:
        """What happened when this was heard."""
        before = self.core.session
        self.core.receive(heard)
        self.effects = self.core.effects()
        fed = Fed(heard, before, self.core.session, self.effects)
        self.seen, told = fold(self.seen, fed)
        self.told += told
        return told

    def of(self, event: type[EventT]) -> list[EventT]:
        """All events of this class so far."""
        return [one for one in self.told if isinstance(one, event)]

    # --- what may happen --------------------------------------------------------------------------

    def link(self, *, push: bool = True) -> tuple[Event, ...]:
        """A modern link comes about; the last step is the acknowledgement, or there is none."""
        if not self.session.link.epoch:
            self.hear(i.ConnectWanted(self.now_ms))
        self.hear(i.TransportOpened(self.session.link.epoch, self.now_ms))
        serial = self.session.link.serial
        told = self.hear(i.DiscoverAnswered(serial, (MODERN,), self.offer, self.now_ms))
        return self.push() if push else told

    def push(self) -> tuple[Event, ...]:
        """The newest subscription is acknowledged."""
        serial = self.session.listen.serial
        return self.hear(i.PushOpened(serial, self.offer.channels, self.now_ms))

    def lose(self) -> tuple[Event, ...]:
        """The link is lost."""
        return self.hear(i.TransportLost(self.session.link.epoch, self.now_ms))

    def page(
        self,
        *texts: str,
        more: str | None = None,
        serial: int | None = None,
        kind: Kind = Kind.TOOLS,
        scope: Scope = Scope.PRIVATE,
    ) -> tuple[Event, ...]:
        """A page arrives."""
        serial = self.session.catalog(kind).serial if serial is None else serial
        listed = items(*texts)
        return self.hear(i.PageArrived(kind, serial, listed, more, None, scope, self.now_ms))

    def fail(self, failure: Failure) -> tuple[Event, ...]:
        """The request for a page of tools fails."""
        serial = self.session.catalog(Kind.TOOLS).serial
        return self.hear(i.PageFailed(Kind.TOOLS, serial, failure, self.now_ms))

    def notice(
        self, channel: Channel = Channel.TOOLS, serial: int | None = -1
    ) -> tuple[Event, ...]:
        """A notice arrives; -1: with the tag of the subscription that stands."""
        serial = self.session.listen.stream if serial == -1 else serial
        return self.hear(i.NoticeHeard(channel, serial, self.now_ms))

    def refresh(self) -> tuple[Event, ...]:
        """Somebody asks for a refresh of the tools."""
        return self.hear(i.RefreshWanted(Kind.TOOLS, self.now_ms))

    def wait(self, ms: int | None = None) -> tuple[Event, ...]:
        """Time passes: so much, or until the core wants to know of it."""
        due_ms = self.core.deadline_ms()
        assert ms is not None or due_ms is not None
        self.now_ms = self.now_ms + ms if ms is not None else max(self.now_ms, due_ms or 0)
        return self.hear(i.TimePassed(self.now_ms))

    def requests(self) -> list[e.RequestPage]:
        """The pages that the last step asked for."""
        return [effect for effect in self.effects if isinstance(effect, e.RequestPage)]
