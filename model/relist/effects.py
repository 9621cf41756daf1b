"""What a machine asks for: imperative values. The adapter performs them and decides nothing."""

from relist.frozen import frozen
from relist.values import Doubt, Kind, Snapshot, Topic


@frozen
class RequestPage:
    """Ask for one page; ``cursor`` None means the first page. Answer with this serial.

    No condition can be put to it. Rule: TTL-33.
    """

    kind: Kind
    serial: int
    cursor: str | None


@frozen
class AbandonWalk:
    """Stop waiting for the page request with this serial; cancel it."""

    kind: Kind
    serial: int


@frozen
class Publish:
    """Readers see this snapshot from now on; ``changed`` if its content differs."""

    kind: Kind
    snapshot: Snapshot
    changed: bool


@frozen
class Withdraw:
    """Nothing of this kind may be shown any more: unsupported, or private to another partition."""

    kind: Kind


@frozen
class DoubtList:
    """The published list may be wrong from now on, for this (first) reason."""

    kind: Kind
    doubt: Doubt


@frozen
class NeedCredentials:
    """Authorization failed: no retry until credentials change. ``kind`` None: the link."""

    kind: Kind | None


@frozen
class Note:
    """Something worth recording: a defect or normal lateness of the peer, by rule id."""

    rule: str
    text: str
    values: tuple[str | int | None, ...] = ()


@frozen
class OpenTransport:
    """Open a transport for this epoch."""

    epoch: int


@frozen
class CloseTransport:
    """Close the transport of this epoch; whatever still comes from it is late."""

    epoch: int


@frozen
class RequestDiscover:
    """Send ``server/discover`` at this version. Never cancelled."""

    serial: int
    version: str


@frozen
class RequestInitialize:
    """Send ``initialize`` offering this version. Never cancelled. Rule: LIFE-08."""

    serial: int
    version: str


@frozen
class SendInitialized:
    """Send ``notifications/initialized``, before any list request. Rule: LIFE-03."""

    version: str


@frozen
class OpenListen:
    """Send ``subscriptions/listen`` for these topics. Has no answer deadline. Rule: SUB-29."""

    serial: int
    topics: frozenset[Topic]


@frozen
class CancelListen:
    """Cancel the listen request with this serial. Rule: SUB-17, SUB-18."""

    serial: int


@frozen
class OpenUpdates:
    """Send ``subscriptions/listen`` for updates of these resources. Rule: RES-04."""

    serial: int
    uris: frozenset[str]


@frozen
class CancelUpdates:
    """Cancel the listen request for updates with this serial. Rule: SUB-17, SUB-18."""

    serial: int


@frozen
class RequestSubscribe:
    """Send ``resources/subscribe`` to a legacy server. Rule: RES-03."""

    serial: int
    uri: str


@frozen
class RequestUnsubscribe:
    """Send ``resources/unsubscribe`` to a legacy server. Rule: RES-03."""

    serial: int
    uri: str


@frozen
class CancelSubscribe:
    """Stop waiting for the (un)subscribe request with this serial; cancel it."""

    serial: int


@frozen
class ContentChanged:
    """What this resource contains has changed: see ``resources.updated``. Rule: RES-06."""

    uri: str


@frozen
class ContentUncovered:
    """Updates of these resources may have been missed: see ``resources.uncovered``."""

    uris: frozenset[str]


RequestEffect = (
    RequestPage
    | RequestDiscover
    | RequestInitialize
    | OpenListen
    | OpenUpdates
    | RequestSubscribe
    | RequestUnsubscribe
)
CatalogEffect = RequestPage | AbandonWalk | Publish | Withdraw | DoubtList | NeedCredentials | Note
LinkEffect = (
    OpenTransport
    | CloseTransport
    | RequestDiscover
    | RequestInitialize
    | SendInitialized
    | NeedCredentials
    | Note
)
ListenEffect = OpenListen | CancelListen | Note
UpdatesEffect = (
    OpenUpdates
    | CancelUpdates
    | RequestSubscribe
    | RequestUnsubscribe
    | CancelSubscribe
    | ContentChanged
    | ContentUncovered
    | Note
)
Effect = CatalogEffect | LinkEffect | ListenEffect | UpdatesEffect
