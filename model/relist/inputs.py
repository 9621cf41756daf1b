"""What a machine is told: past-tense values. Every input carries ``now_ms``, the caller's clock.

CALLER inputs are acts of the embedding program, PEER inputs come (indirectly) from the server, the
INTERNAL ones from another machine of the session. An impossible act of a caller raises
ImpossibleAct; a fault of a peer never raises, it becomes a Note.
"""

from attrs import Factory, field

from relist.frozen import frozen
from relist.values import Capabilities, Carrier, Channel, Era, Failure, Items, Kind, Scope, Topic

# --- to a catalog, from the link and listen charts ------------------------------------------------


@frozen
class LinkOpened:
    """A new logical connection stands (a new epoch); listing is not allowed yet."""

    epoch: int
    now_ms: int


@frozen
class LinkLost:
    """The logical connection is gone."""

    now_ms: int


@frozen
class CredentialsChanged:
    """The caller now acts for another partition (a harmless digest). Rule: AUTH-03, AUTH-04."""

    partition: str
    now_ms: int


@frozen
class ListingAllowed:
    """The peer may be asked for lists: in this era and version, and it declared this much."""

    era: Era
    version: str
    declared: bool
    push: bool
    now_ms: int


@frozen
class CapabilitiesChanged:
    """A later discovery declared this much of the kind. Rule: CAP-18."""

    declared: bool
    push: bool
    now_ms: int


@frozen
class ListChangedHeard:
    """A list_changed notice for this kind arrived. Rule: NOTE-02, NOTE-23."""

    now_ms: int


@frozen
class CoverageGained:
    """From now on push vouches for this kind. Rule: SUB-05."""

    now_ms: int


@frozen
class CoverageLost:
    """Push no longer vouches for this kind. Rule: SUB-28."""

    now_ms: int


# --- to a catalog, from the caller ----------------------------------------------------------------


@frozen
class StalenessProved:
    """A call planned on ``generation`` was rejected in a way that proves that list stale."""

    kind: Kind
    generation: int
    now_ms: int


@frozen
class ReadWanted:
    """Somebody needs the list. Satisfied by what is fresh, or by the walk that is open."""

    kind: Kind
    now_ms: int


@frozen
class VerificationWanted:
    """A call waits for the list to be verified: by a walk begun afterwards. Rule: CALL-05.

    Neither window nor gap delays that walk; a failure backoff does, and parking.
    """

    kind: Kind
    now_ms: int


@frozen
class RefreshWanted:
    """Somebody asked for a refresh. Satisfied only by a walk begun afterwards. Rule: ATOM-24."""

    kind: Kind
    now_ms: int


# --- to a catalog, from the peer ------------------------------------------------------------------


def size_bytes(items: Items) -> int:
    """What these items take up: their keys (one byte a character) and their canonical JSON."""
    return sum([len(item.key) + len(item.canonical_json) for item in items])


@frozen
class PageArrived:
    """The answer to the page request with this serial. ``next_cursor`` None ends the walk."""

    kind: Kind
    serial: int
    items: Items
    next_cursor: str | None
    ttl_ms: int | None
    scope: Scope
    now_ms: int
    size_bytes: int = field(  # counted once, and looked at by guards and actions
        init=False, default=Factory(lambda page: size_bytes(page.items), takes_self=True)
    )


@frozen
class PageFailed:
    """The page request with this serial failed."""

    kind: Kind
    serial: int
    failure: Failure
    now_ms: int


# --- to the link ----------------------------------------------------------------------------------


@frozen
class ConnectWanted:
    """The caller wants a connection."""

    now_ms: int


@frozen
class CloseWanted:
    """The caller wants the connection closed."""

    now_ms: int


@frozen
class TransportOpened:
    """The transport of this epoch is ready to carry requests."""

    epoch: int
    now_ms: int


@frozen
class TransportLost:
    """The transport of this epoch could not be opened, or is gone."""

    epoch: int
    now_ms: int


@frozen
class SessionExpired:
    """The server does not know the legacy session any more (HTTP 404). Rule: LIFE-12."""

    epoch: int
    now_ms: int


@frozen
class DiscoveryWanted:
    """Somebody needs what the server offers: ask again if that is out of date. From the session.

    ``doubted``: the server refused our version, so it is out of date whatever its lifetime.
    """

    now_ms: int
    doubted: bool = False


@frozen
class DiscoverAnswered:
    """The answer to ``server/discover``; ``ttl_ms`` is its lifetime, None if it names none."""

    serial: int
    supported: tuple[str, ...]
    capabilities: Capabilities
    now_ms: int
    ttl_ms: int | None = None


@frozen
class DiscoverFailed:
    """``server/discover`` failed."""

    serial: int
    failure: Failure
    now_ms: int


@frozen
class InitializeAnswered:
    """The answer to ``initialize``: the server's counter-offer and its capabilities."""

    serial: int
    version: str
    capabilities: Capabilities
    now_ms: int


@frozen
class InitializeFailed:
    """``initialize`` failed."""

    serial: int
    failure: Failure
    now_ms: int


# --- to the listen chart --------------------------------------------------------------------------


@frozen
class PushWanted:
    """The link is live: get notices for these topics, and no others. Comes from the session."""

    topics: frozenset[Topic]
    carrier: Carrier
    now_ms: int


@frozen
class PushReleased:
    """The link is gone, and with it whatever carried notices. Comes from the session."""

    now_ms: int


@frozen
class PushOpened:
    """The stream of this serial stands (acknowledged, or GET answered) for these topics.

    What else came before it is of no matter. Rule: SUB-09.
    """

    serial: int
    topics: frozenset[Topic]
    now_ms: int


@frozen
class PushEnded:
    """The stream of this serial ended: by a result (no failure), an error, a cancel, or a cut."""

    serial: int
    failure: Failure | None
    now_ms: int


# --- to the resource subscriptions ----------------------------------------------------------------


@frozen
class UpdatesWanted:
    """Somebody wants to hear when these resources change, and no others. Rule: RES-03, RES-04."""

    uris: frozenset[str]
    now_ms: int


@frozen
class UpdatesOpened:
    """The subscription of this serial was acknowledged for these resources. Rule: SUB-08."""

    serial: int
    uris: frozenset[str]
    now_ms: int


@frozen
class UpdatesEnded:
    """The subscription of this serial ended: by a result (no failure), an error, or a cut."""

    serial: int
    failure: Failure | None
    now_ms: int


@frozen
class SubscribeAnswered:
    """A legacy ``resources/subscribe`` or ``unsubscribe`` was granted (no failure), or failed."""

    serial: int
    failure: Failure | None
    now_ms: int


@frozen
class UpdateHeard:
    """``notifications/resources/updated`` arrived; ``serial`` as in NoticeHeard. Rule: RES-05."""

    uri: str
    serial: int | None
    now_ms: int


# --- to the session -------------------------------------------------------------------------------


@frozen
class SurfaceAdopted:
    """The host gave its model ``count`` entries of this generation. Rule: ATOM-16, OBS-04."""

    kind: Kind
    generation: int
    count: int
    now_ms: int


@frozen
class TaskBegan:
    """A new task begins: a good moment to renew what nothing vouches for. Rule: TTL-35."""

    now_ms: int


@frozen
class NoticeHeard:
    """A list_changed notice arrived; ``serial`` is its subscription's, None when it has no tag.

    It brings no content. An adapter reports a tag that belongs to no subscription of ours as
    serial 0. Rule: NOTE-01, SUB-10.
    """

    channel: Channel
    serial: int | None
    now_ms: int


@frozen
class TimePassed:
    """The clock says so. Spurious ones are harmless."""

    now_ms: int


WishInput = ReadWanted | VerificationWanted | RefreshWanted
PageAnswer = PageArrived | PageFailed
LinkAnswer = DiscoverAnswered | DiscoverFailed | InitializeAnswered | InitializeFailed
TransportInput = TransportOpened | TransportLost | SessionExpired
UpdatesAnswer = UpdatesOpened | UpdatesEnded | SubscribeAnswered | UpdateHeard
LinkNews = LinkOpened | LinkLost | ListingAllowed | CapabilitiesChanged
PushNews = ListChangedHeard | CoverageGained | CoverageLost
InternalInput = LinkNews | PushNews | PushWanted | PushReleased | DiscoveryWanted
DoubtInput = PushNews | StalenessProved

CatalogInput = LinkNews | DoubtInput | CredentialsChanged | WishInput | TimePassed | PageAnswer
LinkWish = ConnectWanted | CloseWanted
LinkInput = (
    LinkWish | TransportInput | CredentialsChanged | DiscoveryWanted | LinkAnswer | TimePassed
)
ListenInput = PushWanted | PushReleased | PushOpened | PushEnded | TimePassed
UpdatesInput = UpdatesWanted | UpdatesAnswer | TimePassed
CallerInput = (
    LinkWish
    | CredentialsChanged
    | WishInput
    | StalenessProved
    | UpdatesWanted
    | SurfaceAdopted
    | TaskBegan
)
PeerInput = (
    TransportInput | LinkAnswer | PushOpened | PushEnded | NoticeHeard | PageAnswer | UpdatesAnswer
)
SessionInput = CallerInput | PeerInput | TimePassed
