"""How one server's catalogs stand, as one value for operators. Pure; holds nothing that is secret.

The one text of the server in it is what it says of itself, made plain. See ``identity``.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

import attrs
from attrs import frozen

from relist.machine import Hit, read
from relist.policy import Policy
from relist.rules.guards import wake_ms
from relist.session import Session
from relist.surface import Lag, lag
from relist.values import (
    WALKING,
    Capabilities,
    Carrier,
    Catalog,
    Channel,
    Doubt,
    Era,
    Kind,
    LinkPhase,
    ListenPhase,
    Parked,
    Phase,
    Scope,
)
from relist_mcp.events import Cause, Outcome
from relist_mcp.identity import Identity
from relist_mcp.tally import KindTally, Tally, Walked


@frozen
class LastWalk:
    """How the last walk of a kind went, and how long ago it ended."""

    cause: Cause
    outcome: Outcome
    reason: str
    pages: int
    entries: int
    duration_ms: int
    ended_ms_ago: int


@frozen
class KindStatus:
    """One kind. What is counted is counted since this began; times are from now.

    ``walks``: how many ended, by outcome. ``open_pages``: of the walk that is under way, None if
    none is. ``next_walk_in_ms``: when one begins by itself, None if not before something happens.
    ``lag``: how far what the model was given is behind.
    """

    kind: Kind
    phase: Phase
    hit: Hit
    doubt: Doubt | None
    parked: Parked | None
    generation: int
    count: int
    ambiguous: int
    scope: Scope | None
    vouched: bool
    covered: bool
    age_ms: int | None
    expires_in_ms: int | None
    open_pages: int | None
    last_walk: LastWalk | None
    walks: Mapping[Outcome, int]
    notices: int
    merged: int
    spoiled_in_row: int
    failures: int
    next_walk_in_ms: int | None
    lag: Lag


@frozen
class LinkStatus:
    """The connection: what was agreed on, and when it is tried again if it is lost."""

    phase: LinkPhase
    epoch: int
    era: Era | None
    version: str
    capabilities: Capabilities
    failures: int
    next_try_in_ms: int | None
    reconnects: int


@frozen
class ListenStatus:
    """The channel for notices, and which it carries."""

    phase: ListenPhase
    carrier: Carrier
    granted: tuple[Channel, ...]
    failures: int
    next_try_in_ms: int | None


@frozen
class Status:
    """All of it; ``late``: how many answers came too late, and changed nothing."""

    server: Identity
    link: LinkStatus
    listen: ListenStatus
    kinds: tuple[KindStatus, ...]
    late: int

    def of(self, kind: Kind) -> KindStatus:
        """How this kind stands."""
        return next(status for status in self.kinds if status.kind is kind)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data that any JSON library takes."""
        return attrs.asdict(self, value_serializer=_plain)


def status(
    session: Session, counted: Tally, server: Identity, policy: Policy, now_ms: int
) -> Status:
    """How it all stands at ``now_ms``."""
    link, listen = session.link, session.listen
    granted = [topic for topic in listen.granted if isinstance(topic, Channel)]
    return Status(
        server,
        LinkStatus(
            link.phase,
            link.epoch,
            link.era,
            link.version,
            link.capabilities,
            link.failures,
            _from(link.due_at_ms, now_ms),
            counted.reconnects,
        ),
        ListenStatus(
            listen.phase,
            listen.carrier,
            tuple(sorted(granted, key=lambda channel: channel.value)),
            listen.failures,
            _from(listen.due_at_ms, now_ms),
        ),
        tuple(
            _of_kind(session, catalog, counted.of(catalog.kind), policy, now_ms)
            for catalog in session.catalogs
        ),
        counted.late,
    )


def _of_kind(
    session: Session, catalog: Catalog, counted: KindTally, policy: Policy, now_ms: int
) -> KindStatus:
    reading, listed, pacing = read(catalog, now_ms), catalog.snapshot, catalog.pacing
    return KindStatus(
        kind=catalog.kind,
        phase=catalog.phase,
        hit=reading.hit,
        doubt=catalog.doubt,
        parked=pacing.parked,
        generation=catalog.generation,
        count=0 if listed is None else len(listed.items),
        ambiguous=0 if listed is None else len(listed.ambiguous),
        scope=None if listed is None else listed.scope,
        vouched=catalog.vouched,
        covered=catalog.standing.covered,
        age_ms=reading.age_ms,
        expires_in_ms=None if listed is None else _from(listed.expires_at_ms, now_ms),
        open_pages=None if catalog.walk is None else len(catalog.walk.pages),
        last_walk=None if counted.last is None else _last(counted.last, now_ms),
        walks=counted.walks,
        notices=counted.notices,
        merged=counted.merged,
        spoiled_in_row=pacing.spoiled_in_row,
        failures=pacing.failures,
        next_walk_in_ms=_from(_next_walk_ms(catalog, policy), now_ms),
        lag=lag(catalog, session.adoption(catalog.kind)),
    )


def _next_walk_ms(catalog: Catalog, policy: Policy) -> int | None:
    if catalog.phase is Phase.STALE:
        return wake_ms(catalog, policy)
    return None if catalog.phase in WALKING else catalog.pacing.due_at_ms


def _last(ended: Walked, now_ms: int) -> LastWalk:
    return LastWalk(
        ended.cause,
        ended.outcome,
        ended.reason,
        ended.pages,
        ended.entries,
        ended.duration_ms,
        now_ms - ended.at_ms,
    )


def _from(at_ms: int | None, now_ms: int) -> int | None:
    """How long until then; 0 if it is past."""
    return None if at_ms is None else max(0, at_ms - now_ms)


def _plain(_: Any, __: Any, value: Any) -> Any:
    """For ``attrs.asdict``: an Enum as its value, a set of them sorted."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Lag):
        return value._asdict()
    if isinstance(value, frozenset):
        return sorted(one.value for one in cast("frozenset[Kind | Channel]", value))
    return value
