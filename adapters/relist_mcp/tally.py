"""How often what has happened so far: numbers that no state of the core holds. Pure.

Kept small: a process may hold ten thousand catalogs.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from attrs import evolve, frozen

from relist.values import KINDS, Kind, LinkPhase
from relist_mcp.events import Cause, Event, LinkMoved, Noted, Noticed, Outcome, WalkEnded
from relist_mcp.fold import Told
from relist_mcp.loop import Fed

_OUTCOMES = tuple(Outcome)


@frozen
class Walked:
    """What is kept of the last walk. All as in ``WalkEnded``."""

    at_ms: int
    cause: Cause
    outcome: Outcome
    reason: str
    pages: int
    entries: int
    duration_ms: int


@frozen
class KindTally:
    """Of one kind: notices heard and merged, walks that ended, and how the last one went.

    ``ended`` counts walks by outcome, in the order of ``Outcome``.
    """

    notices: int = 0
    merged: int = 0
    ended: tuple[int, ...] = (0,) * len(_OUTCOMES)
    last: Walked | None = None

    @property
    def walks(self) -> Mapping[Outcome, int]:
        """How many walks ended, by outcome; only what there was."""
        return {how: count for how, count in zip(_OUTCOMES, self.ended, strict=True) if count}


@frozen
class Tally:
    """Of one server: by kind, and how often its link was opened again and an answer came late.

    ``kinds`` is in the order of ``KINDS``.
    """

    kinds: tuple[KindTally, ...] = (KindTally(),) * len(KINDS)
    reconnects: int = 0
    late: int = 0

    def of(self, kind: Kind) -> KindTally:
        """The numbers of one kind."""
        return self.kinds[KINDS.index(kind)]


def tally(so_far: Tally, told: Iterable[Event]) -> Tally:
    """The numbers after these events."""
    for event in told:
        match event:
            case WalkEnded():
                so_far = _with(so_far, event.kind, _walked(so_far.of(event.kind), event))
            case Noticed():
                for kind in event.kinds:
                    known = so_far.of(kind)
                    notices, merged = known.notices + 1, known.merged + event.merged
                    heard = KindTally(notices, merged, known.ended, known.last)  # in a storm: quick
                    so_far = _with(so_far, kind, heard)
            case LinkMoved(after=LinkPhase.OPENING) if event.epoch > 1:
                so_far = evolve(so_far, reconnects=so_far.reconnects + 1)
            case Noted(late=True):
                so_far = evolve(so_far, late=so_far.late + 1)
            case _:
                pass
    return so_far


def _walked(known: KindTally, walk: WalkEnded) -> KindTally:
    last = Walked(
        walk.at_ms,
        walk.cause,
        walk.outcome,
        walk.reason,
        walk.pages,
        walk.entries,
        walk.duration_ms,
    )
    return evolve(known, ended=_one_more(known.ended, walk.outcome), last=last)


@lru_cache(maxsize=256)  # the same object for all whose walks went alike: for most
def _one_more(ended: tuple[int, ...], outcome: Outcome) -> tuple[int, ...]:
    counts = zip(_OUTCOMES, ended, strict=True)
    return tuple([count + (how is outcome) for how, count in counts])


def _with(so_far: Tally, kind: Kind, counted: KindTally) -> Tally:
    kinds = zip(KINDS, so_far.kinds, strict=True)
    kept = tuple([counted if one is kind else known for one, known in kinds])
    return Tally(kept, so_far.reconnects, so_far.late)


_START = Tally()


class Counter:
    """A watcher that counts."""

    __slots__ = ("tally",)

    def __init__(self) -> None:
        self.tally = _START

    def __call__(self, _: Fed, told: Told) -> None:
        """See ``fold.Watcher``."""
        self.tally = tally(self.tally, told)
