"""Looking at everything that can happen: breadth first over the moves of a world.

Every move is checked as it is made, every scene as it is met, and what must come in the end is
looked for in the *calm* world, where the server changes nothing more and answers in time: there,
no cycle that is fair and no end may hold a scene short of the goal. Breadth first, so the first
fault found is one of the shortest.
"""

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from attrs import frozen

from relist.check.cycles import components, surviving

SceneT = TypeVar("SceneT")


class Move(NamedTuple, Generic[SceneT]):
    """Something that can happen: its name, what comes of it, and what is wrong with that."""

    label: str
    scene: SceneT
    complaint: str | None


class Explorable(Protocol[SceneT]):
    """What can be explored. Scenes must be hashable, in normal form, and finitely many."""

    @property
    def name(self) -> str:
        """What reports call this world."""
        ...

    @property
    def urgent(self) -> frozenset[str]:
        """The moves of the calm world that come before all others."""
        ...

    @property
    def patient(self) -> frozenset[str]:
        """The moves of the calm world that come when nothing urgent can."""
        ...

    @property
    def timeless(self) -> frozenset[str]:
        """The moves that the peer can cause at once, without time passing or a caller acting."""
        ...

    @property
    def costly(self) -> frozenset[str]:
        """Those of them that may not go on for ever at one moment: they cost traffic."""
        ...

    @property
    def goals(self) -> Mapping[str, Callable[[SceneT], bool]]:
        """What must come in the calm world, and stay."""
        ...

    @property
    def reached(self) -> frozenset[str]:
        """What was seen so far of what must be possible."""
        ...

    def initial(self) -> SceneT:
        """Where everything begins."""
        ...

    def moves(self, scene: SceneT, /) -> Iterable[Move[SceneT]]:
        """Everything that can happen next, but for what changes nothing and breaks nothing."""
        ...

    def promise(self, scene: SceneT, /) -> str | None:
        """What is wrong with this scene."""
        ...

    def show(self, scene: SceneT, /) -> str:
        """The scene in one line."""
        ...


@frozen
class Counterexample:
    """How a promise breaks: each line is a move and the scene after it.

    With ``returns_to``, the last scene is the one after that line again: 0 is the very beginning.
    """

    claim: str
    lines: tuple[tuple[str, str], ...]
    returns_to: int | None = None

    def __str__(self) -> str:
        width = max((len(label) for label, _ in self.lines), default=0)
        numbered = (
            f"{number:4}. {label:<{width}}  {scene}"
            for number, (label, scene) in enumerate(self.lines, 1)
        )
        end = () if self.returns_to is None else (f"      and so on from {self.returns_to}.",)
        return "\n".join((self.claim, *numbered, *end))


@frozen
class Report:
    """What was found. ``depth``: the most moves it takes to come anywhere.

    ``reached`` is what of the must-be-possible was seen. If it is ``complete`` and there is no
    counterexample, everything was looked at and all promises hold.
    """

    world: str
    scenes: int
    moves: int
    depth: int
    reached: frozenset[str]
    complete: bool
    counterexample: Counterexample | None


Progress = Callable[[int, int], None]
"""Told now and then how many scenes were met, and how many of them are still to be looked at."""

PROGRESS_EVERY = 4096

Moves = tuple[tuple[str, int], ...]
"""The moves of a scene as (label, number of the scene it leads to)."""


def explore(
    world: Explorable[SceneT], progress: Progress | None = None, scenes_max: int | None = None
) -> Report:
    """Look at everything that can happen in a world, up to the first broken promise.

    After ``scenes_max`` scenes it stops without a verdict on what must come in the end.
    """
    search = _Search(world, progress, scenes_max)
    was_on = gc.isenabled()
    gc.disable()  # millions of small values, none of them in a cycle
    try:
        found = search.run()
        if found is None and search.complete:
            found = search.at_one_moment() or search.in_the_end()
    finally:
        if was_on:
            gc.enable()
    return search.report(found)


class _Search(Generic[SceneT]):
    def __init__(
        self, world: Explorable[SceneT], progress: Progress | None, scenes_max: int | None
    ) -> None:
        self.complete = True
        self._scenes_max = scenes_max
        self._world = world
        self._progress = progress
        self._urgent, self._patient = world.urgent, world.patient
        self._timeless = world.timeless
        first = world.initial()
        self._scenes = [first]
        self._index = {first: 0}
        self._came: list[tuple[int, str]] = [(-1, "")]
        self._depth = [0]
        self._calm: list[Moves] = []
        self._at_once: list[Moves] = []
        self._moves = 0

    def run(self) -> Counterexample | None:
        """Breadth first; the first broken promise."""
        world, scenes, index = self._world, self._scenes, self._index
        at = 0
        while at < len(scenes):
            scene = scenes[at]
            wrong = world.promise(scene)
            if wrong is not None:
                return self._shown(wrong, self._way_to(at))
            moves: list[tuple[str, int]] = []
            for label, after, complaint in world.moves(scene):
                self._moves += 1
                if complaint is not None:
                    return self._shown(complaint, [*self._way_to(at), (label, after)])
                to = index.get(after)
                if to is None:
                    to = index[after] = len(scenes)
                    scenes.append(after)
                    self._came.append((at, label))
                    self._depth.append(self._depth[at] + 1)
                moves.append((label, to))
            self._calm.append(self._in_calm(moves))
            self._at_once.append(tuple(move for move in moves if move[0] in self._timeless))
            at += 1
            if self._scenes_max is not None and len(scenes) > self._scenes_max:
                self.complete = False
                return None
            if self._progress is not None and at % PROGRESS_EVERY == 0:
                self._progress(len(scenes), len(scenes) - at)
        return None

    def _in_calm(self, moves: list[tuple[str, int]]) -> Moves:
        urgent = tuple(move for move in moves if move[0] in self._urgent)
        return urgent or tuple(move for move in moves if move[0] in self._patient)

    def at_one_moment(self) -> Counterexample | None:
        """The first circle in which a peer could hold us busy for ever at one moment."""
        targets = [tuple(to for _, to in moves) for moves in self._at_once]
        for circle in components(targets, surviving(targets)):
            for at in sorted(circle):
                for label, to in self._at_once[at]:
                    if to in circle and label in self._world.costly:
                        claim = "bounded-traffic: a circle without time"
                        return self._circle(claim, (at, label, to), circle, self._at_once)
        return None

    def in_the_end(self) -> Counterexample | None:
        """The first goal that some calm and fair course of events does not come to, or leaves."""
        targets = [tuple(to for _, to in moves) for moves in self._calm]
        for name, goal in self._world.goals.items():
            short = [not goal(scene) for scene in self._scenes]
            for at, moves in enumerate(targets):
                if not moves and short[at]:
                    return self._shown(f"{name}: it ends here", self._way_to(at))
            for circle in components(targets, surviving(targets)):
                missing = [at for at in circle if short[at]]
                if missing and self._fair(circle):
                    start = min(missing)
                    first = next((start, *move) for move in self._calm[start] if move[1] in circle)
                    claim = f"{name}: never, going in a circle"
                    return self._circle(claim, first, circle, self._calm)
        return None

    def _fair(self, circle: frozenset[int]) -> bool:
        """Whether going round for ever denies no move that stays possible all the time."""
        taken = {label for at in circle for label, to in self._calm[at] if to in circle}
        denied = {label for at in circle for label, _ in self._calm[at]} - taken
        for at in circle:
            denied.intersection_update(label for label, _ in self._calm[at])
        return not denied

    def _circle(
        self,
        claim: str,
        first: tuple[int, str, int],
        circle: frozenset[int],
        graph: Sequence[Moves],
    ) -> Counterexample:
        """The way to a circle, and once around it, beginning with this move of it."""
        start, label, after = first
        way = self._way_to(start)
        around = [(label, self._scenes[after]), *self._way_back(after, start, circle, graph)]
        return self._shown(claim, [*way, *around], len(way))

    def _way_back(
        self, start: int, end: int, circle: frozenset[int], graph: Sequence[Moves]
    ) -> list[tuple[str, SceneT]]:
        """A shortest way from one scene of a circle to another."""
        came: dict[int, tuple[int, str]] = {}
        pending = [start]
        for at in pending:
            for label, to in graph[at]:
                if to in circle and to not in came and to != start:
                    came[to] = (at, label)
                    pending.append(to)
        back: list[tuple[str, SceneT]] = []
        at = end
        while at != start:
            before, label = came[at]
            back.append((label, self._scenes[at]))
            at = before
        return back[::-1]

    def _way_to(self, at: int) -> list[tuple[str, SceneT]]:
        way: list[tuple[str, SceneT]] = []
        while at > 0:
            before, label = self._came[at]
            way.append((label, self._scenes[at]))
            at = before
        return way[::-1]

    def _shown(
        self, claim: str, way: list[tuple[str, SceneT]], returns_to: int | None = None
    ) -> Counterexample:
        lines = tuple((label, self._world.show(scene)) for label, scene in way)
        return Counterexample(claim, lines, returns_to)

    def report(self, found: Counterexample | None) -> Report:
        """What was seen."""
        return Report(
            self._world.name,
            len(self._scenes),
            self._moves,
            max(self._depth),
            self._world.reached,
            self.complete,
            found,
        )
