"""The reference machine made to follow a client: its link and its channel for notices.

A client may do more than one thing where the law does one: probe or skip the probe, listen or not,
list when it likes. So nothing is done here by itself. What the client sends decides which of the
allowed things happened, and what the server sent is what the machine hears. No time passes: limits
and pauses are never reached, so only the order of events is looked at.
"""

from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen

from relist import inputs as i
from relist.check.history import Event
from relist.effects import Note
from relist.inputs import SessionInput
from relist.messages import read_discovery, read_failure, read_initialization
from relist.policy import Policy
from relist.session import Session, new_session, receive
from relist.values import (
    CHANNELS,
    KINDS,
    Capabilities,
    Channel,
    Era,
    Failure,
    Kind,
    Link,
    LinkPhase,
    ListenPhase,
    Wire,
)

_NEVER_MS = 10**15
_ANYTHING = Capabilities(frozenset(KINDS), frozenset(CHANNELS), True)
"""What a client takes a server for that it has not asked."""

POLICY = Policy(
    seed=b"replay",
    lazy=True,  # a walk begins when the client begins one
    gather_ms=0,
    spoiled_in_row_max=1,  # a client may show what it listed while something changed
    request_limit_ms=_NEVER_MS,
    walk_limit_ms=_NEVER_MS,
    pages_max=_NEVER_MS,  # where a client cuts an endless list is its choice
    items_max=_NEVER_MS,
    bytes_max=_NEVER_MS,
    discovery_lifetime_ms=None,
)
_MODERN = evolve(POLICY, legacy_versions=())
_LEGACY = evolve(POLICY, modern_versions=())
_UP = (LinkPhase.PROBING, LinkPhase.HANDSHAKING, LinkPhase.LIVE)

NOTHING = Event(-1, 0, "note")

Key = tuple[str, str]
"""A channel, and the id of a request on it."""


@frozen
class Asked:
    """A request about the link or the notices that has not been answered."""

    what: str
    serial: int
    seq: int


def name_of(value: object) -> str:
    """A short value, type included, as a key; all that may be long or nested has the same one."""
    return repr(value) if isinstance(value, str | int) else ""


def text_of(value: object) -> str:
    """A text, and the empty one for all else."""
    return value if isinstance(value, str) else ""


class Following:
    """One session that goes where the client goes. ``hear`` is all that changes it."""

    def __init__(self, wire: Wire) -> None:
        self.session: Session = new_session(wire)
        self.live_seq = -1
        """When the client came to be live on the link that it has."""
        self.offered: i.DiscoverAnswered | i.InitializeAnswered | None = None
        """What the server said last of itself."""
        self.shaken: i.InitializeAnswered | None = None
        """The answer to ``initialize``, until the client says that it is initialized."""
        self.asked: dict[Key, Asked] = {}
        self.unheard: Event | None = None
        """When the subscription ended that the client had, and has not renewed."""
        self._event = NOTHING

    @property
    def offers(self) -> frozenset[Kind]:
        """The kinds that the server has, as far as the client knows."""
        return self.link.capabilities.kinds

    @property
    def link(self) -> Link:
        """The link as it stands."""
        return self.session.link

    def hear(self, heard: SessionInput, policy: Policy = POLICY) -> None:
        """Let the machine hear this."""
        self.session, _ = receive(self.session, heard, policy)

    def at(self, event: Event) -> None:
        """What follows belongs to this event."""
        self._event = event

    # --- the link ---

    def lose(self, now_ms: int) -> None:
        """The transport is gone."""
        self.shaken = None
        self.asked = {}
        if self.session.listen.phase is ListenPhase.OPEN and self.link.era is Era.MODERN:
            self._missed()
        self.hear(i.TransportLost(self.link.epoch, now_ms))

    def _restart(self, now_ms: int, policy: Policy) -> None:
        """From wherever it is to the first request on a new link of this era."""
        self.shaken = None
        self.hear(i.CloseWanted(now_ms))
        self.hear(i.ConnectWanted(now_ms))
        self.hear(i.TransportOpened(self.link.epoch, now_ms), policy)

    def probed(self, key: Key, now_ms: int) -> None:
        """The client sent ``server/discover``."""
        link = self.link
        if link.phase is LinkPhase.LIVE and link.era is Era.MODERN:
            self.hear(i.TaskBegan(_NEVER_MS))  # it asks again what the server offers
        elif link.phase is not LinkPhase.PROBING:
            self._restart(now_ms, _MODERN)
        self.asked[key] = Asked("server/discover", self.link.serial, self._event.seq)

    def shook(self, key: Key, now_ms: int) -> str | None:
        """The client sent ``initialize``; why the machine would not have."""
        link, flying = self.link, any(one.what == "server/discover" for one in self.asked.values())
        if link.era is Era.MODERN and link.phase is LinkPhase.LIVE and self.offered is not None:
            return "initialize was sent to a server that has answered server/discover"
        if link.phase is LinkPhase.PROBING and link.retried and not flying:
            return (
                "initialize was sent to a server that has named versions to ask again with:"
                f" the machine would have sent server/discover at {link.offered}"
            )
        if link.phase is not LinkPhase.HANDSHAKING or self.shaken is not None:
            self._restart(now_ms, _LEGACY)
        self.asked[key] = Asked("initialize", self.link.serial, self._event.seq)
        return None

    def initialized(self, now_ms: int) -> None:
        """The client sent ``notifications/initialized``: now it may list."""
        if self.shaken is not None:
            self.offered, self.shaken = self.shaken, None
            self.hear(evolve(self.offered, now_ms=now_ms))
            self._came_live()

    def assume(self, now_ms: int) -> None:
        """The client goes on without asking what the server offers, or with what it knew of it."""
        known, modern = self.offered, not isinstance(self.offered, i.InitializeAnswered)
        self._restart(now_ms, _MODERN if modern else _LEGACY)
        serial = self.link.serial
        if known is None:
            versions = POLICY.modern_versions
            self.hear(i.DiscoverAnswered(serial, versions, _ANYTHING, now_ms))
        else:
            self.hear(evolve(known, serial=serial, now_ms=now_ms))
        self._came_live()

    def answered(self, key: Key, message: Mapping[str, Any], now_ms: int) -> None:
        """The server answered such a request."""
        asked = self.asked.pop(key)
        if "error" in message:
            self.failed(asked, read_failure(message["error"]), now_ms)
        elif asked.what == "initialize":
            heard = read_initialization(asked.serial, message.get("result"), now_ms).heard
            if isinstance(heard, i.InitializeAnswered):
                self.shaken = heard
            else:
                self.hear(heard)
        elif asked.what == "server/discover":
            found = read_discovery(asked.serial, message.get("result"), now_ms).heard
            if isinstance(found, i.DiscoverAnswered) and asked.serial == self.link.serial:
                self.offered = found
            self.hear(found)
            self._came_live()
        else:
            self._unsubscribed(asked, None, now_ms)

    def failed(self, asked: Asked, failure: Failure, now_ms: int) -> None:
        """Such a request failed."""
        if asked.what == "initialize":
            self.hear(i.InitializeFailed(asked.serial, failure, now_ms))
        elif asked.what == "server/discover":
            self.hear(i.DiscoverFailed(asked.serial, failure, now_ms))
        else:
            self._unsubscribed(asked, failure, now_ms)

    def broke(self, channel: str, failure: Failure, now_ms: int) -> None:
        """The channel is gone, and no answer to what was asked on it will come."""
        for key in [key for key in self.asked if key[0] == channel]:
            self.failed(self.asked.pop(key), failure, now_ms)

    def _came_live(self) -> None:
        if self.link.phase is LinkPhase.LIVE:
            self.live_seq = self._event.seq

    # --- notices ---

    def listened(self, key: Key) -> None:
        """The client asked for notices."""
        listen = self.session.listen
        if listen.phase in (ListenPhase.RESTING, ListenPhase.OPEN) and listen.due_at_ms is not None:
            self.hear(i.TimePassed(listen.due_at_ms))
        listen = self.session.listen
        self.unheard = None
        if all(one.what != "listen" for one in self.asked.values()):
            self.asked[key] = Asked("listen", listen.serial, self._event.seq)

    def hung_up(self, key: Key, now_ms: int) -> None:
        """The client cancelled a request: perhaps its subscription."""
        asked = self.asked.get(key)
        if asked is not None and asked.what == "listen":
            del self.asked[key]
            self._unsubscribed(asked, None, now_ms)

    def not_listening(self, now_ms: int) -> None:
        """The client does not wait for notices before it lists."""
        listen = self.session.listen
        if listen.phase is ListenPhase.ASKED:
            self.hear(i.PushEnded(listen.serial, None, now_ms))

    def stream_opened(self, now_ms: int) -> None:
        """A legacy stream of notices stands."""
        listen = self.session.listen
        if listen.phase in (ListenPhase.ASKED, ListenPhase.RESTING):
            self.hear(i.PushOpened(listen.serial, listen.topics, now_ms))

    def stream_ended(self, now_ms: int, failure: Failure | None = None) -> None:
        """The legacy stream of notices is gone, or was refused."""
        self.hear(i.PushEnded(self.session.listen.serial, failure, now_ms))

    def on_notice(self, about: Channel, serial: int | None) -> Session | None:
        """The session that has heard this notice; None where it does no more than to note it."""
        heard, effects = receive(self.session, i.NoticeHeard(about, serial, 0), POLICY)
        return None if any(isinstance(told, Note) for told in effects) else heard

    def serial_of(self, tag: object) -> int:
        """The machine's number of the subscription that a notice names; 0: none of it."""
        return next(
            (
                asked.serial
                for (_, wire_id), asked in self.asked.items()
                if asked.what == "listen" and wire_id == name_of(tag)
            ),
            0,
        )

    def end_subscription(self, tag: object, now_ms: int) -> None:
        """The server says that it sends no more on this subscription."""
        for key, asked in list(self.asked.items()):
            if asked.what == "listen" and key[1] == name_of(tag):
                del self.asked[key]
                self._unsubscribed(asked, None, now_ms)

    def _unsubscribed(self, asked: Asked, failure: Failure | None, now_ms: int) -> None:
        stood = self.session.listen.stream == asked.serial
        self.hear(i.PushEnded(asked.serial, failure, now_ms))
        if stood:
            self._missed()

    def _missed(self) -> None:
        """The subscription is over, and it was not the client that ended it."""
        if self._event.kind not in ("close", "in"):
            self.unheard = self._event


GONE = Failure("the connection broke")
