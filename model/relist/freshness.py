"""Lifetimes: from what a page says to the deadline of a snapshot."""

from relist.policy import Policy
from relist.values import Era, Walk


def lifetime_ms(raw: object, policy: Policy) -> int | None:
    """A peer's ``ttlMs`` as a safe lifetime: None when missing, 0 when negative or no integer.

    0 is over on arrival. Rule: TTL-04, TTL-07, TTL-08.
    """
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, int):
        return 0
    return max(0, min(raw, policy.ttl_max_ms))


def earliest(*moments: int | None) -> int | None:
    """The earliest of these moments, where None is never."""
    return min((at_ms for at_ms in moments if at_ms is not None), default=None)


def reached(at_ms: int | None, now_ms: int) -> bool:
    """Whether this moment has come; None never does. It has at the millisecond. Rule: TTL-02."""
    return at_ms is not None and now_ms >= at_ms


def rested(until_ms: int | None, now_ms: int) -> bool:
    """Whether no wait is set (None), or it is over."""
    return until_ms is None or now_ms >= until_ms


def snapshot_deadline_ms(walk: Walk, era: Era | None, vouched: bool, policy: Policy) -> int | None:
    """When the list of this walk expires; None means not before a notice.

    The minimum over pages of receipt plus lifetime. A page without one lives as long as push
    vouches for it, else as long as policy says, since no push does not mean no change; push without
    a notice lengthens no lifetime. A legacy peer's lifetimes mean nothing.

    Rule: CAP-07, TTL-06, TTL-15, TTL-16, TTL-32 (D-16).
    """
    named = walk.expires_at_ms if era is Era.MODERN else None
    if vouched or walk.bare_at_ms is None or policy.unvouched_lifetime_ms is None:
        return named
    return earliest(named, walk.bare_at_ms + policy.unvouched_lifetime_ms)
