"""Every SHOULD and MAY as a validated value. All durations are milliseconds.

There is no default seed: jitter must differ between processes, and only the adapter may be random.
"""

from enum import Enum
from hashlib import sha256
from typing import Any

import attrs
from attrs import field

from relist.errors import PolicyError
from relist.frozen import frozen
from relist.values import Failure


def _at_least(minimum: int) -> Any:
    def check(_: object, attribute: "attrs.Attribute[int]", value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise PolicyError(f"policy.{attribute.name} must be an integer >= {minimum}: {value!r}")

    return check


def _maybe_at_least(minimum: int) -> Any:
    return attrs.validators.optional(_at_least(minimum))


def _a(kind: type) -> Any:
    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if not isinstance(value, kind):
            raise PolicyError(f"policy.{attribute.name} must be of type {kind.__name__}: {value!r}")

    return check


def _all(container: type[tuple[Any, ...]] | type[frozenset[Any]], kind: type) -> Any:
    def check(_: object, attribute: "attrs.Attribute[Any]", value: Any) -> None:
        if type(value) is not container or not all(isinstance(one, kind) for one in value):
            wanted = f"{container.__name__} of {kind.__name__}"
            raise PolicyError(f"policy.{attribute.name} must be a {wanted}: {value!r}")

    return check


def doublings(base_ms: int, max_ms: int) -> int:
    """How often ``base_ms`` is doubled until it is at least ``max_ms``."""
    times = 0
    while base_ms << times < max_ms:
        times += 1
    return times


class Risk(Enum):
    """How much harm a call can do, as the host judges: a server's annotations prove nothing."""

    READ_ONLY = "read only"
    SIDE_EFFECTS = "side effects"
    DESTRUCTIVE = "destructive"


@frozen(kw_only=True)
class Policy:
    """How a client behaves where the specification leaves it a choice.

    Raises PolicyError for a value out of range or an impossible combination.
    """

    seed: bytes = field(validator=_a(bytes))
    modern_versions: tuple[str, ...] = field(default=("2026-07-28",), validator=_all(tuple, str))
    legacy_versions: tuple[str, ...] = field(
        default=("2025-11-25", "2025-06-18", "2025-03-26"), validator=_all(tuple, str)
    )

    # Notices: one window from the first doubt, then a gap that grows under feedback (0010).
    gather_ms: int = field(default=50, validator=_at_least(0))  # how long a first doubt waits
    gap_base_ms: int = field(default=100, validator=_at_least(1))  # the first gap; it doubles
    gap_max_ms: int = field(default=30_000, validator=_at_least(1))  # where it stops growing
    lazy: bool = field(default=False, validator=_a(bool))  # list only when somebody asks (TTL-09)
    # How long a list that lost its push waits for push to come back (0005).
    uncovered_grace_ms: int = field(default=1_000, validator=_at_least(0))

    # Walks: after how many spoiled ones in a row a spoiled list is published (ATOM-15), and bounds.
    spoiled_in_row_max: int = field(default=3, validator=_at_least(1))
    request_limit_ms: int = field(default=30_000, validator=_at_least(1))  # of one answer (FAIL-09)
    walk_limit_ms: int = field(default=300_000, validator=_at_least(1))  # of all pages (DISC-16)
    pages_max: int = field(default=1_000, validator=_at_least(1))
    items_max: int = field(default=100_000, validator=_at_least(1))
    bytes_max: int = field(default=67_108_864, validator=_at_least(1))  # of one list: 64 MiB

    # Lifetime. None: no end (unvouched, discovery), never (poll, task).
    ttl_max_ms: int = field(
        default=86_400_000, validator=_at_least(0)
    )  # cap of a server's (TTL-08)
    # Of a list that names no lifetime and that push does not vouch for (TTL-06).
    unvouched_lifetime_ms: int | None = field(default=60_000, validator=_maybe_at_least(0))
    poll_ms: int | None = field(default=None, validator=_maybe_at_least(1))  # opt-in (TTL-11)
    # At the beginning of a task an uncovered list at least this old is renewed (TTL-35).
    task_max_age_ms: int | None = field(default=None, validator=_maybe_at_least(0))
    # Of what the server offers, if it names no lifetime; and the least distance between two
    # questions, whatever lifetime it names (0015).
    discovery_lifetime_ms: int | None = field(default=300_000, validator=_maybe_at_least(0))
    discovery_gap_ms: int = field(default=5_000, validator=_at_least(1))

    # Failure: capped exponential backoff, spread downwards by jitter (FAIL-02, FAIL-07).
    backoff_base_ms: int = field(default=500, validator=_at_least(1))
    backoff_max_ms: int = field(default=60_000, validator=_at_least(1))
    retry_after_max_ms: int = field(default=3_600_000, validator=_at_least(0))  # cap of a server's
    jitter_percent: int = field(default=50, validator=_at_least(0))

    # Resource contents: what is kept, and how many are watched at once.
    contents_max: int = field(default=256, validator=_at_least(0))
    contents_bytes_max: int = field(default=67_108_864, validator=_at_least(0))
    subscriptions_max: int = field(default=1_000, validator=_at_least(0))

    # Calls: how old an uncovered or expired list may be before it is verified first (CALL-05), and
    # which risks may go ahead when a doubt could not be cleared (CALL-06).
    verify_after_ms: int = field(default=300_000, validator=_at_least(0))
    risks_on_doubt: frozenset[Risk] = field(
        default=frozenset({Risk.READ_ONLY}), validator=_all(frozenset, Risk)
    )

    # Link and listen: how long each answer is waited for. A link or stream that stood for
    # ``healthy_ms`` starts its count of failures anew.
    open_limit_ms: int = field(default=30_000, validator=_at_least(1))
    probe_limit_ms: int = field(default=10_000, validator=_at_least(1))  # LIFE-30
    handshake_limit_ms: int = field(default=60_000, validator=_at_least(1))
    ack_limit_ms: int = field(default=5_000, validator=_at_least(1))  # SUB-30
    healthy_ms: int = field(default=10_000, validator=_at_least(1))
    # Whether a legacy process that was restarted is still taken for legacy (LIFE-37).
    remember_process_era: bool = field(default=False, validator=_a(bool))

    def __attrs_post_init__(self) -> None:
        """Refuse combinations that cannot be kept."""
        if not self.seed:
            raise PolicyError("policy.seed must not be empty: the adapter supplies the randomness")
        if self.jitter_percent > 100:
            raise PolicyError(f"policy.jitter_percent must be <= 100: {self.jitter_percent!r}")
        for low, high in (
            ("gather_ms", "gap_max_ms"),
            ("gap_base_ms", "gap_max_ms"),
            ("backoff_base_ms", "backoff_max_ms"),
            ("request_limit_ms", "walk_limit_ms"),
        ):
            if getattr(self, low) > getattr(self, high):
                raise PolicyError(
                    f"policy.{low} ({getattr(self, low)}) must not exceed"
                    f" policy.{high} ({getattr(self, high)})"
                )
        self._refuse_contradictions()

    def _refuse_contradictions(self) -> None:
        modern, legacy = self.modern_versions, self.legacy_versions
        if not (modern or legacy):
            raise PolicyError("policy.modern_versions and policy.legacy_versions are both empty")
        if set(modern) & set(legacy):
            both = sorted(set(modern) & set(legacy))
            raise PolicyError(
                f"policy.modern_versions and policy.legacy_versions both name {both}: each version"
                " is of one era"
            )
        if self.poll_ms is not None and self.lazy:
            raise PolicyError(
                f"policy.poll_ms ({self.poll_ms}) lists by itself, policy.lazy only when asked"
            )
        if self.poll_ms is not None and self.jitter_percent == 100:
            raise PolicyError(
                f"policy.poll_ms ({self.poll_ms}) must be spread by less than all of it:"
                " policy.jitter_percent is 100"
            )

    def gap_ms(self, exponent: int) -> int:
        """The least distance between two listings while feedback has grown to ``exponent``."""
        return 0 if exponent == 0 else min(self.gap_base_ms << (exponent - 1), self.gap_max_ms)

    def gap_exponent_max(self) -> int:
        """The exponent at which the gap is ``gap_max_ms``: growing further changes nothing."""
        return 1 + doublings(self.gap_base_ms, self.gap_max_ms)

    def longer_gap(self, exponent: int) -> int:
        """The exponent after one more sign of feedback."""
        return min(exponent + 1, self.gap_exponent_max())

    def backoff_ms(
        self, failures: int, owner: str, serial: int, failure: Failure | None = None
    ) -> int:
        """Delay before try ``failures + 1``: capped exponential, spread downwards by jitter.

        Jitter is SHA-256 of (seed, owner, serial), so that the same state gives the same delay. A
        Retry-After of the failure may lengthen it up to ``retry_after_max_ms``.
        Rule: FAIL-02.
        """
        exponent = min(max(failures - 1, 0), 32)
        delay = min(self.backoff_base_ms << exponent, self.backoff_max_ms)
        spread = delay * self.jitter_percent // 100
        delay -= self._jitter(owner, serial) % (spread + 1)
        asked = failure.retry_after_ms if failure is not None else None
        return delay if asked is None else max(delay, min(asked, self.retry_after_max_ms))

    def next_poll_ms(self, now_ms: int, owner: str, serial: int) -> int | None:
        """When the opt-in poll is due, its period spread downwards by jitter. Rule: TTL-11."""
        period = self.poll_ms
        if period is None:
            return None
        spread = period * self.jitter_percent // 100
        return now_ms + period - self._jitter(owner, serial) % (spread + 1)

    def _jitter(self, owner: str, serial: int) -> int:
        text = b"\x00".join((self.seed, owner.encode(), str(serial).encode()))
        return int.from_bytes(sha256(text).digest()[:8], "big")
