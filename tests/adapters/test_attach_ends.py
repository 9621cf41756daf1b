"""An attached connection that ends, and attachments that do."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
import trio
from anyio.lowlevel import checkpoint
from mcp import MCPError
from mcp.client._memory import InMemoryTransport
from trio.testing import MockClock

from relist import inputs as i
from relist.machine import Hit
from relist.values import Doubt, Kind, LinkPhase, Wire
from relist_mcp import Catalogs, NotConnected
from relist_mcp.connection import CLOSE_GRACE_S
from relist_mcp.exchange import now_ms
from support.brain import LEGACY, MODERN, Brain, Frame
from support.cancel import CancelAt
from support.live import ERAS, LIST, names, policy, serve
from support.loops import everywhere, virtually
from support.owned import (
    condition,
    fastmcp_client,
    owned,
    session_of,
    stands,
    until_listed,
    until_phase,
)
from support.pipe import Pipe
from support.sdk import ChangingServer

LISTEN, SUBSCRIBE = "subscriptions/listen", "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"

# --- the connection ends --------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize("owner", ["client", "session"])
@everywhere
async def test_a_connection_that_dies_under_us_is_closed_for_good(owner: str, era: str) -> None:
    """Also where nothing is asked at that moment, which is when the SDK tells nobody."""
    brain, pipe = serve(era, "a")
    async with owned(owner, era, pipe.target.connect) as client:
        before = condition(client)
        lost: list[i.TransportLost] = []
        async with Catalogs.attach(client, policy=policy(), wire=Wire.PIPE) as catalogs:
            catalogs.observe(
                lambda fed: lost.extend(
                    [fed.heard] if isinstance(fed.heard, i.TransportLost) else []
                )
            )
            await catalogs.idle()
            brain.hold.add("ping")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_fails, session_of(client).send_ping)
                await brain.until_held("ping")
                pipe.cut()
            await until_phase(catalogs, LinkPhase.CLOSED)
            assert len(lost) == 1
            reading = await catalogs.tools.get()
            assert (reading.hit, reading.doubt) == (Hit.DOUBTED, Doubt.DISCONNECTED)
            assert names(await catalogs.tools.refresh()) == ["a"]
            await catalogs.idle()
            with pytest.raises(NotConnected, match="closed"):
                await catalogs.call_tool("a", {})
        after = condition(client)
        assert after["_on_notify_intercept"] == before["_on_notify_intercept"]
        assert "_fan_out_closed" not in after


async def _fails(request: Callable[[], Awaitable[object]]) -> None:
    """What the owner is waiting for ends with the connection, as it did."""
    with pytest.raises(MCPError, match="Connection closed"):
        await request()


@ERAS
@pytest.mark.parametrize("served", [False, True])
@everywhere
async def test_an_owner_who_leaves_first_takes_the_connection(era: str, served: bool) -> None:
    changing = ChangingServer(["a"])
    where: Any = changing.server if served else lambda: InMemoryTransport(changing.server)
    async with anyio.create_task_group() as tasks:
        leave, left = anyio.Event(), anyio.Event()

        async def own(task_status: anyio.abc.TaskStatus[Any]) -> None:
            async with owned("client", era, where) as client:
                task_status.started(client)
                await leave.wait()
            left.set()

        client = await tasks.start(own)
        async with Catalogs.attach(client, policy=policy(), wire=Wire.PIPE) as catalogs:
            await catalogs.idle()
            leave.set()
            await until_phase(catalogs, LinkPhase.CLOSED)
            await left.wait()
            assert catalogs.tools.read().doubt is Doubt.DISCONNECTED


@pytest.mark.parametrize(("was", "becomes"), [(MODERN, LEGACY), (LEGACY, MODERN), (LEGACY, LEGACY)])
@pytest.mark.parametrize("wire", Wire)
def test_a_client_that_is_connected_again_is_found_again(
    was: str, becomes: str, wire: Wire
) -> None:
    async def meet() -> None:
        brain, pipe = serve(was, "a")
        rules = policy(backoff_base_ms=1, backoff_max_ms=4)
        client = fastmcp_client(pipe.target.connect, MODERN)
        async with client:
            attaching = Catalogs.attach(client, policy=rules, wire=wire)
            catalogs = await attaching.__aenter__()
            await catalogs.idle()
            first = catalogs.session.link.epoch
            pipe.cut()
            await until_phase(catalogs, LinkPhase.WAITING)
            await client.close()  # type: ignore[no-untyped-call]
        asked = len(brain.seen)
        while catalogs.session.link.epoch < first + 3:  # it looks again, and asks nothing
            await catalogs._loop.moved()
        assert len(brain.seen) == asked
        brain.era = becomes
        brain.set_tools("b")
        async with client:
            await until_listed(catalogs, "b")
            assert catalogs.session.link.version == becomes
            await attaching.__aexit__(None, None, None)

    anyio.run(meet)


# --- leaving at any moment ------------------------------------------------------------------------

QUICK: dict[str, Any] = {"gather_ms": 0, "gap_base_ms": 1, "backoff_base_ms": 1}


async def _day(client: Any, brain: Brain, pipe: Pipe) -> None:
    """What happens in a life: lists, a watched resource, a notice, a call, a refresh, the end."""
    async with Catalogs.attach(client, policy=policy(**QUICK), wire=Wire.PIPE) as catalogs:
        walks = brain.count(LIST)
        await catalogs.get(Kind.TOOLS)
        catalogs.tell(i.UpdatesWanted(frozenset({"x:1"}), now_ms()))
        await catalogs.idle()
        brain.set_tools("b")
        pipe.send(brain.change())
        await brain.until_seen(LIST, walks + 2)
        await catalogs.get(Kind.TOOLS)
        await catalogs.call_tool("b", {})
        await catalogs.refresh(Kind.TOOLS)


def _serve(era: str) -> tuple[Brain, Pipe]:
    brain, pipe = serve(era, "a")
    brain.lists["resources"] = []
    kinds: Frame = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
    brain.capabilities = lambda: kinds  # type: ignore[method-assign]
    for method in (SUBSCRIBE, UNSUBSCRIBE):
        brain.answers[method] = lambda _: {"result": {}}
    return brain, pipe


def _is_given_back(brain: Brain) -> bool:
    """Whether the server would send nothing more for what was attached."""
    asked = [frame for frame in brain.seen if frame.get("method") in (LISTEN, SUBSCRIBE)]
    if brain.era == LEGACY:
        return not asked or brain.count(UNSUBSCRIBE) > 0
    return not [frame for frame in asked if stands(brain, frame)]


async def _restored(client: Any, before: dict[str, Any], brain: Brain, pipe: Pipe) -> None:
    """The owner's session is as it was, is used on, and can be attached to again."""
    await brain.until(lambda: _is_given_back(brain))
    assert condition(client) == before
    assert (await client.list_tools()).tools
    await _day(client, brain, pipe)


async def _cancelled_at(step: int, era: str) -> int:
    """The day, cancelled before this step of whatever task; how many steps it had."""
    brain, pipe = _serve(era)
    async with owned("session", era, pipe.target.connect) as client:
        before = condition(client)
        instrument = CancelAt(step)
        trio.lowlevel.add_instrument(instrument)
        with trio.CancelScope() as instrument.scope:
            await _day(client, brain, pipe)
        trio.lowlevel.remove_instrument(instrument)
        await _restored(client, before, brain, pipe)
    return instrument.steps


@ERAS
def test_cancelling_at_every_step_restores_the_session(era: str) -> None:
    def day(step: int) -> int:
        clock = MockClock(autojump_threshold=0)
        return anyio.run(_cancelled_at, step, era, backend="trio", backend_options={"clock": clock})

    steps = day(-1)
    assert steps > 60
    for step in range(1, steps):
        day(step)


async def _cancel_after(rounds: int, scope: anyio.CancelScope) -> None:
    for _ in range(rounds):
        await checkpoint()
    scope.cancel()


@ERAS
@pytest.mark.parametrize("owner", ["client", "fastmcp"])
def test_cancelling_on_asyncio_restores_the_session(owner: str, era: str) -> None:
    async def day(rounds: int) -> None:
        brain, pipe = _serve(era)
        async with owned(owner, era, pipe.target.connect) as client:
            before = condition(client)
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_cancel_after, rounds, scope)
                    await _day(client, brain, pipe)
                    tasks.cancel_scope.cancel()
            await brain.until(lambda: _is_given_back(brain))
            assert condition(client) == before

    for rounds in range(1, 120, 3):
        anyio.run(day, rounds)


@everywhere
async def test_cancelling_where_there_is_no_transport_leaves_nothing_with_the_server() -> None:
    changing = ChangingServer(["a"])
    async with owned("client", MODERN, changing.server) as client:
        before = condition(client)
        for rounds in range(1, 60):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_cancel_after, rounds, scope)
                    async with Catalogs.attach(client, policy=policy(**QUICK)) as catalogs:
                        await catalogs.idle()
                        await changing.become(f"a{rounds}")
                        await until_listed(catalogs, f"a{rounds}")
                    tasks.cancel_scope.cancel()
            assert condition(client) == before
        assert not changing.bus._listeners


@ERAS
@everywhere
async def test_an_error_of_the_block_comes_out_as_it_is(era: str) -> None:
    _, pipe = _serve(era)
    mine = ValueError("mine")

    async def fail(client: Any) -> None:
        async with Catalogs.attach(client, policy=policy()) as catalogs:
            await catalogs.idle()
            raise mine

    async with owned("client", era, pipe.target.connect) as client:
        before = condition(client)
        with pytest.raises(ValueError, match="mine") as caught:
            await fail(client)
        assert caught.value is mine
        assert condition(client) == before


@virtually
async def test_a_server_that_does_not_answer_delays_leaving_by_a_grace() -> None:
    brain, pipe = _serve(LEGACY)
    async with owned("client", LEGACY, pipe.target.connect) as client:
        before = condition(client)
        async with Catalogs.attach(client, policy=policy()) as catalogs:
            catalogs.tell(i.UpdatesWanted(frozenset({"x:1"}), now_ms()))
            await catalogs.idle()
            brain.hold |= {LIST, UNSUBSCRIBE}
            catalogs.tell(i.RefreshWanted(Kind.TOOLS, now_ms()))
            held = await brain.until_held(LIST)
            left_at_s = anyio.current_time()
        assert anyio.current_time() - left_at_s == CLOSE_GRACE_S
        assert condition(client) == before
        assert not stands(brain, held)
