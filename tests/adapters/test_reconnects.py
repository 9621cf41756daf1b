"""Every trouble of a connection, with real server processes: each ends as it must.

A row is a trouble, a column a server process: the SDK's own, and the referee. During the trouble
the list changes and nobody is told. In the end the client holds the new list, undoubted, and where
push exists it hears of the next change; or it is parked for the right reason, its list in doubt.
What the processes are told: ``support/processes.py``.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import anyio
import pytest
from attrs import frozen

from relist.machine import Hit
from relist.values import Wire
from support.brain import LEGACY, MODERN
from support.live import LIST
from support.loops import run_really
from support.processes import SdkOnPipe, ServerProcess, referee, sdk_over_http
from support.trouble import NEW, OLD, TOKEN, Act, End, Row, Scene, descriptors, play, until

pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")

LIMIT_S = 60.0  # generous: the slowest row needs four seconds on a busy machine
rule = pytest.mark.rule


# --- lost processes and sessions ------------------------------------------------------------------


async def killed(scene: Scene) -> None:
    scene.server.kill()
    scene.server.tools = NEW
    await scene.server.start()
    await scene.server.met()


async def session_unknown_to_a_post(scene: Scene) -> None:
    await scene.change()
    await scene.server.ask("expire")
    await scene.catalogs.tools.refresh()


async def session_unknown_to_a_get(scene: Scene) -> None:
    await scene.change()
    await scene.server.ask("expire")
    assert await scene.server.ask("end", of="GET", how="close")


# --- refusals -------------------------------------------------------------------------------------


async def refused_at_the_door(scene: Scene) -> None:
    await scene.change()


async def busy_at_the_door(scene: Scene) -> None:
    await scene.change()
    assert (await scene.catalogs.tools.get()).hit is Hit.MISS
    assert scene.watch.pauses == [1_000]


def credentials_expire(status: int) -> Act:
    async def act(scene: Scene) -> None:
        """The stream ends, and nothing is answered any more."""
        await scene.change()
        await scene.server.ask("refuse", of="*", status=status, unless=TOKEN)
        assert await scene.server.ask("end", of=scene.stream, how="close")

    return act


def busy(status: int) -> Act:
    async def act(scene: Scene) -> None:
        await scene.change()
        after = {"Retry-After": "3000"}
        await scene.server.ask("refuse", of=LIST, status=status, times=1, **after)
        await scene.fails()
        assert scene.watch.pauses == [3_000_000]
        await scene.catalogs.tools.refresh()  # who asks need not wait

    return act


# --- streams --------------------------------------------------------------------------------------


async def push_torn(scene: Scene) -> None:
    await scene.change()
    assert await scene.server.ask("end", of=scene.stream, how="tear")


async def push_closed(scene: Scene) -> None:
    await scene.change()
    assert await scene.server.ask("end", of=scene.stream, how="close")


async def answer_torn(scene: Scene) -> None:
    await scene.change()
    await scene.server.ask("refuse", of=LIST, status=0, times=1)
    await scene.fails()


async def no_stream(scene: Scene) -> None:
    await scene.change()
    await scene.catalogs.tools.refresh()
    assert await scene.server.ask("refused") == 1


def listen_ended(how: str) -> Act:
    async def act(scene: Scene) -> None:
        await scene.change()
        assert await scene.server.ask("unlisten", how=how) == 1

    return act


# --- silence --------------------------------------------------------------------------------------


async def slow(scene: Scene) -> None:
    """The answer that comes too late holds the old list."""
    await scene.server.ask("hold")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.fails)
        await scene.server.ask("held")
        await scene.change()
    await until(scene.catalogs, NEW)
    await scene.server.ask("release")
    await scene.catalogs.tools.refresh()


async def half_open(scene: Scene) -> None:
    """All connections stand, and nothing comes through. Then they are found to be dead."""
    assert scene.relay is not None
    assert scene.relay.stall(new=True)
    await scene.change()
    await scene.fails()
    scene.relay.recover()


async def half_open_stream(scene: Scene) -> None:
    """New connections work, so who asks gets the list; the stream of notices is dead for longer."""
    assert scene.relay is not None
    assert scene.relay.stall()
    await scene.server.ask("tell", tools=NEW)  # in vain
    await scene.catalogs.tools.refresh()
    await until(scene.catalogs, NEW)
    scene.relay.recover()
    await scene.catalogs.tools.get(at_least=scene.generation)


async def half_open_at_the_door(scene: Scene) -> None:
    assert scene.relay is not None
    await scene.change()
    assert (await scene.catalogs.tools.get()).hit is Hit.MISS
    scene.relay.recover()


def always(_: Scene) -> bool:
    return True


BOTH = (Wire.HTTP, Wire.PIPE)
BUSY: Mapping[str, Any] = {"of": "*", "times": 1, "Retry-After": "1"}
QUICKLY_GIVEN_UP = {"request_limit_ms": 300}
NOBODY_THERE = {"probe_limit_ms": 300, "handshake_limit_ms": 300}
REFUSED: Mapping[str, Any] = {"of": "*", "unless": TOKEN}
ROWS = (
    Row(
        "killed",
        killed,
        wires=BOTH,
        renews=lambda scene: not scene.stateless,
        rules=(rule("SUB-24"), rule("FAIL-22")),
    ),
    Row(
        "session unknown to a POST",
        session_unknown_to_a_post,
        renews=always,
        eras=(LEGACY,),
        rules=(rule("LIFE-12"),),
    ),
    Row(
        "session unknown to a GET",
        session_unknown_to_a_get,
        renews=always,
        eras=(LEGACY,),
        rules=(rule("LIFE-12"),),
    ),
    *(
        row
        for status in (401, 403)
        for row in (
            Row(
                f"{status} at the door",
                refused_at_the_door,
                End.PARKED,
                early={**REFUSED, "status": status},
                rules=(rule("FAIL-04"),),
            ),
            Row(
                f"{status}",
                credentials_expire(status),
                End.PARKED,
                policy={"uncovered_grace_ms": 0},
                renews=always,
                rules=(rule("FAIL-04"), rule("AUTH-12")),
            ),
        )
    ),
    *(
        row
        for status in (429, 503)
        for row in (
            Row(f"{status} at the door", busy_at_the_door, early={**BUSY, "status": status}),
            Row(f"{status}", busy(status), rules=(rule("FAIL-03"),)),
        )
    ),
    Row(
        "push torn",
        push_torn,
        rules=(rule("SUB-22"), rule("SUB-25"), rule("REC-04"), rule("REC-06")),
    ),
    Row("push closed", push_closed, rules=(rule("SUB-22"), rule("REC-04"), rule("REC-06"))),
    Row("answer torn", answer_torn, rules=(rule("FAIL-13"),)),
    Row(
        "GET answered 405",
        no_stream,
        End.LISTED,
        eras=(LEGACY,),
        early={"of": "GET", "status": 405},
        rules=(rule("NOTE-14"),),
    ),
    *(
        Row(
            f"listen ended by {how}",
            listen_ended(how),
            wires=BOTH,
            eras=(MODERN,),
            rules=(rule("SUB-20"), rule("SUB-21"), rule("SUB-23")),
        )
        for how in ("result", "error", "cancel")
    ),
    Row(
        "slow", slow, wires=BOTH, policy=QUICKLY_GIVEN_UP, rules=(rule("FAIL-09"), rule("FAIL-12"))
    ),
    Row("half open", half_open, policy=QUICKLY_GIVEN_UP, relay="open", rules=(rule("REC-06"),)),
    Row("half open stream", half_open_stream, policy=QUICKLY_GIVEN_UP, relay="open"),
    Row("half open at the door", half_open_at_the_door, policy=NOBODY_THERE, relay="stalled"),
)


# --- the table ------------------------------------------------------------------------------------


@frozen
class Cell:
    """One trouble of one server process on one transport, in one era."""

    row: Row
    column: str
    wire: Wire
    era: str
    backend: str = "asyncio"

    def __str__(self) -> str:
        return "-".join((self.row.name, self.column, self.wire.value, self.era, self.backend))


def cells() -> Iterator[Cell]:
    """All of them on asyncio, and the most tangled ones on trio as well."""
    for row in ROWS:
        for wire, era in product(row.wires, row.eras):
            yield Cell(row, "sdk", wire, era)
            yield Cell(row, "referee", wire, era)
            if row.act in (killed, push_torn, slow):
                yield Cell(row, "sdk", wire, era, "trio")


Servers = Mapping[tuple[str, Wire], ServerProcess]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One process for all cells of a column; on a pipe the SDK's has one for each connection."""
    http, pipe, other = sdk_over_http(), SdkOnPipe(), referee()
    columns: dict[str, dict[Wire, ServerProcess]] = {
        "sdk": {Wire.HTTP: http, Wire.PIPE: pipe},
        "referee": dict.fromkeys(Wire, other),
    }
    yield {(name, wire): column[wire] for name, column in columns.items() for wire in Wire}
    for server in (http, pipe, other):
        server.close()


@pytest.mark.parametrize(
    "cell", [pytest.param(cell, id=str(cell), marks=cell.row.rules) for cell in cells()]
)
def test_each_trouble_ends_well(cell: Cell, servers: Servers) -> None:
    server = servers[cell.column, cell.wire]

    async def in_time() -> None:
        with anyio.fail_after(LIMIT_S):
            await server.begin(cell.era, OLD)
            before = descriptors()
            await play(cell.row, server, cell.wire, cell.era)
            await server.gone()
            assert descriptors() == before

    run_really(in_time, cell.backend)
