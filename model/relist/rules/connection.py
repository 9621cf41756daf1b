"""The guards and actions of the link chart: transport, era, version negotiation.

The era verdict follows requirements D-01 to D-05: one probe on a pipe or endpoint, remembered;
exactly three error codes prove a modern server; authorization, throttling, outages prove nothing.
"""

from enum import Enum

from attrs import evolve

from relist import inputs as i
from relist.effects import (
    CloseTransport,
    NeedCredentials,
    Note,
    OpenTransport,
    RequestDiscover,
    RequestInitialize,
    SendInitialized,
)
from relist.failures import (
    AUTHORIZATION_STATUSES,
    MODERN_CODES,
    UNSUPPORTED_VERSION,
    says_nothing_about_the_era,
)
from relist.freshness import reached
from relist.policy import Policy
from relist.rules.base import LinkStep
from relist.values import NO_CAPABILITIES, Era, Failure, Link, LinkPhase, Wire

Failed = i.DiscoverFailed | i.InitializeFailed
Answer = i.DiscoverAnswered | i.DiscoverFailed | i.InitializeAnswered | i.InitializeFailed
OfEpoch = i.TransportOpened | i.TransportLost | i.SessionExpired


def shared(ours: tuple[str, ...], theirs: tuple[str, ...]) -> str | None:
    """The version that we prefer among those both sides know. Rule: LIFE-24, LIFE-26."""
    return next((version for version in ours if version in theirs), None)


# --- guards: time and epochs ----------------------------------------------------------------------


def due(link: Link, heard: i.TimePassed, _: Policy) -> bool:
    """The backoff is over."""
    return reached(link.due_at_ms, heard.now_ms)


def not_due(link: Link, heard: i.TimePassed, policy: Policy) -> bool:
    """The backoff is not over."""
    return not due(link, heard, policy)


def overdue(link: Link, heard: i.TimePassed, _: Policy) -> bool:
    """No answer in time."""
    return reached(link.limit_at_ms, heard.now_ms)


def not_overdue(link: Link, heard: i.TimePassed, policy: Policy) -> bool:
    """An answer may still come in time."""
    return not overdue(link, heard, policy)


def silence_means_legacy(link: Link, heard: i.TimePassed, policy: Policy) -> bool:
    """On a pipe a probe without an answer proves a legacy server. Rule: LIFE-30."""
    legacy = link.wire is Wire.PIPE and bool(policy.legacy_versions)
    return overdue(link, heard, policy) and legacy


def silence_means_outage(link: Link, heard: i.TimePassed, policy: Policy) -> bool:
    """Over HTTP silence proves nothing about the era."""
    return overdue(link, heard, policy) and not silence_means_legacy(link, heard, policy)


def of_this_epoch(link: Link, heard: OfEpoch, _: Policy) -> bool:
    """About the transport that is in use."""
    return heard.epoch == link.epoch


def of_another_epoch(link: Link, heard: OfEpoch, policy: Policy) -> bool:
    """About a transport that was replaced. Rule: REC-03."""
    return not of_this_epoch(link, heard, policy)


def probes(link: Link, heard: i.TransportOpened, policy: Policy) -> bool:
    """A modern server is possible, so the era is asked for, though that is optional.

    Rule: LIFE-25, LIFE-27, LIFE-33, LIFE-36, LIFE-38.
    """
    return of_this_epoch(link, heard, policy) and not _legacy_known(link, policy)


def knows_legacy(link: Link, heard: i.TransportOpened, policy: Policy) -> bool:
    """The era is remembered (or nothing else is spoken), so it is not asked for again."""
    return of_this_epoch(link, heard, policy) and _legacy_known(link, policy)


def _legacy_known(link: Link, policy: Policy) -> bool:
    return bool(policy.legacy_versions) and (link.era is Era.LEGACY or not policy.modern_versions)


def first_expiry(link: Link, heard: i.SessionExpired, policy: Policy) -> bool:
    """A session that had proved healthy expired: a new one is opened at once. Rule: LIFE-12."""
    return of_this_epoch(link, heard, policy) and _failures(link, heard.now_ms, policy) == 0


def repeated_expiry(link: Link, heard: i.SessionExpired, policy: Policy) -> bool:
    """The session that replaced an expired one expired as well."""
    return of_this_epoch(link, heard, policy) and _failures(link, heard.now_ms, policy) > 0


# --- guards: answers ------------------------------------------------------------------------------


def late(link: Link, heard: Answer, _: Policy) -> bool:
    """Not the answer to the request that is on its way. Rule: LIFE-39."""
    return heard.serial != link.serial


def shares_modern(link: Link, heard: i.DiscoverAnswered, policy: Policy) -> bool:
    """A modern version is shared. Rule: LIFE-28."""
    found = shared(policy.modern_versions, heard.supported)
    return not late(link, heard, policy) and found is not None


def shares_only_legacy(link: Link, heard: i.DiscoverAnswered, policy: Policy) -> bool:
    """Only legacy versions are shared: a selection from the list, not an era fallback (D-04)."""
    return (
        not late(link, heard, policy)
        and shared(policy.modern_versions, heard.supported) is None
        and shared(policy.legacy_versions, heard.supported) is not None
    )


def shares_nothing(link: Link, heard: i.DiscoverAnswered, policy: Policy) -> bool:
    """No version is shared."""
    ours = policy.modern_versions + policy.legacy_versions
    return not late(link, heard, policy) and shared(ours, heard.supported) is None


def acceptable(link: Link, heard: i.InitializeAnswered, policy: Policy) -> bool:
    """The counter-offer is a version we implement."""
    return not late(link, heard, policy) and heard.version in policy.legacy_versions


def unacceptable(link: Link, heard: i.InitializeAnswered, policy: Policy) -> bool:
    """The counter-offer is none of ours: leave without listing. Rule: LIFE-05 (D-01)."""
    return not late(link, heard, policy) and heard.version not in policy.legacy_versions


class Verdict(Enum):
    """What a failed probe or handshake says."""

    CORRECT = "correct"  # modern; ask again at a version it listed
    HANDSHAKE = "handshake"  # legacy, or only legacy versions shared
    REFUSE = "refuse"  # nothing in common
    PARK = "park"  # authorization
    WAIT = "wait"  # nothing


def judge_probe(link: Link, failure: Failure, policy: Policy) -> Verdict:
    """The exact fallback rules, and where there is nothing to fall back to.

    Rule: LIFE-24, LIFE-29, LIFE-31, LIFE-32, LIFE-34, LIFE-35, LIFE-38, D-04, D-05.
    """
    if failure.code == UNSUPPORTED_VERSION:
        if shared(policy.modern_versions, failure.supported) and not link.retried:
            return Verdict.CORRECT
        listed = shared(policy.legacy_versions, failure.supported)
        return Verdict.HANDSHAKE if listed else Verdict.REFUSE
    if failure.code in MODERN_CODES:
        return Verdict.REFUSE
    if failure.status in AUTHORIZATION_STATUSES:
        return Verdict.PARK
    silent = failure.code is None and failure.status is None
    if says_nothing_about_the_era(failure) or silent:
        return Verdict.WAIT
    return Verdict.HANDSHAKE if policy.legacy_versions else Verdict.REFUSE


def _probe_says(link: Link, heard: Failed, policy: Policy, what: Verdict) -> bool:
    return not late(link, heard, policy) and judge_probe(link, heard.failure, policy) is what


def corrects_version(link: Link, heard: Failed, policy: Policy) -> bool:
    """The error lists a modern version that we speak: ask once more. Rule: LIFE-24."""
    return _probe_says(link, heard, policy, Verdict.CORRECT)


def proves_legacy(link: Link, heard: i.DiscoverFailed, policy: Policy) -> bool:
    """Not a modern server's error, whatever its code. Rule: LIFE-30, LIFE-31, LIFE-34."""
    return _probe_says(link, heard, policy, Verdict.HANDSHAKE)


def proves_no_common_version(link: Link, heard: Failed, policy: Policy) -> bool:
    """A modern server with which nothing is shared. Rule: LIFE-29."""
    return _probe_says(link, heard, policy, Verdict.REFUSE)


def unavailable(link: Link, heard: i.DiscoverFailed, policy: Policy) -> bool:
    """Throttled, broken or unreachable: says nothing about the era. Rule: LIFE-35."""
    return _probe_says(link, heard, policy, Verdict.WAIT)


def unauthorized(link: Link, heard: Failed, policy: Policy) -> bool:
    """Authorization failed. Rule: FAIL-04, LIFE-35."""
    return _probe_says(link, heard, policy, Verdict.PARK)


def handshake_failed(link: Link, heard: i.InitializeFailed, policy: Policy) -> bool:
    """Any other failure of initialize is tried again later."""
    return not (
        late(link, heard, policy)
        or corrects_version(link, heard, policy)
        or proves_no_common_version(link, heard, policy)
        or unauthorized(link, heard, policy)
    )


# --- actions --------------------------------------------------------------------------------------


def _failures(link: Link, now_ms: int, policy: Policy) -> int:
    """Failures in a row; a link that was live for ``healthy_ms`` has proved itself."""
    if link.live_at_ms is not None and now_ms - link.live_at_ms >= policy.healthy_ms:
        return 0
    return link.failures


def _opening(link: Link, now_ms: int, failures: int, policy: Policy, to: LinkPhase) -> Link:
    """In a new epoch no version and no capability is known any more. Rule: LIFE-13, LIFE-36."""
    era = link.era if link.wire is Wire.HTTP else None  # a new process may be another server
    return evolve(
        link,
        phase=to,
        epoch=link.epoch + 1,
        limit_at_ms=now_ms + policy.open_limit_ms,
        due_at_ms=None,
        failures=failures,
        live_at_ms=None,
        era=era,
        retried=False,
        version="",
        capabilities=NO_CAPABILITIES,
    )


def open_transport(link: Link, heard: i.LinkInput, policy: Policy, to: LinkPhase) -> LinkStep:
    """Open a transport in a new epoch."""
    opening = _opening(link, heard.now_ms, link.failures, policy, to)
    return LinkStep(opening, (OpenTransport(opening.epoch),))


def renew(link: Link, heard: i.LinkInput, policy: Policy, to: LinkPhase) -> LinkStep:
    """Replace the transport at once: an expired session, other credentials. Rule: LIFE-12."""
    failures = _failures(link, heard.now_ms, policy) + isinstance(heard, i.SessionExpired)
    opening = _opening(link, heard.now_ms, failures, policy, to)
    return LinkStep(opening, (CloseTransport(link.epoch), OpenTransport(opening.epoch)))


def close(link: Link, _: i.CloseWanted, __: Policy, to: LinkPhase) -> LinkStep:
    """The caller is done. A transport that is lost or closed already is not closed again."""
    closed = evolve(link, phase=to, limit_at_ms=None, due_at_ms=None, failures=0, live_at_ms=None)
    gone = link.phase in (LinkPhase.WAITING, LinkPhase.PARKED, LinkPhase.REFUSED)
    return LinkStep(closed, () if gone else (CloseTransport(link.epoch),))


def lose(link: Link, heard: i.LinkInput, policy: Policy, to: LinkPhase) -> LinkStep:
    """The transport is gone: open it again after a backoff. Rule: FAIL-21, REC-09."""
    failures = _failures(link, heard.now_ms, policy) + 1
    failure = heard.failure if isinstance(heard, Failed) else None
    due_at_ms = heard.now_ms + policy.backoff_ms(failures, "link", link.epoch, failure)
    return LinkStep(
        evolve(
            link,
            phase=to,
            limit_at_ms=None,
            due_at_ms=due_at_ms,
            failures=failures,
            live_at_ms=None,
        )
    )


def give_up(link: Link, heard: i.LinkInput, policy: Policy, to: LinkPhase) -> LinkStep:
    """This transport is no good: close it and try a new one later."""
    lost, _ = lose(link, heard, policy, to)
    return LinkStep(lost, (CloseTransport(link.epoch),))


def park(link: Link, _: Answer, __: Policy, to: LinkPhase) -> LinkStep:
    """Nothing is tried until credentials change. Rule: FAIL-04."""
    parked = evolve(link, phase=to, limit_at_ms=None)
    return LinkStep(parked, (CloseTransport(link.epoch), NeedCredentials(None)))


def refuse(link: Link, heard: Answer, _: Policy, to: LinkPhase) -> LinkStep:
    """No common version: leave without listing anything. Rule: LIFE-05, LIFE-24."""
    note = Note("LIFE-05", "no common protocol version", (type(heard).__name__,))
    return LinkStep(evolve(link, phase=to, limit_at_ms=None), (CloseTransport(link.epoch), note))


def _asking(link: Link, version: str, limit_at_ms: int, to: LinkPhase) -> Link:
    """The next request of the link is on its way."""
    serial = link.serial + 1
    return evolve(link, phase=to, serial=serial, limit_at_ms=limit_at_ms, offered=version)


def _probing(link: Link, version: str, now_ms: int, policy: Policy, to: LinkPhase) -> LinkStep:
    asking = _asking(link, version, now_ms + policy.probe_limit_ms, to)
    return LinkStep(asking, (RequestDiscover(asking.serial, version),))


def probe(link: Link, heard: i.TransportOpened, policy: Policy, to: LinkPhase) -> LinkStep:
    """Ask which era the server is of, at the version we prefer. Rule: LIFE-27."""
    return _probing(link, policy.modern_versions[0], heard.now_ms, policy, to)


def probe_listed(link: Link, heard: Failed, policy: Policy, to: LinkPhase) -> LinkStep:
    """Ask again, at a version that the error listed. Rule: LIFE-24."""
    version = shared(policy.modern_versions, heard.failure.supported)
    assert version is not None  # the guard says so
    return _probing(evolve(link, retried=True), version, heard.now_ms, policy, to)


def _shaking(link: Link, version: str, now_ms: int, policy: Policy, to: LinkPhase) -> LinkStep:
    asking = _asking(link, version, now_ms + policy.handshake_limit_ms, to)
    return LinkStep(asking, (RequestInitialize(asking.serial, version),))


def shake(link: Link, heard: i.LinkInput, policy: Policy, to: LinkPhase) -> LinkStep:
    """Open a legacy session at the version we prefer. Rule: LIFE-01, LIFE-04."""
    return _shaking(link, policy.legacy_versions[0], heard.now_ms, policy, to)


def shake_listed(
    link: Link, heard: i.DiscoverAnswered | i.DiscoverFailed, policy: Policy, to: LinkPhase
) -> LinkStep:
    """Open a legacy session at a version the server listed, if it listed any (D-04)."""
    listed = heard.supported if isinstance(heard, i.DiscoverAnswered) else heard.failure.supported
    version = shared(policy.legacy_versions, listed) or policy.legacy_versions[0]
    return _shaking(link, version, heard.now_ms, policy, to)


def go_modern(link: Link, heard: i.DiscoverAnswered, policy: Policy, to: LinkPhase) -> LinkStep:
    """The server is modern, and stays so. Rule: LIFE-26, LIFE-28, LIFE-36."""
    version = shared(policy.modern_versions, heard.supported) or ""
    return LinkStep(
        evolve(
            link,
            phase=to,
            limit_at_ms=None,
            live_at_ms=heard.now_ms,
            era=Era.MODERN,
            version=version,
            capabilities=heard.capabilities,
        )
    )


def go_legacy(link: Link, heard: i.InitializeAnswered, _: Policy, to: LinkPhase) -> LinkStep:
    """The session stands; ``initialized`` is sent before any list request. Rule: LIFE-03."""
    live = evolve(
        link,
        phase=to,
        limit_at_ms=None,
        live_at_ms=heard.now_ms,
        era=Era.LEGACY,
        version=heard.version,
        capabilities=heard.capabilities,
    )
    return LinkStep(live, (SendInitialized(heard.version),))


def nothing(link: Link, _: object, __: Policy, ___: LinkPhase) -> LinkStep:
    """The same state object, and no effect."""
    return LinkStep(link)


def note_late(link: Link, heard: i.LinkInput, _: Policy, __: LinkPhase) -> LinkStep:
    """It belongs to something given up, and changes nothing. Rule: LIFE-39, REC-03."""
    return LinkStep(link, (Note("LIFE-39", "late for the link", (type(heard).__name__,)),))
