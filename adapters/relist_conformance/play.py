"""One play: a referee, an end and a driver brought together until there is a verdict.

Runs on asyncio and on trio. Time is the backend's: a virtual clock gives virtual time in memory.
"""

import secrets
import socket
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any, Protocol

import anyio
import anyio.abc
import attrs
import sniffio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from relist.check.history import History
from relist.check.judge import Verdict, judge, loud_beliefs
from relist_conformance.ends import Closed, End, Hear, Heard, Opened, Received
from relist_conformance.ends.memory import open_memory_end
from relist_conformance.errors import ConformanceError, DriverError, DriverReplyError
from relist_conformance.outputs import Ask, Finished, Outcome, Reply
from relist_conformance.referee import FLOOD, PATIENCE_MS, Referee
from relist_conformance.script import Case

_INBOX = 256
_STOP_PATIENCE_S = 10
_HEARTBEAT_S = 0.25
_REAL_S = 120
"""No play takes that long in real time."""


class PlayDriver(Protocol):
    """What a play needs of a driver."""

    async def ask(self, op: str, fields: Mapping[str, object], /) -> Mapping[str, Any]:
        """Put a command and return its ``ok`` object.

        Raises ``DriverReplyError`` for an error answer, and another ``DriverError`` when the driver
        is of no more use.
        """
        ...


@attrs.frozen
class Played:
    """What a play came to. A verdict only where the outcome is *judged*, or *inconclusive* by it.

    ``lag_ms`` is by how much the event loop was late at worst: large on an overloaded machine.
    """

    outcome: Outcome
    verdict: Verdict | None
    history: History
    lag_ms: int


@attrs.frozen
class _Replied:
    ask_id: int
    reply: Reply


@attrs.frozen
class _Gone:
    reason: str


_Item = Heard | _Replied | _Gone


class Stage:
    """What plays share: one HTTP server and one port for relays, each opened when first needed."""

    def __init__(self, tasks: anyio.abc.TaskGroup, sock: socket.socket | None, path: str) -> None:
        self._tasks = tasks
        self._path = path
        self._sock = sock
        self._lock = anyio.Lock()
        self._hubs: dict[str, Any] = {}

    async def end(self, transport: str, token: str, hear: Hear) -> AbstractAsyncContextManager[End]:
        """An end for one play. Raises ``ConformanceError`` where the transport cannot be had."""
        if transport == "memory":
            return open_memory_end(hear)
        async with self._lock:
            if transport not in self._hubs:
                self._hubs[transport] = await self._serve(transport)
        end: AbstractAsyncContextManager[End] = self._hubs[transport].open_end(token, hear)
        return end

    async def _serve(self, transport: str) -> object:
        if transport == "stdio":
            from relist_conformance.ends.stdio import serve_stdio

            return await self._tasks.start(serve_stdio)
        if sniffio.current_async_library() != "asyncio":
            raise ConformanceError("the HTTP end needs the asyncio backend")
        from relist_conformance.ends.http import serve_http

        sock, self._sock = self._sock or _bound(0), None
        return await self._tasks.start(serve_http, sock, self._path)

    def close(self) -> None:
        """Let go of a port that no play came to use."""
        if self._sock is not None:
            self._sock.close()


@asynccontextmanager
async def open_stage(port: int = 0, path: str = "/{token}/mcp") -> AsyncGenerator[Stage, None]:
    """A stage for any number of plays; leaving the block closes servers and ports.

    ``port`` is that of the HTTP server; 0 takes a free one. ``path`` is where a play is found on
    it, by its token; without one there can be one play at a time. Raises ``ConformanceError`` at
    once when the port cannot be had.
    """
    sock = _bound(port) if port else None
    async with anyio.create_task_group() as tasks:
        stage = Stage(tasks, sock, path)
        try:
            yield stage
        finally:
            stage.close()
            tasks.cancel_scope.cancel()


def _bound(port: int) -> socket.socket:
    # The protocol is named because asyncio else leaves Nagle's algorithm on: 40 ms an answer.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen(128)
    except (OSError, OverflowError) as error:
        sock.close()
        reason = error.strerror if isinstance(error, OSError) else "there is no such port"
        raise ConformanceError(f"port {port} on 127.0.0.1: {reason}") from None
    return sock


async def play(
    case: Case,
    revision: str,
    transport: str,
    driver: PlayDriver,
    *,
    patience_ms: int = PATIENCE_MS,
    stage: Stage | None = None,
    ops: Collection[str] = (),
) -> Played:
    """Play one case and judge it. Many plays may run at once on one stage (default: an own one).

    ``ops`` are the commands that the driver offers, as far as a case can do without. Never raises
    for what a client or driver does: that is in the outcome.
    """
    if stage is None:
        async with open_stage() as own:
            more: dict[str, Any] = {"patience_ms": patience_ms, "ops": ops}
            return await play(case, revision, transport, driver, stage=own, **more)
    token = secrets.token_hex(8)
    referee = Referee(case, revision, transport, patience_ms=patience_ms, token=token, ops=ops)
    to_inbox, inbox = anyio.create_memory_object_stream[_Item](_INBOX)
    host = _Host(referee, driver, to_inbox)
    with to_inbox, inbox:
        async with (
            await stage.end(transport, token, partial(_hear, to_inbox)) as end,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(host.run, inbox, end, tasks)
            tasks.start_soon(host.watch_lag)
            await host.finished.wait()
            # The server goes on while the client says goodbye, so that it need not wait long.
            with anyio.move_on_after(_STOP_PATIENCE_S):
                for connection in referee.connections:
                    await host.ask_safely("stop", {"connection": connection})
            tasks.cancel_scope.cancel()
    return _judged(host, case, revision)


async def _hear(to_inbox: MemoryObjectSendStream[_Item], item: Heard) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await to_inbox.send(item)


class _Host:
    """The loop around one referee: feed, drain, perform, wait for the next or the deadline."""

    def __init__(
        self, referee: Referee, driver: PlayDriver, to_inbox: MemoryObjectSendStream[_Item]
    ) -> None:
        self.finished = anyio.Event()
        self.outcome = Outcome("harness_error", "the play was not finished")
        self.history: History = ()
        self.lag_ms = 0
        self._referee = referee
        self._driver = driver
        self._to_inbox = to_inbox
        self._began_s = anyio.current_time()
        self._last_begun = anyio.Event()
        self._last_begun.set()

    async def run(
        self, inbox: MemoryObjectReceiveStream[_Item], end: End, tasks: anyio.abc.TaskGroup
    ) -> None:
        """Until cancelled; once ``finished`` is set, ``outcome`` and ``history`` stand."""
        self._referee.start(0)
        while True:
            for output in self._referee.drain():
                match output:
                    case Ask():
                        before, self._last_begun = self._last_begun, anyio.Event()
                        tasks.start_soon(self._ask, output, end.target, before, self._last_begun)
                    case Finished():
                        self.outcome, self.history = output.outcome, self._referee.history
                        self.finished.set()
                    case _:
                        end.perform(output)
            item = await self._next(inbox)
            self._feed(item, round((anyio.current_time() - self._began_s) * 1000))

    async def watch_lag(self) -> None:
        """Wake up now and then, and note by how much that was late, until cancelled."""
        while True:
            # In virtual time a play can last for days: the longer it lasts, the rarer the beats.
            lasted_s = anyio.current_time() - self._began_s
            due_s = anyio.current_time() + max(_HEARTBEAT_S, (lasted_s - _REAL_S) / 10)
            await anyio.sleep_until(due_s)
            self._late_by(due_s)

    def _late_by(self, due_s: float) -> None:
        self.lag_ms = max(self.lag_ms, round((anyio.current_time() - due_s) * 1000))

    async def _next(self, inbox: MemoryObjectReceiveStream[_Item]) -> _Item | None:
        due_ms = self._referee.deadline_ms()
        if due_ms is None:
            return await inbox.receive()
        due_s = self._began_s + due_ms / 1000
        with anyio.CancelScope(deadline=due_s):
            return await inbox.receive()
        self._late_by(due_s)
        return None

    def _feed(self, item: _Item | None, now_ms: int) -> None:
        match item:
            case Opened():
                self._referee.channel_opened(item.channel, item.kind, item.headers, now_ms)
            case Received():
                self._referee.received(item.channel, item.message, now_ms)
            case Closed():
                self._referee.channel_closed(item.channel, now_ms)
            case _Replied():
                self._referee.driver_answered(item.ask_id, item.reply, now_ms)
            case _Gone():
                self._referee.give_up(Outcome("harness_error", item.reason), now_ms)
            case None:
                self._referee.tick(now_ms)

    async def _ask(
        self, ask: Ask, target: Mapping[str, Any], before: anyio.Event, begun: anyio.Event
    ) -> None:
        """Commands overlap, but the driver gets them in the order in which they were asked."""
        await before.wait()
        begun.set()
        more = {"target": target} if ask.op == "connect" else {}
        answer = await self.ask_safely(ask.op, {**ask.fields, **more})
        await self._to_inbox.send(
            answer if isinstance(answer, _Gone) else _Replied(ask.ask_id, answer)
        )

    async def ask_safely(self, op: str, fields: Mapping[str, object]) -> Reply | _Gone:
        """Put a command to the driver; what goes wrong is a value."""
        try:
            return Reply(ok=await self._driver.ask(op, fields))
        except DriverReplyError as error:
            return Reply(error=str(error), code=error.code)
        except DriverError as error:
            return _Gone(str(error))


def _judged(host: _Host, case: Case, revision: str) -> Played:
    outcome, history, lag_ms = host.outcome, host.history, host.lag_ms
    flooded = outcome.reason.startswith(FLOOD)
    if outcome.word != "judged" and not flooded:
        return Played(outcome, None, history, lag_ms)
    if loud := loud_beliefs(history):
        reason = f"the driver lists when asked what it believes (events {loud})"
        return Played(Outcome("harness_error", reason), None, history, lag_ms)
    verdict = judge(case.expect, history, revision, lag_ms, whole=not flooded)
    if flooded:
        # What it did until then may be enough to blame it for, but never enough to pass.
        return Played(Outcome("judged") if verdict.findings else outcome, verdict, history, lag_ms)
    if verdict.word == "inconclusive":
        outcome = Outcome("inconclusive", "; ".join(verdict.unjudged))
    return Played(outcome, verdict, history, lag_ms)
