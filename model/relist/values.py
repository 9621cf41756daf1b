"""The vocabulary of the law: kinds, phases, doubts and the frozen state of one catalog.

Read this with ``charts.py``: the chart names what happens, this file says what there is. All values
are frozen, hashable and picklable; all times are integer milliseconds of one monotonic clock.
What is told to a catalog stands in ``inputs.py``, what it asks for in ``effects.py``.
"""

from collections.abc import Callable
from enum import Enum
from hashlib import sha256
from typing import TypeVar

import attrs

from relist.frozen import frozen

_EnumT = TypeVar("_EnumT", bound=type[Enum])


def _identity_hash(cls: _EnumT) -> _EnumT:
    """Members are singletons: hashing by identity makes table look-ups several times cheaper."""
    hasher: Callable[[object], int] = object.__hash__
    cls.__hash__ = hasher  # type: ignore[method-assign,assignment]
    return cls


@_identity_hash
class Kind(Enum):
    """The four catalogs of a server. Rule: RES-16, STATE-05."""

    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"
    TEMPLATES = "resource_templates"


KINDS = tuple(Kind)


@_identity_hash
class Channel(Enum):
    """The three list_changed notices; the resources notice covers templates. Rule: NOTE-05."""

    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"


CHANNELS = tuple(Channel)
Topic = Channel | str
"""What notices are about: a list, or the content of a resource (its URI)."""

CHANNEL_OF = {
    Kind.TOOLS: Channel.TOOLS,
    Kind.PROMPTS: Channel.PROMPTS,
    Kind.RESOURCES: Channel.RESOURCES,
    Kind.TEMPLATES: Channel.RESOURCES,
}


@_identity_hash
class Era(Enum):
    """How a peer speaks: with an initialize handshake, or stateless. Rule: LIFE-01, LIFE-20."""

    LEGACY = "legacy"
    MODERN = "modern"


@_identity_hash
class Wire(Enum):
    """What carries messages: one ordered pipe to one process, or an HTTP endpoint."""

    PIPE = "pipe"
    HTTP = "http"


@_identity_hash
class Carrier(Enum):
    """What carries notices: the pipe itself, the legacy GET stream, or a modern subscription."""

    PIPE = "pipe"
    STREAM = "stream"
    SUBSCRIPTION = "subscription"


@_identity_hash
class LinkPhase(Enum):
    """Where the connection to one server stands."""

    CLOSED = "closed"  # nobody wants it
    OPENING = "opening"  # the transport is being opened
    PROBING = "probing"  # server/discover is on its way
    HANDSHAKING = "handshaking"  # initialize is on its way
    LIVE = "live"  # era, version and capabilities are known
    WAITING = "waiting"  # failed or lost; opened again when due
    PARKED = "parked"  # authorization failed; waits for credentials
    REFUSED = "refused"  # no common version; waits for the caller


@_identity_hash
class ListenPhase(Enum):
    """Where the channel for notices stands."""

    OFF = "off"  # not wanted, or not to be had
    ASKED = "asked"  # waiting for the acknowledgement (or for the stream)
    OPEN = "open"  # notices come
    RENEWING = "renewing"  # they come, and another stream is asked for that will take over
    RESTING = "resting"  # ended; asked for again when due


@_identity_hash
class Phase(Enum):
    """Where a catalog stands. Having a snapshot is orthogonal: never loaded is not empty.

    INITIALIZING lasts through probe, handshake and acknowledgement. Rule: STATE-11.
    """

    DISCONNECTED = "disconnected"  # no link
    INITIALIZING = "initializing"  # a link, but listing is not allowed yet
    DISCOVERING = "discovering"  # the first walk since listing was allowed
    FRESH = "fresh"  # listed, and no reason for doubt but time
    STALE = "stale"  # a walk is needed and none is open
    REFRESHING = "refreshing"  # any other walk
    UNSUPPORTED = "unsupported"  # the server does not have this kind


WALKING = (Phase.DISCOVERING, Phase.REFRESHING)


@_identity_hash
class Doubt(Enum):
    """Why the published list may be wrong: the first reason since it was listed."""

    NOTICED = "noticed"  # a list_changed notice
    UNCOVERED = "uncovered"  # push was lost, a notice may have been missed
    SUSPECTED = "suspected"  # a call or the list itself proved it stale
    FAILED = "failed"  # the walk that was to renew it failed
    DISCONNECTED = "disconnected"  # the link it rested on is gone
    UNVOUCHED = "unvouched"  # push began only after it was listed, or it is of another version


@_identity_hash
class Parked(Enum):
    """Why nothing is tried again by itself: until something outside changes."""

    AUTHORIZATION = "authorization"  # until credentials change
    REQUEST = "request"  # the server refuses it as such: until a new link, or a new offer of it


@_identity_hash
class Wish(Enum):
    """What somebody asked for and has not got: the strongest counts. Rule: ATOM-24, CALL-05."""

    READ = 1  # a list; one that holds will do
    VERIFY = 2  # a walk begun after this was asked, as soon as no failure forbids it
    REFRESH = 3  # the same at once, also while backing off or parked


@_identity_hash
class Scope(Enum):
    """Who may see a list; a missing scope is private. Rule: TTL-23, TTL-26."""

    PUBLIC = "public"
    PRIVATE = "private"


@attrs.frozen  # whose == is the faster one, and lists of items are compared
class Item:
    """One entry of a catalog: its key (name, URI or template) and its canonical JSON.

    Equality is byte equality: case counts in keys, and every field of the entry counts. Parsed JSON
    is not compared, since Python takes True for 1. Rule: DISC-28, RES-14.
    """

    key: str
    canonical_json: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, hexadecimal."""
        return sha256(self.canonical_json).hexdigest()


Items = tuple[Item, ...]


@frozen
class Snapshot:
    """The result of one complete walk; ``walk`` is the serial of its first request.

    Rule: ATOM-03, ATOM-04.
    """

    items: Items
    generation: int
    scope: Scope
    version: str
    partition: str
    epoch: int
    walk: int
    listed_at_ms: int
    expires_at_ms: int | None
    clean: bool
    ambiguous: frozenset[str]


@frozen
class Walk:
    """An open listing: the one outstanding request and the pages gathered so far.

    ``expires_at_ms`` is the earliest deadline of the pages that named a lifetime; ``bare_at_ms``
    the receipt of the first page that named none. ``serves`` is the wish that waits for its end.
    ``first`` is the serial of the first request, ``serial`` that of the outstanding one.
    ``size_bytes`` counts the keys and the canonical JSON of the items.
    """

    first: int
    serial: int
    cursor: str | None
    pages: tuple[Items, ...]
    count: int
    scope: Scope
    expires_at_ms: int | None
    bare_at_ms: int | None
    spoiled: bool
    covered: bool
    serves: Wish | None
    request_limit_at_ms: int
    walk_limit_at_ms: int
    size_bytes: int = 0


@frozen
class Standing:
    """What the link says. ``push``: listChanged is declared; ``covered``: push works now.

    Apart from what was listed, with a life of its own. Rule: CAP-21.
    """

    epoch: int
    era: Era | None
    version: str
    partition: str
    declared: bool
    push: bool
    covered: bool


@frozen
class Pacing:
    """When the next walk may begin, and the counters that space walks out."""

    due_at_ms: int | None
    parked: Parked | None
    failures: int
    spoiled_in_row: int
    gap_exponent: int
    listed_at_ms: int | None


@frozen
class Catalog:
    """The whole state of one catalog. ``candidate``: a complete but spoiled list, held back."""

    kind: Kind
    phase: Phase
    doubt: Doubt | None
    walk: Walk | None
    snapshot: Snapshot | None
    candidate: Snapshot | None
    vouched: bool
    wanted: Wish | None
    generation: int
    serial: int
    standing: Standing
    pacing: Pacing


@frozen
class Capabilities:
    """What a server declared: the kinds, and the channels whose listChanged is true.

    ``subscribe``: updates of single resources can be had. Rule: CAP-08, CAP-09.
    """

    kinds: frozenset[Kind]
    channels: frozenset[Channel]
    subscribe: bool = False


@frozen
class Failure:
    """How a request failed: JSON-RPC error code, HTTP status, Retry-After. Rule: FAIL-07.

    ``reason`` is a short text of ours, never the peer's. ``supported`` are the versions that an
    unsupported-version error named. ``timed_out``: the request got no answer in time.
    """

    reason: str
    code: int | None = None
    status: int | None = None
    retry_after_ms: int | None = None
    supported: tuple[str, ...] = ()
    timed_out: bool = False


@frozen
class Link:
    """The connection: transport, era, version, capabilities.

    ``era`` is the remembered verdict; ``offered`` the version of the request that is on its way and
    ``retried`` whether it corrects an earlier one. ``serial`` is the last request of this chart.
    From ``expires_at_ms`` on a live link asks again, at the next need, what the server offers, and
    from ``refutable_at_ms`` on when it refuses our version: not at once again, on no link.
    Version and capabilities are what the peer of this epoch said, and nothing else. Rule: CAP-23.
    """

    phase: LinkPhase
    wire: Wire
    epoch: int
    serial: int
    limit_at_ms: int | None
    due_at_ms: int | None
    failures: int
    live_at_ms: int | None
    era: Era | None
    offered: str
    retried: bool
    version: str
    capabilities: Capabilities
    expires_at_ms: int | None
    refutable_at_ms: int | None


@frozen
class Listen:
    """A channel for notices: what was asked for, what was granted. Rule: SUB-05, SUB-06.

    ``topics`` is what the newest request asks for, ``serial`` its number; ``stream`` is the number
    of the request whose stream stands. ``granted`` is what that stream carries.
    """

    phase: ListenPhase
    carrier: Carrier
    topics: frozenset[Topic]
    granted: frozenset[Topic]
    serial: int
    stream: int | None
    limit_at_ms: int | None
    due_at_ms: int | None
    failures: int
    opened_at_ms: int | None


NO_CAPABILITIES = Capabilities(frozenset(), frozenset())


def new_link(wire: Wire) -> Link:
    """A connection that nobody has asked for yet."""
    return Link(
        phase=LinkPhase.CLOSED,
        wire=wire,
        epoch=0,
        serial=0,
        limit_at_ms=None,
        due_at_ms=None,
        failures=0,
        live_at_ms=None,
        era=None,
        offered="",
        retried=False,
        version="",
        capabilities=NO_CAPABILITIES,
        expires_at_ms=None,
        refutable_at_ms=None,
    )


def new_listen() -> Listen:
    """A channel that nobody has asked for yet."""
    none: frozenset[Topic] = frozenset()
    return Listen(ListenPhase.OFF, Carrier.PIPE, none, none, 0, None, None, None, 0, None)


def new_catalog(kind: Kind, partition: str = "") -> Catalog:
    """A catalog that has never been connected."""
    return Catalog(
        kind=kind,
        phase=Phase.DISCONNECTED,
        doubt=None,
        walk=None,
        snapshot=None,
        candidate=None,
        vouched=False,
        wanted=None,
        generation=0,
        serial=0,
        standing=Standing(0, None, "", partition, False, False, False),
        pacing=Pacing(None, None, 0, 0, 0, None),
    )
