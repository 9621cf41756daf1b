"""The driver host: starts a driver process and speaks the contract with it.

The driver lives in a process group of its own, so that a Ctrl-C in the terminal reaches only the
suite, which then ends the whole group. Nothing it writes is trusted: lines are bounded, parsed as
JSON objects, and quoted where they reach a message. The contract is ``specs/driver-contract.md``.
"""

import json
import os
import shlex
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from subprocess import PIPE
from typing import Any, cast

import anyio
import anyio.abc
import attrs
from anyio.streams.buffered import BufferedByteReceiveStream

from relist_conformance.errors import ConformanceError, DriverError, DriverReplyError, quoted

CONTRACT = 1
LEVELS = ("wire", "observing", "full")
KINDS = ("tools", "prompts", "resources", "resource_templates")
MAX_LINE_BYTES = 4 * 1024 * 1024
_STDERR_TAIL_BYTES = 4096


@attrs.frozen
class Limits:
    """How long the host waits for a driver, in seconds."""

    hello_s: float = 20.0
    op_s: float = 60.0
    stop_s: float = 3.0


@attrs.frozen
class Hello:
    """What a driver says about itself."""

    name: str
    version: str
    level: str
    ops: tuple[str, ...]
    transports: tuple[str, ...]
    revisions: tuple[str, ...]
    kinds: tuple[str, ...]


def parse_command(command: str) -> tuple[str, ...]:
    """Split a driver command as a shell would, without running one.

    Raises ``ConformanceError`` when nothing is left or a quotation is not closed.
    """
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise ConformanceError(f"driver command {quoted(command)}: {error}") from None
    if not argv:
        raise ConformanceError("the driver command is empty")
    return argv


class Driver:
    """A running driver. Many commands may be under way at once; replies are matched by id."""

    def __init__(self, process: anyio.abc.Process, argv: Sequence[str], limits: Limits) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process = process
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self._stderr = process.stderr
        self._name = quoted(shlex.join(argv))
        self._limits = limits
        self._sending = anyio.Lock()
        self._next_id = 1
        self._waiting: dict[int, tuple[anyio.Event, list[Mapping[str, Any]]]] = {}
        self._stderr_tail = StderrTail()
        self._broken: str | None = None
        self.hello = Hello("", "", "wire", (), (), (), ())

    @classmethod
    @asynccontextmanager
    async def start(
        cls, argv: Sequence[str], limits: Limits | None = None
    ) -> AsyncGenerator["Driver"]:
        """Start the driver and exchange the hello; leaving the block ends its process group.

        Raises ``DriverError`` (one line) when it does not start or does not speak the contract.
        """
        process = await open_group(argv, f"driver {quoted(shlex.join(argv))}")
        driver = cls(process, argv, limits or Limits())
        failure: Exception | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(driver._read_replies)
                tasks.start_soon(driver._stderr_tail.read, driver._stderr)
                try:
                    driver.hello = await driver._say_hello()
                    yield driver
                    await driver._say_stop()
                except Exception as error:
                    failure = error  # raised below: the task group would wrap it
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await driver._end_process()
        if failure is not None:
            raise failure

    async def ask(self, op: str, fields: Mapping[str, object]) -> Mapping[str, Any]:
        """Send one command and return its ``ok`` object.

        Raises ``DriverReplyError`` when the driver answers with an error, and ``DriverError`` when
        it hangs, breaks the contract or is gone; after that each further command fails at once.
        """
        return await self._ask(op, fields, self._limits.op_s)

    @property
    def broken(self) -> str | None:
        """Why the driver can no longer be used, or None."""
        return self._broken

    async def _ask(
        self, op: str, fields: Mapping[str, object], limit_s: float
    ) -> Mapping[str, Any]:
        ask_id, arrived, box = self._next_id, anyio.Event(), list[Mapping[str, Any]]()
        self._next_id += 1
        self._waiting[ask_id] = (arrived, box)
        line = json.dumps({"id": ask_id, "op": op, **fields}).encode() + b"\n"
        try:
            with anyio.move_on_after(limit_s):
                await self._send(line)
                if self._broken is None:
                    await arrived.wait()
        finally:
            del self._waiting[ask_id]
        if self._broken is None and not box:
            self._break(f"does not answer {op!r} within {limit_s:g} s")
        if not box:
            raise DriverError(self._broken or "")
        return self._result(op, box[0])

    async def _send(self, line: bytes) -> None:
        # A pipe that the driver closed is reported by the reader, which knows the exit code.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            async with self._sending:
                await self._stdin.send(line)

    def _result(self, op: str, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        match reply:
            case {"ok": ok} if isinstance(ok, dict):
                return cast("Mapping[str, Any]", ok)
            case {"error": {"message": str() as message, **rest}}:
                code = rest.get("code")
                raise DriverReplyError(
                    f"driver answered {op!r} with an error: {quoted(message)}",
                    code if isinstance(code, str) else None,
                )
            case _:
                self._break(f"answered {op!r} without an 'ok' object or an 'error' with a message")
                raise DriverError(self._broken or "")

    async def _say_hello(self) -> Hello:
        said = await self._ask("hello", {"contract": CONTRACT}, self._limits.hello_s)
        if said.get("contract") != CONTRACT:
            theirs = quoted(repr(said.get("contract")))
            self._break(f"speaks contract {theirs}, this suite speaks {CONTRACT}")
            raise DriverError(self._broken or "")
        try:
            return _hello(said)
        except ValueError as error:
            self._break(f"said a wrong hello: {error}")
            raise DriverError(self._broken or "") from None

    async def _say_stop(self) -> None:
        if self._broken is None:
            with suppress(DriverError):
                await self._ask("stop", {}, self._limits.stop_s)

    async def _read_replies(self) -> None:
        while True:
            try:
                line = await self._stdout.receive_until(b"\n", MAX_LINE_BYTES)
            except anyio.DelimiterNotFound:
                return self._break(f"printed a line longer than {MAX_LINE_BYTES} bytes")
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                return await self._report_exit()
            if not self._take(line):
                return self._break(
                    f"printed a line that is no reply: {quoted(line.decode(errors='replace'))}"
                )

    def _take(self, line: bytes) -> bool:
        """Hand one reply to its asker; False when the line is no reply to a command ever sent."""
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if not isinstance(reply, dict):
            return False
        reply = cast("Mapping[str, Any]", reply)
        ask_id = reply.get("id")
        if type(ask_id) is not int or not 0 < ask_id < self._next_id:
            return False
        if waiting := self._waiting.get(ask_id):
            arrived, box = waiting
            box.append(reply)
            arrived.set()
        return True  # a reply that nobody waits for any more is late, not wrong

    async def _report_exit(self) -> None:
        # Both waits are needed: a process may close its stdout long before it exits, and what it
        # wrote last on stderr may arrive after its exit is known.
        with anyio.move_on_after(self._limits.stop_s):
            await self._process.wait()
            await self._stderr_tail.ended.wait()
        code = self._process.returncode
        if code is None:
            how = "closed its stdout"
        elif code < 0:
            how = f"was ended by signal {-code}"
        else:
            how = f"exited with code {code}"
        last = self._stderr_tail.last_line
        self._break(how + (f"; its last line on stderr: {quoted(last)}" if last else ""))

    def _break(self, reason: str) -> None:
        """Give the driver up: the first reason stays, and everybody who waits is told."""
        self._broken = self._broken or f"driver {self._name} {reason}"
        for arrived, _ in self._waiting.values():
            arrived.set()

    async def _end_process(self) -> None:
        with suppress(anyio.BrokenResourceError, OSError):
            await self._stdin.aclose()
        if self._broken is None:
            with anyio.move_on_after(self._limits.stop_s):
                await self._process.wait()
        # The leader may be gone while something it started is not: the group is always ended.
        await end_group(self._process)


async def open_group(
    argv: Sequence[str],
    called: str,
    *,
    stdin: int = PIPE,
    stdout: int = PIPE,
    env: Mapping[str, str] | None = None,
) -> anyio.abc.Process:
    """Start a program as the leader of a process group of its own; its stderr is a pipe.

    ``called`` is how a message names it. Raises ``DriverError`` when it does not start.
    """
    # Shielded: cancelled half-way, the process would be killed but not what it started.
    with anyio.CancelScope(shield=True):
        try:
            return await anyio.open_process(
                list(argv), stdin=stdin, stdout=stdout, stderr=PIPE, env=env, start_new_session=True
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise DriverError(f"{called} does not start: {why}") from None
    raise AssertionError("nobody cancels this scope")


async def end_group(process: anyio.abc.Process) -> None:
    """End a whole process group at once; its leader may be gone already."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.aclose()


class StderrTail:
    """The end of what a program wrote to its stderr, as far as it was read."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self._bytes = b""

    async def read(self, stream: anyio.abc.ByteReceiveStream) -> None:
        """Read to the end."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in stream:
                self._bytes = (self._bytes + chunk)[-_STDERR_TAIL_BYTES:]
        self.ended.set()

    @property
    def last_line(self) -> str:
        """The last line that is not empty, which is not safe to print."""
        return self._bytes.decode(errors="replace").strip().rpartition("\n")[2]


def _hello(said: Mapping[str, Any]) -> Hello:
    level = said.get("level")
    if level not in LEVELS:
        raise ValueError(f"field 'level' is {quoted(repr(level))}, not one of {', '.join(LEVELS)}")
    return Hello(
        name=_text(said, "name"),
        version=_text(said, "version"),
        level=level,
        ops=_texts(said, "ops"),
        transports=_texts(said, "transports"),
        revisions=_texts(said, "revisions"),
        kinds=_texts(said, "kinds"),
    )


def _text(said: Mapping[str, Any], field: str) -> str:
    value = said.get(field)
    if not isinstance(value, str) or len(value) > 200:
        raise ValueError(f"field {field!r} is not a text of at most 200 characters")
    return value


def _texts(said: Mapping[str, Any], field: str) -> tuple[str, ...]:
    value = said.get(field)
    if not isinstance(value, list) or not all(
        isinstance(item, str) for item in cast("list[object]", value)
    ):
        raise ValueError(f"field {field!r} is not a list of texts")
    return tuple(cast("list[str]", value))
