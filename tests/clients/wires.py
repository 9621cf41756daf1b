"""Raw JSON-RPC over a pipe or HTTP, for clients that share no code with Relist's own.

A wire is one connection. Requests are exchanged for their answers; all else that the server says
goes to ``heard``. What cannot be read is dropped.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from subprocess import DEVNULL, PIPE
from typing import Any, cast

import anyio
import httpx2
from anyio.streams.buffered import BufferedByteReceiveStream

Json = dict[str, Any]
Heard = Callable[[Json], Awaitable[None]]
_LONGEST_LINE = 16 * 1024 * 1024
_GONE = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    anyio.DelimiterNotFound,
    OSError,
)


class Failed(Exception):
    """No result: an error answer with its ``code``, a bare ``http`` status, silence or a loss."""

    def __init__(self, text: str, code: object = None, http: int | None = None) -> None:
        super().__init__(text)
        self.code, self.http = code, http


class Wire(ABC):
    """A connection. ``lost`` is set when it can no longer be used."""

    def __init__(self, heard: Heard) -> None:
        self.heard = heard
        self.lost = anyio.Event()

    @abstractmethod
    async def exchange(self, message: Json, headers: Mapping[str, str]) -> Json:
        """Send a request and wait for its result. Raises ``Failed``."""

    @abstractmethod
    async def tell(self, message: Json, headers: Mapping[str, str]) -> None:
        """Send what has no answer."""


class Pipe(Wire):
    """One ordered stream in each direction: a process, or memory."""

    def __init__(self, heard: Heard, send: Callable[[Json], Awaitable[None]]) -> None:
        super().__init__(heard)
        self._send = send
        self._waiting: dict[object, tuple[anyio.Event, list[Json]]] = {}

    async def exchange(self, message: Json, headers: Mapping[str, str]) -> Json:
        arrived, box = self._waiting[message["id"]] = anyio.Event(), list[Json]()
        try:
            await self.tell(message, headers)
            if not self.lost.is_set():
                await arrived.wait()
        finally:
            del self._waiting[message["id"]]
        return result_of(box[0] if box else None)

    async def tell(self, message: Json, headers: Mapping[str, str]) -> None:
        with suppress(*_GONE):
            await self._send(message)

    async def take(self, message: Json) -> None:
        """Sort one message of the server."""
        if "method" in message:
            await self.heard(message)
        elif isinstance(message.get("id"), str) and (found := self._waiting.get(message["id"])):
            found[1].append(message)
            found[0].set()

    def lose(self) -> None:
        """The other side is gone, and so are all answers."""
        self.lost.set()
        for arrived, _ in self._waiting.values():
            arrived.set()


class Web(Wire):
    """A POST for each message, and a GET for the notices of a legacy session."""

    def __init__(self, heard: Heard, client: httpx2.AsyncClient, url: str) -> None:
        super().__init__(heard)
        self._client, self._url = client, url
        self.session: str | None = None

    async def exchange(self, message: Json, headers: Mapping[str, str]) -> Json:
        try:
            async with self._asked("POST", headers, message) as answer:
                if answer.status_code >= 400:
                    return await self._refused(answer)
                self.session = answer.headers.get("mcp-session-id", self.session)
                async for found in _messages(answer):
                    if "method" in found:
                        await self.heard(found)
                    elif found.get("id") == message["id"]:
                        return result_of(found)
        except httpx2.HTTPError as error:
            raise Failed(repr(error)) from None
        return result_of(None)

    async def tell(self, message: Json, headers: Mapping[str, str]) -> None:
        with suppress(httpx2.HTTPError):
            async with self._asked("POST", headers, message):
                pass

    async def follow(self, headers: Mapping[str, str], opened: Callable[[], None]) -> None:
        """Hear what comes on a stream of its own, until it ends or where there is none."""
        with suppress(httpx2.HTTPError):
            async with self._asked("GET", headers, None) as answer:
                if answer.status_code == 200:
                    opened()
                    async for found in _messages(answer):
                        await self.heard(found)

    @asynccontextmanager
    async def _asked(
        self, verb: str, headers: Mapping[str, str], message: Json | None
    ) -> AsyncGenerator[httpx2.Response]:
        session = {} if self.session is None else {"mcp-session-id": self.session}
        accept = {"accept": "application/json, text/event-stream"}
        told = {**accept, **session, **headers}
        async with self._client.stream(verb, self._url, json=message, headers=told) as answer:
            yield answer

    async def _refused(self, answer: httpx2.Response) -> Json:
        body, status = await answer.aread(), answer.status_code
        if status == 404 and self.session is not None:
            self.lost.set()
        if error := child(_read(body), "error"):
            raise Failed(str(error.get("message")), error.get("code"), status)
        raise Failed(f"HTTP status {status}", None, status)


def result_of(message: Json | None) -> Json:
    """The result in an answer. Raises ``Failed`` where there is none."""
    if message is None:
        raise Failed("the connection was lost")
    if error := child(message, "error"):
        raise Failed(str(error.get("message")), error.get("code"))
    if not isinstance(message.get("result"), dict):
        raise Failed("an answer without a result")
    return child(message, "result")


def child(parent: Mapping[str, Any] | None, key: str) -> Json:
    """The object under this key, an empty one where there is none."""
    found = (parent or {}).get(key)
    return cast("Json", found) if isinstance(found, dict) else {}


async def _messages(answer: httpx2.Response) -> AsyncGenerator[Json]:
    if "text/event-stream" not in answer.headers.get("content-type", ""):
        if found := _read(await answer.aread()):
            yield found
        return
    data: list[str] = []
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            data.append(line[5:])
        elif not line:
            if found := _read("\n".join(data).encode()):
                yield found
            data = []


def _read(text: bytes) -> Json | None:
    """A JSON object, None for all else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Json", found) if isinstance(found, dict) else None


@asynccontextmanager
async def process(command: list[str], env: Mapping[str, str], heard: Heard) -> AsyncGenerator[Wire]:
    """The pipe of a server that is started here, and ended with the block."""
    try:
        child = await anyio.open_process(command, stdin=PIPE, stderr=DEVNULL, env=env)
    except OSError as error:
        raise Failed(repr(error)) from None
    assert child.stdin
    assert child.stdout
    stdin, lines = child.stdin, BufferedByteReceiveStream(child.stdout)
    pipe = Pipe(heard, lambda message: stdin.send(json.dumps(message).encode() + b"\n"))

    async def read() -> None:
        with suppress(*_GONE):
            while True:
                if message := _read(await lines.receive_until(b"\n", _LONGEST_LINE)):
                    await pipe.take(message)
        pipe.lose()

    async with child, anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        try:
            yield pipe
        finally:
            pipe.lose()
            tasks.cancel_scope.cancel()
            with anyio.move_on_after(2, shield=True), suppress(*_GONE):
                await stdin.aclose()
                await child.wait()


@asynccontextmanager
async def memory(link: Any, heard: Heard) -> AsyncGenerator[Wire]:
    """A pipe to a server in this process."""
    receive, send = await link.connect()
    pipe = Pipe(heard, send.send)

    async def read() -> None:
        with suppress(*_GONE):
            async for message in receive:
                if isinstance(message, dict):  # what takes the place of garbage is none
                    await pipe.take(cast("Json", message))
        pipe.lose()

    async with receive, send, anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        try:
            yield pipe
        finally:
            pipe.lose()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def web(url: str, headers: Mapping[str, str], heard: Heard) -> AsyncGenerator[Wire]:
    """HTTP, with these headers on each request."""
    async with httpx2.AsyncClient(timeout=None, headers=headers) as client:
        yield Web(heard, client, url)
