"""One epoch's transport by itself: what it tells its host, and when it falls silent."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio.lowlevel
import pytest
from mcp_types import JSONRPCResponse

from relist import effects as e
from relist import inputs as i
from relist.inputs import SessionInput
from relist.values import Carrier, Channel, Era, Kind, Listen, ListenPhase
from relist_mcp.connection import OUTBOX_MAX, Connection
from relist_mcp.credentials import NOBODY
from relist_mcp.exchange import Exchange
from relist_mcp.handlers import NO_HANDLERS
from relist_mcp.speech import Voice
from support.brain import LEGACY, MODERN, Brain
from support.live import serve
from support.loops import virtually
from support.pipe import Pipe
from support.web import Web

TOOLS = frozenset({Channel.TOOLS})
LISTEN = Listen(ListenPhase.ASKED, Carrier.STREAM, TOOLS, frozenset(), 7, None, None, None, 0, None)


class Owner:
    """The loop that owns a connection, as far as it is needed."""

    listen = LISTEN

    def __init__(self, told: list[SessionInput]) -> None:
        self.tell = told.append

    async def room(self) -> None:
        """There always is."""
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def connection(
    server: Pipe | Web, told: list[SessionInput], version: str = LEGACY
) -> AsyncGenerator[Connection]:
    voice = Voice({"name": "test", "version": "1"}, {})
    voice.settle(Era.LEGACY if version == LEGACY else Era.MODERN, version)
    it = Connection(3, server.target, NOBODY, voice, NO_HANDLERS, Owner(told))
    yield it
    it.close()
    await it.run()


HEARD: list[tuple[Callable[[Connection], None], type[SessionInput]]] = [
    (lambda it: it.on_expired(), i.SessionExpired),
    (lambda it: it.on_stream_opened(), i.PushOpened),
    (lambda it: it.on_stream_ended(None), i.PushEnded),
    (lambda it: it.on_undelivered(), i.TransportLost),
]


@pytest.mark.parametrize(("happens", "expected"), HEARD)
@virtually
async def test_what_happens_is_told_with_its_epoch_or_serial(
    happens: Callable[[Connection], None], expected: type[SessionInput]
) -> None:
    told: list[SessionInput] = []
    async with connection(Web(Brain(LEGACY)), told) as it:
        happens(it)
    (heard,) = told
    assert isinstance(heard, expected)
    assert getattr(heard, "epoch", 3) == 3
    assert getattr(heard, "serial", 7) == 7


@pytest.mark.parametrize(("happens", "_"), HEARD)
@virtually
async def test_a_replaced_transport_says_nothing_more(
    happens: Callable[[Connection], None], _: type[SessionInput]
) -> None:
    """Its stream may still open or end, and would be taken for that of its successor."""
    told: list[SessionInput] = []
    async with connection(Web(Brain(LEGACY)), told) as it:
        it.close()
        happens(it)
    assert not told


@virtually
async def test_a_peer_that_takes_nothing_is_lost() -> None:
    told: list[SessionInput] = []
    async with connection(serve(MODERN)[1], told) as it:
        for serial in range(2 * OUTBOX_MAX):
            it.ask(e.RequestPage(Kind.TOOLS, serial, None))
        assert [type(heard) for heard in told] == [i.TransportLost]
    assert it.tap is None
    assert len(told) == 1


@virtually
async def test_without_a_session_there_is_no_stream_to_wait_for() -> None:
    for names_session, expected in ((True, []), (False, [i.PushEnded])):
        told: list[SessionInput] = []
        async with connection(Web(Brain(LEGACY)), told) as it:
            it.on_exchange("relist/link/1", Exchange(200, names_session=names_session))
            it.welcome()
        assert [type(heard) for heard in told] == expected


BAD = {"type": "object", "properties": {"a": {"type": "array", "x-mcp-header": "A"}}}


@pytest.mark.rule("DISC-23")
@pytest.mark.rule("DISC-24")
@pytest.mark.parametrize(
    ("serves", "era", "listed"),
    [
        (Web, MODERN, ["good"]),
        (Web, LEGACY, ["good", "bad"]),
        (Pipe, MODERN, ["good", "bad"]),
    ],
)
@virtually
async def test_a_tool_with_a_faulty_header_is_left_out_where_headers_are_sent(
    serves: Callable[[Brain], Web | Pipe], era: str, listed: list[str]
) -> None:
    told: list[SessionInput] = []
    async with connection(serves(Brain(era)), told, era) as it:
        it.ask(e.RequestPage(Kind.TOOLS, 1, None))
        schemas = {"good": {"type": "object"}, "bad": BAD}
        tools = [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]
        answer = JSONRPCResponse(jsonrpc="2.0", id="relist/tools/1", result={"tools": tools})
        assert it._on_frame(answer)
    (page,) = told
    assert isinstance(page, i.PageArrived)
    assert [item.key for item in page.items] == listed
