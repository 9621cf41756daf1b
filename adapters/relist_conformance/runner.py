"""Which cells (case, transport, revision) are played, with what result, and what it means.

One play is somebody else's business (``play.py``) and comes in as a function: the runner decides
only what to play, how many at once, and what to make of it.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal

import anyio
import attrs

from relist.check.deviation import Deviation, first_deviation
from relist.check.history import History
from relist.check.judge import Finding
from relist_conformance.driver import LEVELS, Hello
from relist_conformance.errors import ConformanceError, quoted
from relist_conformance.script import Case
from relist_conformance.steps import (
    LONGEST_WAIT_MS,
    NAMES,
    OPTIONAL,
    Advance,
    Believe,
    Call,
    Need,
    Refresh,
    Step,
)

Word = Literal["pass", "warn", "fail", "inconclusive", "not_applicable", "untestable", "harness"]
"""The verdict on one cell. Only ``pass`` is green: what could not be tested has not passed."""


@attrs.frozen
class Cell:
    """One case on one transport in one protocol revision."""

    case: Case
    transport: str
    revision: str

    @property
    def where(self) -> str:
        """Transport and revision as one text for people."""
        return f"{self.transport} {self.revision}"


@attrs.frozen
class Observed:
    """What one play came to. ``reason`` says why a cell was not judged; ``lag_ms`` is the worst
    delay of the event loop while it was played, None when unknown."""

    word: Word
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    history: History = ()
    lag_ms: float | None = None

    @cached_property
    def deviation(self) -> Deviation | None:
        """Where the client first left what the reference machine allows; of what has findings."""
        return first_deviation(self.history) if self.findings else None


@attrs.frozen
class Result:
    """The verdict on a cell, how often it was played (0: not at all) and for how long."""

    cell: Cell
    observed: Observed
    plays: int
    elapsed_ms: float

    @property
    def word(self) -> Word:
        """The verdict."""
        return self.observed.word


PlayCell = Callable[[Cell], Awaitable[Observed]]
_AGAIN_AT_ONCE = 2


def select_cells(
    cases: Iterable[Case],
    *,
    patterns: Sequence[str] = (),
    revisions: Sequence[str],
    transports: Sequence[str],
    profile: str = "relist",
) -> tuple[Cell, ...]:
    """The cells to play, case by case: ids that match a pattern (all when there is none).

    The profile ``relist`` holds all cases, ``mcp`` those whose rule MCP itself states. Raises
    ``ConformanceError`` for a pattern that matches no case, and when nothing is left to play.
    """
    cases = tuple(cases)
    for pattern in patterns:
        if not any(fnmatchcase(case.id, pattern) for case in cases):
            raise ConformanceError(f"no case matches {quoted(pattern)}; see 'relist list'")
    cells = tuple(
        Cell(case, transport, revision)
        for case in cases
        if profile in ("relist", case.profile)
        if not patterns or any(fnmatchcase(case.id, pattern) for pattern in patterns)
        for transport in transports
        if transport in case.transports
        for revision in revisions
        if revision in case.revisions
    )
    if not cells:
        raise ConformanceError("no case is left to play with these options")
    return cells


def untestable(cell: Cell, hello: Hello) -> str | None:
    """Why this driver cannot be put to this cell, or None when it can."""
    if LEVELS.index(hello.level) < LEVELS.index(cell.case.level):
        return f"needs a driver of level {cell.case.level}, this one is {hello.level}"
    if cell.transport not in hello.transports:
        return f"the driver does not offer {cell.transport}"
    if cell.revision not in hello.revisions:
        return f"the driver does not offer {cell.revision}"
    for step in cell.case.steps:
        if step.applies(cell.revision, cell.transport) and (what := lacking(step, hello)):
            return f"the driver does not offer {what}"
    return None


def lacking(step: Step, hello: Hello) -> str | None:
    """What the step needs that this driver has not, or None."""
    match step:
        case Need() | Believe() | Refresh() if step.kind not in hello.kinds:
            return step.kind
        case _ if isinstance(step, OPTIONAL) and NAMES[type(step)] not in hello.ops:
            return f"'{NAMES[type(step)]}'"
        case Call(planned=str()) if "planned" not in hello.ops:
            return "'call' with what was planned"
        case Advance() if step.ms > LONGEST_WAIT_MS and "advance" not in hello.ops:
            return f"'advance', and nobody waits for {step.ms} ms"
        case _:
            return None


async def play_cells(
    cells: Sequence[Cell],
    hello: Hello,
    play: PlayCell,
    *,
    at_once: int = 4,
    finished: Callable[[Result], None] = lambda _: None,
) -> tuple[Result, ...]:
    """Play all cells, ``at_once`` at a time, and give the results in the order of the cells.

    ``finished`` is told each result as it comes. A cell whose play was inconclusive is played once
    more, and the second play counts: after all others and with few beside it, since a machine that
    was too busy is why most of them are. A ``ConformanceError`` of a play, such as a driver that
    broke down, ends the run at once and is raised.
    """
    results: dict[int, Result] = {}
    breakdown: list[ConformanceError] = []

    async def settle(index: int, limiter: anyio.CapacityLimiter, last: bool) -> None:
        async with limiter:
            try:
                result = await _played(cells[index], hello, play, results.get(index))
            except ConformanceError as error:
                breakdown.append(error)
                tasks.cancel_scope.cancel()
            else:
                results[index] = result
                if last or result.word != "inconclusive":
                    finished(result)

    for last, most in ((False, at_once), (True, min(at_once, _AGAIN_AT_ONCE))):
        limiter = anyio.CapacityLimiter(most)
        async with anyio.create_task_group() as tasks:
            for index in range(len(cells)):
                if not last or results[index].word == "inconclusive":
                    tasks.start_soon(settle, index, limiter, last)
        if breakdown:
            raise breakdown[0]
    return tuple(results[index] for index in range(len(cells)))


async def _played(cell: Cell, hello: Hello, play: PlayCell, before: Result | None) -> Result:
    """One play more; times and counts are those of all plays of the cell."""
    if reason := untestable(cell, hello):
        return Result(cell, Observed("untestable", reason), 0, 0.0)
    began = anyio.current_time()
    observed = await play(cell)
    plays, elapsed_ms = (before.plays, before.elapsed_ms) if before else (0, 0.0)
    return Result(cell, observed, plays + 1, elapsed_ms + (anyio.current_time() - began) * 1000)


def exit_code(results: Iterable[Result], *, strict: bool = False) -> int:
    """0 pass or warn, 1 fail, 2 the harness failed, 3 inconclusive; the harness beats all, fail
    beats inconclusive. ``strict`` counts warnings and what could not be tested as failures."""
    words = {result.word for result in results}
    failing = {"fail", "warn", "untestable"} if strict else {"fail"}
    if "harness" in words:
        return 2
    if words & failing:
        return 1
    return 3 if "inconclusive" in words else 0
