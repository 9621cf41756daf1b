"""The guards and actions of the link chart on eras, versions and what the server offers.

The era verdict follows requirements D-01 to D-05: one probe on a pipe or endpoint, remembered;
exactly three error codes prove a modern server; authorization, throttling, outages prove nothing.
"""

from enum import Enum

from attrs import evolve

from relist import inputs as i
from relist.effects import RequestDiscover, RequestInitialize, SendInitialized
from relist.failures import (
    AUTHORIZATION_STATUSES,
    MODERN_CODES,
    UNSUPPORTED_VERSION,
    says_nothing_about_the_era,
)
from relist.freshness import lifetime_ms, reached, rested
from relist.policy import Policy
from relist.rules.base import LinkStep
from relist.rules.connection import Failed, give_up
from relist.values import Era, Failure, Link, LinkPhase


def shared(ours: tuple[str, ...], theirs: tuple[str, ...]) -> str | None:
    """The version that we prefer among those both sides know. Rule: LIFE-24, LIFE-26."""
    return next((version for version in ours if version in theirs), None)


# --- guards: answers ------------------------------------------------------------------------------


def late(link: Link, heard: i.LinkAnswer, _: Policy) -> bool:
    """Not the answer to the request that is on its way. Rule: LIFE-39."""
    return heard.serial != link.serial or link.limit_at_ms is None


def timely(link: Link, heard: i.LinkAnswer, policy: Policy) -> bool:
    """The answer to the request that is on its way."""
    return not late(link, heard, policy)


def out_of_date(link: Link, heard: i.DiscoveryWanted, _: Policy) -> bool:
    """What discovery said has expired or is refuted, and nobody asks already.

    A server that offers what it refuses is asked once a gap, also over new links. Rule: LIFE-45.
    """
    refuted = heard.doubted and rested(link.refutable_at_ms, heard.now_ms)
    outdated = refuted or reached(link.expires_at_ms, heard.now_ms)
    return outdated and link.era is Era.MODERN and link.limit_at_ms is None


def up_to_date(link: Link, heard: i.DiscoveryWanted, policy: Policy) -> bool:
    """It has not, or the answer is on its way, or it lasts as long as the link."""
    return not out_of_date(link, heard, policy)


def still_speaks_it(link: Link, heard: i.DiscoverAnswered, policy: Policy) -> bool:
    """The version in force is still among those of the server."""
    return timely(link, heard, policy) and link.version in heard.supported


def speaks_it_no_more(link: Link, heard: i.DiscoverAnswered, policy: Policy) -> bool:
    """The server gave up the version in force: begin anew. Rule: LIFE-26."""
    return timely(link, heard, policy) and link.version not in heard.supported


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
            expires_at_ms=_expires_at_ms(heard, policy),
        )
    )


def _expires_at_ms(heard: i.DiscoverAnswered, policy: Policy) -> int | None:
    """When this is out of date: after its lifetime, but not sooner than policy asks again."""
    ttl_ms = lifetime_ms(heard.ttl_ms, policy)
    lifetime = policy.discovery_lifetime_ms if ttl_ms is None else ttl_ms
    return None if lifetime is None else heard.now_ms + max(lifetime, policy.discovery_gap_ms)


def discover_again(link: Link, heard: i.DiscoveryWanted, policy: Policy, to: LinkPhase) -> LinkStep:
    """Ask again what the server offers; until it answers, what is known holds. Rule: LIFE-45."""
    if heard.doubted:
        link = evolve(link, refutable_at_ms=heard.now_ms + policy.discovery_gap_ms)
    return _probing(link, link.version, heard.now_ms, policy, to)


def know_anew(link: Link, heard: i.DiscoverAnswered, policy: Policy, _: LinkPhase) -> LinkStep:
    """The server's present offer; the session tells whom it concerns. Rule: CAP-18, LIFE-45."""
    known = evolve(
        link,
        limit_at_ms=None,
        capabilities=heard.capabilities,
        expires_at_ms=_expires_at_ms(heard, policy),
    )
    return LinkStep(known)


def know_as_before(
    link: Link, heard: i.DiscoverFailed | i.TimePassed, policy: Policy, _: LinkPhase
) -> LinkStep:
    """No answer: what is known holds, and the next need after a backoff asks again."""
    failure = heard.failure if isinstance(heard, i.DiscoverFailed) else None
    delay_ms = policy.backoff_ms(1, "discovery", link.serial, failure)
    expires_at_ms = heard.now_ms + max(delay_ms, policy.discovery_gap_ms)
    return LinkStep(evolve(link, limit_at_ms=None, expires_at_ms=expires_at_ms))


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


def forget_era(link: Link, heard: i.InitializeFailed, policy: Policy, to: LinkPhase) -> LinkStep:
    """The same; a server that answers so may not be legacy any more: probe it. Rule: LIFE-37."""
    given_up, effects = give_up(link, heard, policy, to)
    answered = heard.failure.code is not None or heard.failure.status is not None
    wrong = answered and not says_nothing_about_the_era(heard.failure)
    return LinkStep(evolve(given_up, era=None) if wrong else given_up, effects)
