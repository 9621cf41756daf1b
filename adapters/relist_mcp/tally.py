"""How often what has happened so far: numbers that no state of the core holds. Pure."""

from collections.abc import Iterable, Mapping

from attrs import Factory, evolve, field, frozen

from relist.values import KINDS, Kind, LinkPhase
from relist_mcp.events import Event, LinkMoved, Noted, Noticed, Outcome, WalkEnded
from relist_mcp.fold import Told
from relist_mcp.loop import Fed


@frozen
class KindTally:
    """Of one kind: notices heard and merged, walks by outcome, and how the last one went."""

    notices: int = 0
    merged: int = 0
    walks: Mapping[Outcome, int] = field(factory=dict[Outcome, int])
    last: WalkEnded | None = None


_NONE = KindTally()


@frozen
class Tally:
    """Of one server: by kind, and how often its link was opened again and an answer came late."""

    kinds: Mapping[Kind, KindTally] = Factory(lambda: dict.fromkeys(KINDS, _NONE))
    reconnects: int = 0
    late: int = 0


def tally(so_far: Tally, told: Iterable[Event]) -> Tally:
    """The numbers after these events."""
    for event in told:
        match event:
            case WalkEnded():
                so_far = _with(so_far, event.kind, _walked(so_far.kinds[event.kind], event))
            case Noticed():
                for kind in event.kinds:
                    known = so_far.kinds[kind]
                    notices, merged = known.notices + 1, known.merged + event.merged
                    heard = KindTally(notices, merged, known.walks, known.last)  # in a storm: quick
                    so_far = _with(so_far, kind, heard)
            case LinkMoved(after=LinkPhase.OPENING) if event.epoch > 1:
                so_far = evolve(so_far, reconnects=so_far.reconnects + 1)
            case Noted(late=True):
                so_far = evolve(so_far, late=so_far.late + 1)
            case _:
                pass
    return so_far


def _walked(known: KindTally, ended: WalkEnded) -> KindTally:
    walks = {**known.walks, ended.outcome: known.walks.get(ended.outcome, 0) + 1}
    return evolve(known, walks=walks, last=ended)


def _with(so_far: Tally, kind: Kind, counted: KindTally) -> Tally:
    return Tally({**so_far.kinds, kind: counted}, so_far.reconnects, so_far.late)


_START = Tally()


class Counter:
    """A watcher that counts."""

    def __init__(self) -> None:
        self.tally = _START

    def __call__(self, _: Fed, told: Told) -> None:
        """See ``fold.Watcher``."""
        self.tally = tally(self.tally, told)
