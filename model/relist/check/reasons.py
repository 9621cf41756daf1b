"""What the link and the channel for notices owe to what they hear: each thing has its effect.

The checks of ``joined`` say what must never come of a step; these say what must come of it.
"""

from relist import inputs as i
from relist.check.edge import ASKING, UP, LinkEdge, ListenEdge
from relist.effects import Note
from relist.failures import (
    AUTHORIZATION_STATUSES,
    MODERN_CODES,
    UNSUPPORTED_VERSION,
    lasts,
    says_nothing_about_the_era,
)
from relist.freshness import reached, rested
from relist.values import Carrier, Era, Failure, LinkPhase, ListenPhase, Topic, Wire

_Failed = i.DiscoverFailed | i.InitializeFailed
_Answered = _Failed | i.DiscoverAnswered | i.InitializeAnswered


def link_is_heeded(edge: LinkEdge) -> str | None:
    """What calls for something moves the link, and nothing else does. Rule: LIFE-12, FAIL-21.

    An act of the caller, a time that has come, an answer in time, news of the transport in use.
    What of the rest a peer could have known better is noted.
    """
    before, after, heard = edge.before, edge.after, edge.heard
    calls = _calls(edge)
    moved = (after.phase, after.epoch, after.serial, after.limit_at_ms) != (
        before.phase,
        before.epoch,
        before.serial,
        before.limit_at_ms,
    )
    if moved is not calls:
        return f"{type(heard).__name__} {'moved' if moved else 'did not move'} the link"
    news = isinstance(heard, _Answered | i.TransportOpened)
    news = news or (isinstance(heard, i.TransportLost) and before.phase in UP)
    news = news or (isinstance(heard, i.SessionExpired) and before.phase is LinkPhase.LIVE)
    noted = any(isinstance(told, Note) for told in edge.effects)
    return f"late, and {edge.effects} came of it" if news and not (calls or noted) else None


def _calls(edge: LinkEdge) -> bool:
    """Whether what was heard asks for something in this phase."""
    before, heard = edge.before, edge.heard
    match heard:
        case i.ConnectWanted():
            return before.phase not in UP
        case i.CloseWanted():
            return before.phase is not LinkPhase.CLOSED
        case i.CredentialsChanged():
            return before.phase not in (LinkPhase.CLOSED, LinkPhase.REFUSED)
        case i.DiscoveryWanted():
            refuted = heard.doubted and rested(before.refutable_at_ms, heard.now_ms)
            outdated = refuted or reached(before.expires_at_ms, heard.now_ms)
            asks = before.phase is LinkPhase.LIVE and before.era is Era.MODERN
            return outdated and asks and before.limit_at_ms is None
        case i.TimePassed():
            times = (before.limit_at_ms, before.due_at_ms)
            return any(reached(at_ms, heard.now_ms) for at_ms in times)
        case i.TransportOpened():
            return heard.epoch == before.epoch and before.phase is LinkPhase.OPENING
        case i.TransportLost():
            return heard.epoch == before.epoch and before.phase in UP
        case i.SessionExpired():
            return heard.epoch == before.epoch and before.phase is LinkPhase.LIVE
        case i.DiscoverAnswered() | i.DiscoverFailed():
            asked = before.phase in (LinkPhase.PROBING, LinkPhase.LIVE)
            return asked and heard.serial == before.serial and before.limit_at_ms is not None
        case _:
            return heard.serial == before.serial and before.phase is LinkPhase.HANDSHAKING


def link_goes_for_its_reason(edge: LinkEdge) -> str | None:
    """Each verdict has its own kind of reason, and none is passed over.

    CLOSED by the caller, who begins anew; PARKED for want of authorization; REFUSED where nothing
    is shared; legacy where it is proved. A session is replaced at once if nothing failed before it,
    and a live link if its version is given up. Rule: LIFE-05, LIFE-12, LIFE-26, LIFE-30.
    """
    before, after, heard = edge.before, edge.after, edge.heard
    opens = before.phase in ASKING
    reasons = {
        LinkPhase.CLOSED: isinstance(heard, i.CloseWanted),
        LinkPhase.PARKED: opens and isinstance(heard, _Failed) and _unauthorized(heard.failure),
        LinkPhase.REFUSED: opens and _shares_nothing(edge),
    }
    if before.phase is LinkPhase.PROBING:
        reasons[LinkPhase.HANDSHAKING] = _proves_legacy(edge)
    if before.phase is LinkPhase.LIVE and isinstance(heard, i.DiscoverAnswered):
        reasons[LinkPhase.OPENING] = before.version not in heard.supported
    calls = _calls(edge)
    for phase, holds in reasons.items():
        if (after.phase is phase is not before.phase) is not (calls and holds):
            return f"{type(heard).__name__}: {before.phase.value} -> {after.phase.value}"
    if after.phase is LinkPhase.CLOSED and after.failures:
        return f"closed, with {after.failures} failures"
    first = calls and isinstance(heard, i.SessionExpired) and not before.failures
    return "the first expiry waits" if first and after.phase is not LinkPhase.OPENING else None


def _unauthorized(failure: Failure) -> bool:
    return failure.status in AUTHORIZATION_STATUSES and failure.code not in MODERN_CODES


def _listed(edge: LinkEdge) -> tuple[bool, bool] | None:
    """Whether the server names a modern and a legacy version of ours; None if it names none.

    A modern version that was tried already is none. Only -32020 to -32022 speak of versions.
    """
    heard, policy = edge.heard, edge.policy
    if isinstance(heard, i.DiscoverAnswered):
        named, modern = heard.supported, policy.modern_versions
    elif isinstance(heard, i.InitializeAnswered):
        named, modern = (heard.version,), ()
    elif isinstance(heard, _Failed) and heard.failure.code in MODERN_CODES:
        speaks = heard.failure.code == UNSUPPORTED_VERSION
        named = heard.failure.supported if speaks else ()
        modern = () if edge.before.retried else policy.modern_versions
    else:
        return None
    return not {*named}.isdisjoint(modern), not {*named}.isdisjoint(policy.legacy_versions)


def _shares_nothing(edge: LinkEdge) -> bool:
    listed = _listed(edge)
    if listed is None:
        return not edge.policy.legacy_versions and _proves_legacy(edge)
    return not any(listed)


def _proves_legacy(edge: LinkEdge) -> bool:
    """Silence does on a pipe, and any failure that is not a modern server's or an outage's."""
    heard, listed = edge.heard, _listed(edge)
    if listed is not None:
        return listed == (False, True)
    if isinstance(heard, i.TimePassed):
        return edge.before.wire is Wire.PIPE
    if not isinstance(heard, i.DiscoverFailed) or _unauthorized(heard.failure):
        return False
    answered = heard.failure.code is not None or heard.failure.status is not None
    return answered and not says_nothing_about_the_era(heard.failure)


def push_is_heeded(edge: ListenEdge) -> str | None:
    """What is heard of push counts at once and wholly, or is noted. Rule: SUB-05, SUB-20, SUB-34.

    What a pipe or a stream grants is had, what is wanted is asked for, a time that has come is
    kept, and an end ends it: for good where the server has no such thing or does not allow it.
    """
    before, after, heard = edge.before, edge.after, edge.heard
    leads_to = _leads_to(edge)
    if after.phase is not leads_to:
        return f"{type(heard).__name__}: {before.phase.value} -> {after.phase.value}"
    granted = _granted(edge)
    if after.phase in (ListenPhase.OPEN, ListenPhase.RENEWING) and after.granted != granted:
        return f"granted {len(after.granted)} of {len(granted)} topics"
    if isinstance(heard, i.PushWanted) and _asks_otherwise(edge):
        if after.topics != heard.topics:
            return "asks for something else than is wanted"
    elif isinstance(heard, i.PushWanted) and leads_to is before.phase and after is not before:
        return "the same was wanted, and something changed"
    late = isinstance(heard, i.PushOpened | i.PushEnded) and after is before
    noted = any(isinstance(told, Note) for told in edge.effects)
    return "late, and not noted" if late and not noted else None


def _asks_otherwise(edge: ListenEdge) -> bool:
    before, heard = edge.before, edge.heard
    if not isinstance(heard, i.PushWanted) or not heard.topics:
        return False
    changes = before.carrier is Carrier.SUBSCRIPTION and heard.topics != before.topics
    return changes or before.phase is ListenPhase.OFF


def _granted(edge: ListenEdge) -> frozenset[Topic]:
    """What is had if a channel stands: a stream keeps what it grants until another takes over."""
    before, heard = edge.before, edge.heard
    if isinstance(heard, i.PushWanted) and before.phase is ListenPhase.OFF:
        return heard.topics
    if isinstance(heard, i.PushOpened) and edge.after is not before:
        return before.topics & heard.topics
    return before.granted


def _leads_to(edge: ListenEdge) -> ListenPhase:
    """The phase that follows."""
    before, heard = edge.before, edge.heard
    match heard:
        case i.PushReleased():
            return ListenPhase.OFF
        case i.PushWanted():
            return _wish_leads_to(edge, heard)
        case i.PushOpened() if heard.serial == before.serial:
            streams = before.carrier is not Carrier.SUBSCRIPTION
            waits = before.phase in (ListenPhase.ASKED, ListenPhase.RENEWING)
            opens = waits or (streams and before.phase is ListenPhase.RESTING)
            return ListenPhase.OPEN if opens else before.phase
        case i.PushEnded():
            return _end_leads_to(edge, heard)
        case i.TimePassed() if reached(before.limit_at_ms, heard.now_ms):
            old = before.phase is ListenPhase.RENEWING
            return ListenPhase.OPEN if old else ListenPhase.RESTING
        case i.TimePassed() if reached(before.due_at_ms, heard.now_ms):
            old = before.phase is ListenPhase.OPEN
            return ListenPhase.RENEWING if old else ListenPhase.ASKED
        case _:
            return before.phase


def _wish_leads_to(edge: ListenEdge, heard: i.PushWanted) -> ListenPhase:
    before = edge.before
    if before.phase is ListenPhase.OFF:
        carried = heard.carrier is Carrier.PIPE
        asked = ListenPhase.OPEN if carried else ListenPhase.ASKED
        return asked if heard.topics else before.phase
    if before.carrier is Carrier.SUBSCRIPTION and not heard.topics:
        return ListenPhase.OFF
    renews = before.phase is ListenPhase.OPEN and _asks_otherwise(edge)
    return ListenPhase.RENEWING if renews else before.phase


def _end_leads_to(edge: ListenEdge, heard: i.PushEnded) -> ListenPhase:
    before, failure = edge.before, heard.failure
    if before.phase is ListenPhase.RENEWING:
        if heard.serial == before.serial:
            return ListenPhase.OPEN
        return ListenPhase.ASKED if heard.serial == before.stream else before.phase
    stands = before.stream if before.phase is ListenPhase.OPEN else before.serial
    if heard.serial != stands or before.phase not in (ListenPhase.ASKED, ListenPhase.OPEN):
        return before.phase
    for_good = failure is not None and (lasts(failure) or failure.status == 405)
    return ListenPhase.OFF if for_good else ListenPhase.RESTING
