"""What a machine asks for: imperative values. The adapter performs them and decides nothing."""

from attrs import frozen

from relist.values import Channel, Doubt, Kind, Snapshot


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
    """Send ``subscriptions/listen`` for these channels. Has no answer deadline. Rule: SUB-29."""

    serial: int
    channels: frozenset[Channel]


@frozen
class CancelListen:
    """Cancel the listen request with this serial. Rule: SUB-17, SUB-18."""

    serial: int


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
Effect = CatalogEffect | LinkEffect | ListenEffect
