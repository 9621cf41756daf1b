"""What must hold on every edge of the link chart and of the listen chart.

As in ``invariants``: a check returns None, or a short text that says what is wrong, and holds
whatever the peer says and however late or often.
"""

from collections.abc import Callable, Mapping

from relist import inputs as i
from relist.check.edge import ASKING, UP, LinkEdge, ListenEdge
from relist.check.reasons import link_goes_for_its_reason, link_is_heeded, push_is_heeded
from relist.effects import (
    CancelListen,
    CloseTransport,
    NeedCredentials,
    OpenListen,
    OpenTransport,
    RequestDiscover,
    RequestInitialize,
    SendInitialized,
)
from relist.values import Carrier, Era, LinkPhase, Listen, ListenPhase

_OF_AN_EPOCH = (i.TransportOpened, i.TransportLost, i.SessionExpired)
_ANSWERS = (i.DiscoverAnswered, i.DiscoverFailed, i.InitializeAnswered, i.InitializeFailed)


def one_transport(edge: LinkEdge) -> str | None:
    """A transport is opened in a new epoch, and closed or lost before the next. Rule: REC-03."""
    before, after = edge.before, edge.after
    opened = [told.epoch for told in edge.effects if isinstance(told, OpenTransport)]
    closed = [told.epoch for told in edge.effects if isinstance(told, CloseTransport)]
    if opened != ([after.epoch] if after.epoch != before.epoch else []):
        return f"opens {opened}, epoch {before.epoch} -> {after.epoch}"
    enters = after.phase is LinkPhase.OPENING is not before.phase
    if (opened or enters) and (after.epoch, after.phase) != (before.epoch + 1, LinkPhase.OPENING):
        return f"epoch {before.epoch} -> {after.epoch} in {after.phase.value}"
    gone = before.phase in UP and (after.phase not in UP or bool(opened))
    lost = isinstance(edge.heard, i.TransportLost)
    expected = [before.epoch] if gone and not lost else []
    return None if closed == expected else f"closes {closed} instead of {expected}"


def one_question(edge: LinkEdge) -> str | None:
    """One question at a time, each with a new serial and a limit. Rule: LIFE-27, LIFE-39, LIFE-45.

    A live link asks only what its server offers by now.
    """
    before, after = edge.before, edge.after
    discovers = [told for told in edge.effects if isinstance(told, RequestDiscover)]
    initializes = [told for told in edge.effects if isinstance(told, RequestInitialize)]
    asked = len(discovers) + len(initializes)
    if after.serial != before.serial + asked:
        return f"serial {before.serial} -> {after.serial} with {asked} questions"
    if not asked:
        entered = after.phase in ASKING and after.phase is not before.phase
        return f"{after.phase.value} without a question" if entered else None
    question = (after.serial, after.offered)
    if before.limit_at_ms is not None and before.phase is after.phase is LinkPhase.LIVE:
        return "asks again though an answer is awaited"
    if after.phase in (LinkPhase.PROBING, LinkPhase.LIVE):
        right, ours = [RequestDiscover(*question)] == discovers, edge.policy.modern_versions
    else:
        right, ours = [RequestInitialize(*question)] == initializes, edge.policy.legacy_versions
    if (
        asked > 1
        or after.phase not in (*ASKING, LinkPhase.LIVE)
        or not right
        or after.offered not in ours
    ):
        return f"asks {discovers} {initializes} in {after.phase.value}"
    return None


def late_for_the_link(edge: LinkEdge) -> str | None:
    """What belongs to another epoch or question changes nothing. Rule: LIFE-39, REC-03."""
    before, heard = edge.before, edge.heard
    late = isinstance(heard, _OF_AN_EPOCH) and heard.epoch != before.epoch
    late = late or (isinstance(heard, _ANSWERS) and heard.serial != before.serial)
    return "something late changed the link" if late and edge.after is not before else None


def time_is_set(edge: LinkEdge) -> str | None:
    """Every wait has an end, and nothing else has one. Rule: LIFE-30, FAIL-21."""
    after, now_ms, policy = edge.after, edge.heard.now_ms, edge.policy
    awaits = after.phase in (LinkPhase.OPENING, *ASKING)
    asks_again = after.phase is LinkPhase.LIVE and after.era is Era.MODERN
    if (after.limit_at_ms is not None) is not awaits and not asks_again:
        return f"{after.phase.value} with limit {after.limit_at_ms}"
    overdue = after.limit_at_ms is not None and after.limit_at_ms <= now_ms
    if overdue and isinstance(edge.heard, i.TimePassed):
        return "waits beyond its limit"
    if (after.due_at_ms is not None) is not (after.phase is LinkPhase.WAITING):
        return f"{after.phase.value}, due at {after.due_at_ms}"
    longest_ms = max(policy.backoff_max_ms, policy.retry_after_max_ms)
    if after.due_at_ms is not None and after.due_at_ms - now_ms > longest_ms:
        return f"waits {after.due_at_ms - now_ms} ms"
    parked = any(isinstance(told, NeedCredentials) for told in edge.effects)
    entered = after.phase is LinkPhase.PARKED is not edge.before.phase
    return None if parked is entered else f"{after.phase.value}, credentials asked for: {parked}"


def live_is_known(edge: LinkEdge) -> str | None:
    """A live link has an era and a version that we speak. Rule: LIFE-03, LIFE-05, LIFE-06.

    ``initialized`` is sent once, on becoming live in the legacy era.
    """
    before, after, policy = edge.before, edge.after, edge.policy
    entered = after.phase is LinkPhase.LIVE is not before.phase
    told = [told.version for told in edge.effects if isinstance(told, SendInitialized)]
    if told != ([after.version] if entered and after.era is Era.LEGACY else []):
        return f"initialized {told}, {after.phase.value} in era {after.era}"
    if after.phase is not LinkPhase.LIVE:
        return None
    ours = policy.modern_versions if after.era is Era.MODERN else policy.legacy_versions
    return None if after.era and after.version in ours else f"live at {after.version!r}"


LINK_ALWAYS: Mapping[str, Callable[[LinkEdge], str | None]] = {
    "one-transport": one_transport,
    "one-question": one_question,
    "late-for-the-link": late_for_the_link,
    "link-is-heeded": link_is_heeded,
    "link-goes-for-its-reason": link_goes_for_its_reason,
    "time-is-set": time_is_set,
    "live-is-known": live_is_known,
}


def granted_is_open(edge: ListenEdge) -> str | None:
    """Only an open channel grants anything, and only what was asked for. Rule: SUB-05, SUB-40."""
    after = edge.after
    stands = after.phase in (ListenPhase.OPEN, ListenPhase.RENEWING)
    if stands is (after.stream is None) or (after.granted and not stands):
        return f"{after.phase.value}, stream {after.stream}, granted {len(after.granted)}"
    asked = after.topics | edge.before.granted  # a stream stands until another takes over
    return None if after.granted <= asked else "granted what was not asked for"


def late_for_push(edge: ListenEdge) -> str | None:
    """Another stream opens and ends nothing. Rule: SUB-14, SUB-19."""
    heard, ours = edge.heard, (edge.before.serial, edge.before.stream)
    late = isinstance(heard, i.PushOpened | i.PushEnded) and heard.serial not in ours
    return "another stream changed the channel" if late and edge.after is not edge.before else None


def one_listen(edge: ListenEdge) -> str | None:
    """A subscription is asked for once, with a new serial. Rule: SUB-01, SUB-17, SUB-24, SUB-34.

    What is asked for or stands is cancelled as soon as it is not needed any more, unless it has
    ended or the link is gone.
    """
    before, after, heard = edge.before, edge.after, edge.heard
    asked = [told for told in edge.effects if isinstance(told, OpenListen)]
    cancelled = [told.serial for told in edge.effects if isinstance(told, CancelListen)]
    rises = after.serial - before.serial
    waits = after.phase in (ListenPhase.ASKED, ListenPhase.RENEWING)
    if rises not in (0, 1) or (rises and not waits):
        return f"serial {before.serial} -> {after.serial} in {after.phase.value}"
    subscribes = after.carrier is Carrier.SUBSCRIPTION
    expected = [OpenListen(after.serial, after.topics)] if rises and subscribes else []
    if asked != expected or (rises and not after.topics):
        return f"asks {asked} instead of {expected}"
    ended = {heard.serial} if isinstance(heard, i.PushEnded) else set[int]()
    gone = isinstance(heard, i.PushReleased)
    surplus = set[int]() if gone else _subscriptions(before) - _subscriptions(after) - ended
    return None if sorted(cancelled) == sorted(surplus) else f"cancels {cancelled}, not {surplus}"


def _subscriptions(listen: Listen) -> set[int]:
    """The subscriptions that stand or are asked for."""
    if listen.carrier is not Carrier.SUBSCRIPTION:
        return set()
    asked = listen.serial if listen.limit_at_ms is not None else None
    return {serial for serial in (listen.stream, asked) if serial is not None}


def push_time_is_set(edge: ListenEdge) -> str | None:
    """An acknowledgement has a limit, a rest an end, an open stream neither. Rule: SUB-29, SUB-30.

    An open stream that is to be replaced may have a time to try again. The legacy stream is the
    transport's to open again, so its rest has no end of ours.
    """
    after, now_ms = edge.after, edge.heard.now_ms
    waits = after.phase in (ListenPhase.ASKED, ListenPhase.RENEWING)
    if (after.limit_at_ms is not None) is not waits:
        return f"{after.phase.value} with limit {after.limit_at_ms}"
    rests = after.phase is ListenPhase.RESTING and after.carrier is Carrier.SUBSCRIPTION
    outdated = after.phase is ListenPhase.OPEN and after.stream != after.serial
    if (after.due_at_ms is not None) is not rests and not outdated:
        return f"{after.phase.value}, due at {after.due_at_ms}"
    longest_ms = max(edge.policy.backoff_max_ms, edge.policy.retry_after_max_ms)
    if after.due_at_ms is not None and after.due_at_ms - now_ms > longest_ms:
        return f"rests {after.due_at_ms - now_ms} ms"
    return None


LISTEN_ALWAYS: Mapping[str, Callable[[ListenEdge], str | None]] = {
    "granted-is-open": granted_is_open,
    "late-for-push": late_for_push,
    "one-listen": one_listen,
    "push-is-heeded": push_is_heeded,
    "push-time-is-set": push_time_is_set,
}
