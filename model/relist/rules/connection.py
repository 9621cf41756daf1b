"""The guards and actions of the link chart on its transport: opened, lost, replaced, given up.

What is asked over it stands in ``negotiation.py``.
"""

from attrs import evolve

from relist import inputs as i
from relist.effects import CloseTransport, NeedCredentials, Note, OpenTransport
from relist.freshness import reached
from relist.policy import Policy
from relist.rules.base import LinkStep
from relist.values import NO_CAPABILITIES, Era, Link, LinkPhase, Wire

Failed = i.DiscoverFailed | i.InitializeFailed


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


def of_this_epoch(link: Link, heard: i.TransportInput, _: Policy) -> bool:
    """About the transport that is in use."""
    return heard.epoch == link.epoch


def of_another_epoch(link: Link, heard: i.TransportInput, policy: Policy) -> bool:
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


# --- actions --------------------------------------------------------------------------------------


def _failures(link: Link, now_ms: int, policy: Policy) -> int:
    """Failures in a row; a link that was live for ``healthy_ms`` has proved itself."""
    if link.live_at_ms is not None and now_ms - link.live_at_ms >= policy.healthy_ms:
        return 0
    return link.failures


def _opening(link: Link, now_ms: int, failures: int, policy: Policy, to: LinkPhase) -> Link:
    """In a new epoch no version and no capability is known any more.

    A new process may be another server; to remember its era is allowed. Rule: LIFE-13, LIFE-36,
    LIFE-37.
    """
    era = link.era if link.wire is Wire.HTTP or policy.remember_process_era else None
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
        expires_at_ms=None,
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


def park(link: Link, _: i.LinkAnswer, __: Policy, to: LinkPhase) -> LinkStep:
    """Nothing is tried until credentials change. Rule: FAIL-04."""
    parked = evolve(link, phase=to, limit_at_ms=None)
    return LinkStep(parked, (CloseTransport(link.epoch), NeedCredentials(None)))


def refuse(link: Link, heard: i.LinkAnswer, _: Policy, to: LinkPhase) -> LinkStep:
    """No common version: leave without listing anything. Rule: LIFE-05, LIFE-24."""
    note = Note("LIFE-05", "no common protocol version", (type(heard).__name__,))
    return LinkStep(evolve(link, phase=to, limit_at_ms=None), (CloseTransport(link.epoch), note))


def nothing(link: Link, _: object, __: Policy, ___: LinkPhase) -> LinkStep:
    """The same state object, and no effect."""
    return LinkStep(link)


def note_late(link: Link, heard: i.LinkInput, _: Policy, __: LinkPhase) -> LinkStep:
    """It belongs to something given up, and changes nothing. Rule: LIFE-39, REC-03."""
    return LinkStep(link, (Note("LIFE-39", "late for the link", (type(heard).__name__,)),))
