"""A world for a whole session: two kinds on one connection, with anything that can be said.

The smallest world that shows what only the session can break: that kinds keep apart, and that
catalogs hear of the link and of push exactly what is so. What the lists contain does not matter
here and never changes, and they are answered in time; everything else may come late, twice, or for
another stream. Failing lists are left to the worlds of one catalog.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from attrs import evolve

from relist import inputs as i
from relist.check.explore import Move
from relist.check.isolation import ISOLATED, SessionCheck, SessionEdge
from relist.check.normal import normal, normal_link, normal_listen, page_items
from relist.check.setting import LEGACY, MODERN, POLICY
from relist.policy import Policy
from relist.session import Session, SessionStep, deadline_ms, new_session, receive
from relist.values import (
    KINDS,
    WALKING,
    Capabilities,
    Catalog,
    Channel,
    Kind,
    LinkPhase,
    Listen,
    ListenPhase,
    Phase,
    Scope,
    Wire,
)

_LATE = 9
_TOOLS = frozenset({Channel.TOOLS})
_BOTH = frozenset({Channel.TOOLS, Channel.PROMPTS})
_KINDS = (Kind.TOOLS, Kind.PROMPTS)
_CAPABILITIES = Capabilities(frozenset(_KINDS), _BOTH)
OFFERS = {
    "the same": _CAPABILITIES,
    "tools alone": Capabilities(frozenset({Kind.TOOLS}), _TOOLS),
    "push of tools alone": Capabilities(frozenset(_KINDS), _TOOLS),
}
"""What a later discovery may find."""


SESSION_POLICY = evolve(
    POLICY,
    modern_versions=(MODERN,),
    legacy_versions=(LEGACY,),
    gather_ms=0,
    uncovered_grace_ms=0,
    spoiled_in_row_max=1,
    open_limit_ms=1,
    probe_limit_ms=1,
    handshake_limit_ms=1,
    ack_limit_ms=1,
    healthy_ms=1,
    discovery_lifetime_ms=None,
)

_BUSY = (Phase.DISCOVERING, Phase.FRESH, Phase.STALE, Phase.REFRESHING)
PAIRS = frozenset(f"{one.value} and {other.value}" for one in _BUSY for other in _BUSY)
"""Phases of tools and prompts. All must be met, else one kind waits for the other."""


class Parts(NamedTuple):
    """A session as numbers of its parts, each in normal form."""

    link: int
    listen: int
    tools: int
    prompts: int


Said = Iterator[tuple[str, i.SessionInput]]


class SessionWorld:
    """The moves of a session.

    ``acts`` are those of ACTS that the caller does, ``offers`` what of OFFERS is found later.
    """

    patient = frozenset({"a moment passes"})
    timeless: frozenset[str] = frozenset()
    costly: frozenset[str] = frozenset()
    urgent = frozenset(
        {
            "transport opens",
            "discovery is answered",
            "initialize is answered",
            "push opens",
            "timer fires",
            *(f"{kind.value} are listed" for kind in _KINDS),
        }
    )

    def __init__(
        self,
        name: str,
        wire: Wire,
        policy: Policy = SESSION_POLICY,
        acts: tuple[str, ...] = (),
        offers: tuple[str, ...] = (),
        receive: Callable[[Session, Any, Policy], SessionStep] = receive,
        checks: Mapping[str, SessionCheck] = ISOLATED,
    ) -> None:
        self.name = name
        self._policy, self._receive, self._checks = policy, receive, checks
        self._acts, self._offers = acts, offers
        self._numbers: dict[object, int] = {}
        self._values: list[Any] = []
        self._idle = new_session(wire, "a")
        self._reached: set[str] = set()

    @property
    def goals(self) -> Mapping[str, Callable[[Parts], bool]]:
        """Both kinds come to be fresh, or nobody wants the connection."""
        return {"recovers": self._fresh}

    @property
    def reached(self) -> frozenset[str]:
        """The pairs of phases that the kinds were in at once, and the phases of link and push."""
        return frozenset(self._reached)

    def initial(self) -> Parts:
        """Never connected."""
        return self._parts(self._idle, self._idle, 0)

    def _parts(self, session: Session, before: Session, now_ms: int) -> Parts:
        """The normal form; what is the same object as before is in it already."""
        policy, moved = self._policy, now_ms > 0 or session is before
        link, listen = session.link, session.listen
        if moved or link is not before.link:
            link = normal_link(link, now_ms, policy)
        if moved or listen is not before.listen:
            listen = normal_listen(listen, now_ms, policy)
        tools, prompts = (
            self._catalog(session.catalog(kind), now_ms)
            if moved or session.catalog(kind) is not before.catalog(kind)
            else session.catalog(kind)
            for kind in _KINDS
        )
        return Parts(*map(self._number, (link, listen, tools, prompts)))

    def _catalog(self, catalog: Catalog, now_ms: int) -> Catalog:
        """The normal form, in the link's one epoch; versions keep their names, as the link's do."""
        form = normal(catalog, now_ms, self._policy, candidates=False)
        listed, version = form.snapshot, catalog.standing.version
        if listed is not None and catalog.snapshot is not None:
            listed = evolve(listed, version=catalog.snapshot.version)
        standing = evolve(form.standing, epoch=1, version=version)
        return evolve(form, snapshot=listed, standing=standing)

    def _number(self, part: object) -> int:
        number = self._numbers.get(part)
        if number is None:
            number = self._numbers[part] = len(self._values)
            self._values.append(part)
        return number

    def session(self, parts: Parts) -> Session:
        """The session that these parts make; the kinds that are left out share the link's fate."""
        link, listen, tools, prompts = (self._values[number] for number in parts)
        rest = tuple(self._undeclared(kind, tools) for kind in KINDS[2:])
        return Session(link, listen, (tools, prompts, *rest))

    def _undeclared(self, kind: Kind, like: Catalog) -> Catalog:
        absent = self._idle.catalog(kind)
        phase = like.phase
        if phase not in (Phase.DISCONNECTED, Phase.INITIALIZING):
            phase = Phase.UNSUPPORTED
        standing = evolve(like.standing, declared=False, push=False, covered=False)
        return evolve(absent, phase=phase, standing=standing)

    def moves(self, parts: Parts) -> Iterator[Move[Parts]]:
        """Everything that can be heard next, and the passing of time."""
        session = self.session(parts)
        self._note(session)
        for label, heard in self._said(session):
            after, effects = self._receive(session, heard, self._policy)
            if after is session and not effects:
                continue
            edge = SessionEdge(session, heard, after, effects, self._policy)
            complaint = self._complaint(edge)
            new = parts if after is session else self._parts(after, session, 0)
            if complaint is not None or new != parts:
                yield Move(label, new, complaint)
        if not any(session.catalog(kind).phase in WALKING for kind in _KINDS):
            later = self._parts(session, session, 1)
            if later != parts:
                yield Move("a moment passes", later, None)

    def _note(self, session: Session) -> None:
        tools, prompts = (session.catalog(kind).phase.value for kind in _KINDS)
        self._reached |= {f"{tools} and {prompts}"}
        self._reached |= {f"link {session.link.phase.value}", f"push {session.listen.phase.value}"}

    def _complaint(self, edge: SessionEdge) -> str | None:
        for name, check in self._checks.items():
            wrong = check(edge)
            if wrong is not None:
                return f"{name}: {wrong}"
        return None

    def _said(self, session: Session) -> Said:
        yield "caller connects", i.ConnectWanted(0)
        for act in self._acts:
            yield act, ACTS[act]
        due_ms = deadline_ms(session, self._policy)
        if due_ms is not None and due_ms <= 0:
            yield "timer fires", i.TimePassed(0)
        link, listen = session.link, session.listen
        yield "transport opens", i.TransportOpened(link.epoch, 0)
        yield "transport is lost", i.TransportLost(link.epoch, 0)
        found = (MODERN, LEGACY) if self._policy.modern_versions else (LEGACY,)
        asked = link.serial
        if link.phase is LinkPhase.PROBING:
            yield "discovery is answered", i.DiscoverAnswered(asked, found, _CAPABILITIES, 0)
        if link.phase is LinkPhase.LIVE and link.limit_at_ms is not None:
            for offer in self._offers:
                anew = i.DiscoverAnswered(asked, found, OFFERS[offer], 0)
                yield f"discovery finds {offer} by now", anew
        if link.phase is LinkPhase.HANDSHAKING:
            answer = i.InitializeAnswered(asked, LEGACY, _CAPABILITIES, 0)
            yield "initialize is answered", answer
        if listen.phase is not ListenPhase.OFF:
            yield from self._push(listen)
        yield from self._notices(session)
        for kind in _KINDS:
            yield from self._pages(session.catalog(kind))

    def _push(self, listen: Listen) -> Said:
        yield "push opens", i.PushOpened(listen.serial, _BOTH, 0)
        yield "push opens for tools", i.PushOpened(listen.serial, _TOOLS, 0)
        yield "push ends", i.PushEnded(listen.serial, None, 0)
        yield "another stream opens", i.PushOpened(_LATE, _BOTH, 0)
        yield "another stream ends", i.PushEnded(_LATE, None, 0)

    def _notices(self, session: Session) -> Said:
        if session.link.phase is LinkPhase.LIVE:
            for channel in _BOTH:
                own = i.NoticeHeard(channel, session.listen.serial, 0)
                yield f"notice of {channel.value}", own
                yield f"untagged notice of {channel.value}", i.NoticeHeard(channel, None, 0)
                yield f"foreign notice of {channel.value}", i.NoticeHeard(channel, _LATE, 0)

    def _pages(self, catalog: Catalog) -> Said:
        kind, serial = catalog.kind, catalog.serial
        items = page_items(1, 0, shared=False)
        listed = i.PageArrived(kind, serial, items, None, None, Scope.PRIVATE, 0)
        yield f"{kind.value} are listed", listed
        yield f"late list of {kind.value}", evolve(listed, serial=_LATE)

    def promise(self, _: Parts) -> str | None:
        """All promises are about edges."""
        return None

    def _fresh(self, parts: Parts) -> bool:
        session = self.session(parts)
        offered = session.link.capabilities.kinds
        fresh = all(
            session.catalog(kind).phase is (Phase.FRESH if kind in offered else Phase.UNSUPPORTED)
            for kind in _KINDS
        )
        return fresh or session.link.phase in (LinkPhase.CLOSED, LinkPhase.REFUSED)

    def show(self, parts: Parts) -> str:
        """The phases of the parts in one line."""
        session = self.session(parts)
        catalogs = (f"{kind.value} {session.catalog(kind).phase.value}" for kind in _KINDS)
        joined = f"link {session.link.phase.value}", f"push {session.listen.phase.value}"
        return ", ".join((*joined, *catalogs))


ACTS: Mapping[str, i.SessionInput] = {
    "caller closes": i.CloseWanted(0),
    "credentials change": i.CredentialsChanged("b", 0),
    "a task begins": i.TaskBegan(0),
    "a read of tools is wanted": i.ReadWanted(Kind.TOOLS, 0),
    "a verification of tools is wanted": i.VerificationWanted(Kind.TOOLS, 0),
    "a refresh of tools is wanted": i.RefreshWanted(Kind.TOOLS, 0),
    "a call proves tools stale": i.StalenessProved(Kind.TOOLS, 1, 0),
}
"""What a caller may do besides connecting."""
