"""What only HTTP has takes real time, most of it waiting: such plays are made side by side."""

from collections.abc import Callable, Iterable, Mapping

import anyio
import anyio.abc

from relist_conformance.play import PlayDriver, Played, Stage, open_stage, play
from relist_conformance.script import Case

Cell = tuple[Case, str]
NewDriver = Callable[[anyio.abc.TaskGroup], PlayDriver]
_SIDE_BY_SIDE = 8


async def played(
    case: Case,
    revision: str,
    new: NewDriver,
    transport: str = "memory",
    stage: Stage | None = None,
) -> Played:
    """One play against a client inside this process."""
    async with anyio.create_task_group() as tasks:
        found = await play(case, revision, transport, new(tasks), stage=stage)
        tasks.cancel_scope.cancel()
        return found
    raise AssertionError("a play is never cancelled from inside")


async def over_http(cells: Iterable[Cell], new: NewDriver) -> Mapping[tuple[str, str], Played]:
    """Play all of these over HTTP, by id and revision of the case."""
    found: dict[tuple[str, str], Played] = {}
    limiter = anyio.CapacityLimiter(_SIDE_BY_SIDE)

    async def one(case: Case, revision: str) -> None:
        async with limiter:
            found[case.id, revision] = await played(case, revision, new, "http", stage)

    async with open_stage() as stage, anyio.create_task_group() as tasks:
        for case, revision in cells:
            tasks.start_soon(one, case, revision)
    return found
