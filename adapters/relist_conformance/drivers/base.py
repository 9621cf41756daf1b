"""The loop that all drivers written in Python share: JSON lines in, JSON lines out.

A driver gives ``run_driver`` a hello and a ``Connection`` class; everything about the contract
itself (``specs/driver-contract.md``) is here. Commands overlap freely: each runs in its own task.
"""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import anyio
import anyio.to_thread
import attrs

CONTRACT = 1
KINDS = ("tools", "prompts", "resources", "resource_templates")
OPS = ("hello", "connect", "need", "believe", "call", "idle", "stop")
"""What each driver offers here. A hello names its own ``ops`` where it offers more."""
OPTIONAL = (
    *("read", "get_prompt", "subscribe", "unsubscribe"),
    *("refresh", "credentials", "advance"),
)

Answer = Mapping[str, Any]


@attrs.frozen
class Target:
    """The server a connection goes to, and how long one list answer may take.

    Exactly one of ``command`` (stdio) and ``url`` (HTTP) is set. ``revision`` is a hint only.
    """

    command: Sequence[str] | None
    env: Mapping[str, str]
    url: str | None
    revision: str
    request_timeout_ms: int | None

    @property
    def request_timeout_s(self) -> float | None:
        """The time limit of a request in seconds, the unit most client libraries take."""
        return None if self.request_timeout_ms is None else self.request_timeout_ms / 1000


class Connection(ABC):
    """One client on one server. ``run`` owns it.

    The other methods are called once the client is usable or has given up; ``believe`` at any time.
    """

    def __init__(self, target: Target) -> None:
        self.target = target

    @abstractmethod
    async def run(self, usable: Callable[[], None]) -> None:
        """Open the client, call ``usable`` once an application could use it, run until cancelled.

        It may raise or return: then the first attempt has been given up, or the connection is over.
        """

    @abstractmethod
    async def need(self, kind: str) -> Answer:
        """What an application that needs the list now would be given."""

    @abstractmethod
    def believe(self, kind: str) -> Answer:
        """What the client holds now, without asking anybody and without waiting."""

    @abstractmethod
    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool as an application would."""

    async def call_planned(
        self,
        name: str,  # noqa: ARG002
        arguments: Mapping[str, Any],  # noqa: ARG002
        planned: Mapping[str, Any],  # noqa: ARG002
    ) -> Answer:
        """Call a tool for a caller who saw it as ``planned`` says (optional: ``planned``)."""
        raise Refused("unknown field 'planned'", "unsupported")

    async def read(self, uri: str) -> Answer:  # noqa: ARG002
        """What the resource contains, as an application would be given it (optional)."""
        raise unknown_op()

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> Answer:  # noqa: ARG002
        """The prompt rendered, as an application would be given it (optional)."""
        raise unknown_op()

    async def subscribe(self, uri: str) -> Answer:  # noqa: ARG002
        """From now on hear when this resource changes (optional)."""
        raise unknown_op()

    async def unsubscribe(self, uri: str) -> Answer:  # noqa: ARG002
        """Do not hear of it any more (optional)."""
        raise unknown_op()

    async def refresh(self, kind: str) -> Answer:  # noqa: ARG002
        """The list as it is now, whatever the client holds (optional)."""
        raise unknown_op()

    async def credentials(self, token: str) -> Answer:  # noqa: ARG002
        """From now on act for whom this bearer token stands (optional)."""
        raise unknown_op()

    async def advance(self, ms: int) -> Answer:  # noqa: ARG002
        """Move the client's clock (optional)."""
        raise unknown_op()

    async def idle(self) -> Answer:
        """True once nothing is under way; None (the default) where the client cannot know."""
        return {"idle": None}


def listed(items: Iterable[Any]) -> list[dict[str, str]]:
    """The contract's items for the items of a list result (``name`` and ``description``)."""
    return [{"name": item.name, "description": item.description or ""} for item in items]


def texts(parts: Iterable[object]) -> str:
    """The contract's text for the contents of a resource, or those of a prompt's messages."""
    return "".join(str(getattr(part, "text", "")) for part in parts)


def run_driver(hello: Mapping[str, Any], connection: Callable[[Target], Connection]) -> None:
    """Serve the contract on stdin and stdout until stdin closes.

    ``hello`` holds at least ``name`` and ``version``; the rest has defaults for a full client.
    """
    anyio.run(_Host(hello, connection).serve)


class Refused(Exception):
    """A command that is answered with an error."""

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


def unknown_op() -> Refused:
    """What is said to a command that a driver does not offer."""
    return Refused("unknown op", "unsupported")


class _Live:
    """A connection with the scopes that end it and the commands waiting on it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.scope = anyio.CancelScope()
        self.usable = anyio.Event()
        self.ended = anyio.Event()
        self.waiting: set[anyio.CancelScope] = set()

    async def run(self) -> None:
        try:
            with self.scope:
                await self.connection.run(self.usable.set)
        except Exception as error:
            print(f"connection ended: {error!r}", file=sys.stderr)
        finally:
            self.usable.set()
            self.ended.set()

    async def stop(self) -> None:
        for scope in self.waiting:
            scope.cancel()
        self.scope.cancel()
        await self.ended.wait()


class _Host:
    def __init__(
        self, hello: Mapping[str, Any], connection: Callable[[Target], Connection]
    ) -> None:
        self._hello = {
            "contract": CONTRACT,
            "level": "full",
            "ops": OPS,
            "transports": ("stdio", "http"),
            "revisions": ("2025-11-25", "2026-07-28"),
            "kinds": KINDS,
            **hello,
        }
        self._new = connection
        self._live: dict[str, _Live] = {}

    async def serve(self) -> None:
        async with anyio.create_task_group() as self._tasks:
            # A thread reads: the loop never blocks, and the thread may be left behind at the end.
            while line := await anyio.to_thread.run_sync(
                sys.stdin.buffer.readline, abandon_on_cancel=True
            ):
                self._tasks.start_soon(self._answer, json.loads(line))
            await self._stop_all()
            self._tasks.cancel_scope.cancel()

    async def _answer(self, command: Mapping[str, Any]) -> None:
        try:
            reply: dict[str, Any] = {"ok": await self._perform(command)}
        except Refused as refused:
            reply = {"error": {"message": str(refused), "code": refused.code}}
        except Exception as error:
            reply = {"error": {"message": repr(error)}}
        print(json.dumps({"id": command["id"], **reply}), flush=True)

    async def _perform(self, command: Mapping[str, Any]) -> Answer:
        match command["op"]:
            case "hello":
                return self._hello
            case "connect":
                return await self._connect(command)
            case "stop":
                return await self._stop(command.get("connection"))
            case op if op in (*OPS, *OPTIONAL):
                return await self._on_connection(command)
            case _:
                raise unknown_op()

    async def _connect(self, command: Mapping[str, Any]) -> Answer:
        target = command["target"]
        live = _Live(
            self._new(
                Target(
                    target.get("command"),
                    target.get("env") or {},
                    target.get("url"),
                    command["revision"],
                    command.get("request_timeout_ms"),
                )
            )
        )
        self._live[command["connection"]] = live
        self._tasks.start_soon(live.run)
        await live.usable.wait()
        return {}

    async def _stop(self, name: str | None) -> Answer:
        if name is None:
            await self._stop_all()
        elif live := self._live.pop(name, None):
            await live.stop()
        return {}

    async def _stop_all(self) -> None:
        async with anyio.create_task_group() as tasks:
            while self._live:
                tasks.start_soon(self._live.popitem()[1].stop)

    async def _on_connection(self, command: Mapping[str, Any]) -> Answer:
        live = self._live.get(command["connection"])
        if live is None:
            raise Refused("unknown connection")
        with anyio.CancelScope() as scope:
            live.waiting.add(scope)
            try:
                if command["op"] != "believe":
                    await live.usable.wait()
                return await perform(live.connection, command["op"], command)
            finally:
                live.waiting.discard(scope)
        raise Refused("the connection was stopped", "stopped")


async def perform(connection: Connection, op: str, fields: Mapping[str, Any]) -> Answer:
    """Put one command to the connection that it is for. Raises ``Refused`` for an unknown one."""
    match op:
        case "need":
            return await connection.need(fields["kind"])
        case "believe":
            return connection.believe(fields["kind"])
        case "refresh":
            return await connection.refresh(fields["kind"])
        case "idle":
            return await connection.idle()
        case "credentials":
            return await connection.credentials(fields["token"])
        case "advance":
            return await connection.advance(fields["ms"])
        case _:
            return await _use(connection, op, fields)


async def _use(connection: Connection, op: str, fields: Mapping[str, Any]) -> Answer:
    arguments: Mapping[str, Any] = fields.get("arguments") or {}
    match op:
        case "call" if planned := fields.get("planned"):
            return await connection.call_planned(str(fields["name"]), arguments, planned)
        case "call":
            return await connection.call(str(fields["name"]), arguments)
        case "get_prompt":
            return await connection.get_prompt(str(fields["name"]), arguments)
        case "read":
            return await connection.read(str(fields["uri"]))
        case "subscribe":
            return await connection.subscribe(str(fields["uri"]))
        case "unsubscribe":
            return await connection.unsubscribe(str(fields["uri"]))
        case _:
            raise unknown_op()
