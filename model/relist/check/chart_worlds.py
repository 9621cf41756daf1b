"""Worlds for the link chart and the listen chart, each alone with all that it can hear.

The server is not modelled: whatever a server, a transport or the caller could say is said in every
state, timely and late. So a promise found here holds for any server. In the calm world it answers
as a well-behaved one does.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from relist import inputs as i
from relist.check.edge import LinkEdge, ListenEdge
from relist.check.explore import Move
from relist.check.joined import LINK_ALWAYS, LISTEN_ALWAYS
from relist.check.normal import normal_link, normal_listen
from relist.check.rows import row_of
from relist.check.setting import LEGACY, MODERN, OTHER
from relist.machine import LINK_TABLE, LISTEN_TABLE, Table, step_link, step_listen
from relist.policy import Policy
from relist.values import (
    Capabilities,
    Carrier,
    Channel,
    Era,
    Failure,
    Kind,
    Link,
    LinkPhase,
    Listen,
    ListenPhase,
    Topic,
    Wire,
    new_link,
    new_listen,
)

_LATE = 9
POLICY = Policy(
    seed=b"\x00",
    modern_versions=(MODERN,),
    legacy_versions=(LEGACY,),
    backoff_base_ms=1,
    backoff_max_ms=2,
    retry_after_max_ms=3,
    jitter_percent=0,
    open_limit_ms=1,
    probe_limit_ms=1,
    handshake_limit_ms=1,
    ack_limit_ms=1,
    healthy_ms=2,
    discovery_gap_ms=1,
)
FAILURES: Mapping[str, Failure] = {
    "no answer": Failure("no answer", timed_out=True),
    "an error": Failure("error answer", code=-32603),
    "throttling": Failure("error answer", status=429, retry_after_ms=3),
    "no authorization": Failure("error answer", status=401),
    "an unknown method": Failure("error answer", code=-32601),
    "a header mismatch": Failure("error answer", code=-32020, status=400),
    "modern versions": Failure("error answer", code=-32022, supported=(MODERN,)),
    "legacy versions": Failure("error answer", code=-32022, supported=(LEGACY,)),
    "foreign versions": Failure("error answer", code=-32022, supported=(OTHER,)),
}
CAPABILITIES = Capabilities(frozenset({Kind.TOOLS}), frozenset({Channel.TOOLS}))

_CALLER = ("caller", "credentials", "link is gone", "push is wanted")

StateT = TypeVar("StateT", bound=Link | Listen)
Said = Iterator[tuple[str, Any]]


class _ChartWorld(Generic[StateT]):
    """What the two worlds share. The state itself, in normal form, is the scene."""

    name: str
    urgent: frozenset[str]
    patient = frozenset({"a moment passes"})
    _table: Table
    _edge: Callable[..., Any]

    def __init__(
        self,
        first: StateT,
        policy: Policy,
        step: Callable[..., Any],
        checks: Mapping[str, Callable[[Any], str | None]],
    ) -> None:
        self._first, self._policy, self._step, self._checks = first, policy, step, checks
        self._reached: set[str] = set()

    @property
    def timeless(self) -> frozenset[str]:
        """What a peer can say at once. Nothing at all may go on for ever at one moment."""
        said = (label for label, _ in self._said(self._first))
        return frozenset(label for label in said if not label.startswith(_CALLER))

    @property
    def costly(self) -> frozenset[str]:
        """All of it."""
        return self.timeless

    @property
    def goals(self) -> Mapping[str, Callable[[StateT], bool]]:
        """It comes to rest: connected, or where only somebody else can help."""
        return {"settles": self._settled}

    @property
    def reached(self) -> frozenset[str]:
        """The phases and rows that were met."""
        return frozenset(self._reached)

    def initial(self) -> StateT:
        """Nobody has asked for anything."""
        return self._first

    def moves(self, state: StateT) -> Iterator[Move[StateT]]:
        """Everything that can be heard next, and the passing of time."""
        self._reached.add(state.phase.value)
        for label, heard in self._said(state):
            after, effects = self._step(state, heard, self._policy)
            complaint = self._complaint(state, heard, after, effects)
            new = self._normal(after, 0)
            if complaint is not None or new != state:
                yield Move(label, new, complaint)
        later = self._normal(state, 1)
        if later != state:
            yield Move("a moment passes", later, None)

    def _complaint(self, state: StateT, heard: Any, after: StateT, effects: Any) -> str | None:
        row, complaint = row_of(self._table, state, heard, self._policy)
        if row is not None:
            self._reached.add(row)
        edge = self._edge(state, heard, after, effects, self._policy)
        for name, check in self._checks.items():
            wrong = check(edge)
            complaint = complaint or (wrong and f"{name}: {wrong}")
        return complaint

    def promise(self, _: StateT) -> str | None:
        """All promises are about edges."""
        return None

    def show(self, state: StateT) -> str:
        """The state in one line."""
        phase: str = state.phase.value
        return phase

    def _settled(self, state: StateT) -> bool:
        raise NotImplementedError  # pragma: no cover: each world has its own

    def _said(self, state: StateT) -> Said:
        raise NotImplementedError  # pragma: no cover: each world has its own

    def _normal(self, state: StateT, now_ms: int) -> StateT:
        raise NotImplementedError  # pragma: no cover: each world has its own


class LinkWorld(_ChartWorld[Link]):
    """The link chart on a pipe or over HTTP, with any server."""

    urgent = frozenset(
        {
            "transport opens",
            "discovery finds what we speak",
            "initialize is answered as asked",
            "timer fires",
        }
    )
    _table = LINK_TABLE
    _edge = LinkEdge

    def __init__(
        self,
        wire: Wire,
        policy: Policy = POLICY,
        step: Callable[..., Any] = step_link,
        checks: Mapping[str, Callable[[LinkEdge], str | None]] = LINK_ALWAYS,
    ) -> None:
        self.name = f"link over {wire.value}"
        super().__init__(normal_link(new_link(wire), 0, policy), policy, step, checks)

    def _said(self, state: Link) -> Said:
        yield "caller connects", i.ConnectWanted(0)
        yield "caller closes", i.CloseWanted(0)
        yield "caller needs the offer", i.DiscoveryWanted(0)
        yield "caller doubts the offer", i.DiscoveryWanted(0, doubted=True)
        yield "credentials change", i.CredentialsChanged("b", 0)
        yield "timer fires", i.TimePassed(0)
        for epoch, when in ((state.epoch, ""), (_LATE, " late")):
            yield f"transport opens{when}", i.TransportOpened(epoch, 0)
            yield f"transport is lost{when}", i.TransportLost(epoch, 0)
            yield f"session expires{when}", i.SessionExpired(epoch, 0)
        for serial, when in ((state.serial, ""), (_LATE, " late")):
            yield from self._answers(serial, when)

    def _answers(self, serial: int, when: str) -> Said:
        for found, versions in (
            ("what we speak", (MODERN, LEGACY)),
            ("only legacy", (LEGACY,)),
            ("only foreign", (OTHER,)),
            ("nothing", ()),
        ):
            answer = i.DiscoverAnswered(serial, versions, CAPABILITIES, 0, ttl_ms=0)
            yield f"discovery finds {found}{when}", answer
        yield (
            f"initialize is answered as asked{when}",
            i.InitializeAnswered(serial, LEGACY, CAPABILITIES, 0),
        )
        yield (
            f"initialize is answered with a foreign version{when}",
            i.InitializeAnswered(serial, OTHER, CAPABILITIES, 0),
        )
        for name, failure in FAILURES.items():
            yield f"discovery fails with {name}{when}", i.DiscoverFailed(serial, failure, 0)
            yield f"initialize fails with {name}{when}", i.InitializeFailed(serial, failure, 0)

    def _normal(self, state: Link, now_ms: int) -> Link:
        return normal_link(state, now_ms, self._policy)

    def _settled(self, state: Link) -> bool:
        rests = (LinkPhase.LIVE, LinkPhase.CLOSED, LinkPhase.PARKED, LinkPhase.REFUSED)
        return state.phase in rests

    def show(self, state: Link) -> str:
        """The phase, and what is known of the era."""
        era = {None: "era unknown", Era.LEGACY: "legacy", Era.MODERN: "modern"}[state.era]
        return f"{state.phase.value}, {era}, {state.failures} failures"


class ListenWorld(_ChartWorld[Listen]):
    """The listen chart with each carrier."""

    name = "listen"
    urgent = frozenset({"push opens", "transport brings push back", "timer fires"})
    _table = LISTEN_TABLE
    _edge = ListenEdge

    def __init__(
        self,
        policy: Policy = POLICY,
        step: Callable[..., Any] = step_listen,
        checks: Mapping[str, Callable[[ListenEdge], str | None]] = LISTEN_ALWAYS,
    ) -> None:
        super().__init__(normal_listen(new_listen(), 0, policy), policy, step, checks)

    def _said(self, state: Listen) -> Said:
        some: frozenset[Topic] = frozenset({Channel.TOOLS})
        other: frozenset[Topic] = frozenset({Channel.TOOLS, "a:resource"})
        none: frozenset[Topic] = frozenset()
        for carrier in Carrier:
            yield f"push is wanted from a {carrier.value}", i.PushWanted(some, carrier, 0)
            yield f"push is wanted otherwise, {carrier.value}", i.PushWanted(other, carrier, 0)
            yield f"push is wanted for nothing, {carrier.value}", i.PushWanted(none, carrier, 0)
        yield "link is gone", i.PushReleased(0)
        yield "timer fires", i.TimePassed(0)
        # The transport opens the legacy stream again, at its own pace.
        rests = state.phase is ListenPhase.RESTING and state.carrier is not Carrier.SUBSCRIPTION
        opens = "transport brings push back" if rests else "push opens"
        more: frozenset[Topic] = other | set(Channel)
        serials = [(state.serial, ""), (_LATE, " late")]
        if state.stream not in (None, state.serial):
            serials.append((state.stream or 0, " on the old stream"))
        for serial, when in serials:
            yield f"{opens}{when}", i.PushOpened(serial, some, 0)
            yield f"{opens} for nothing{when}", i.PushOpened(serial, none, 0)
            yield f"{opens} for more{when}", i.PushOpened(serial, more, 0)
            yield f"push ends{when}", i.PushEnded(serial, None, 0)
            for name, failure in FAILURES.items():
                yield f"push fails with {name}{when}", i.PushEnded(serial, failure, 0)

    def _normal(self, state: Listen, now_ms: int) -> Listen:
        return normal_listen(state, now_ms, self._policy)

    def _settled(self, state: Listen) -> bool:
        return state.phase in (ListenPhase.OFF, ListenPhase.OPEN) and state.due_at_ms is None
