"""What the clients of these tests tell their driver, and what both read in a result alike."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

import anyio

from clients.speech import Speech
from clients.wires import Failed, Json
from relist_conformance.drivers.base import OPS, Answer, Connection, Target, run_driver

Opinion = Literal["fresh", "stale", "unknown", "unsupported"]
_LONGEST_S = 3600.0
_FIELDS = {"resource_templates": "resourceTemplates"}
_KEYS = {"resources": "uri", "resource_templates": "uriTemplate"}


class Told(Connection):
    """A client whose clock can be moved. Its lists are items by key: a name or a URI.

    It connects to ``link`` in this process, or where that is None to the target.
    """

    def __init__(self, target: Target, link: Any = None) -> None:
        super().__init__(target)
        self._link = link
        self._ahead_s = 0.0

    def now_s(self) -> float:
        """The client's clock."""
        return anyio.current_time() + self._ahead_s

    @abstractmethod
    async def items(self, kind: str) -> dict[str, Json] | None:
        """The list as it is given to an application, None where there is none.

        Raises ``Failed``.
        """

    @abstractmethod
    def held(self, kind: str) -> dict[str, Json] | None:
        """The list held, however old."""

    @abstractmethod
    def opinion(self, kind: str) -> Opinion:
        """What the client thinks of it."""

    @abstractmethod
    def drop(self, kind: str) -> None:
        """The list held shall not be given again."""

    @abstractmethod
    async def connection(self) -> Speech:
        """The connection, made where there is none. Raises ``Failed``."""

    async def need(self, kind: str) -> Answer:
        return _answer(await self.items(kind), self.opinion(kind))

    def believe(self, kind: str) -> Answer:
        return _answer(self.held(kind), self.opinion(kind))

    async def refresh(self, kind: str) -> Answer:
        self.drop(kind)
        return await self.need(kind)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        params = {"name": name, "arguments": dict(arguments)}
        try:
            result = await (await self.connection()).request("tools/call", params)
        except Failed as failed:
            return {"outcome": "error", "detail": str(failed)}
        return {"outcome": "error" if result.get("isError") else "result"}

    async def call_planned(
        self, name: str, arguments: Mapping[str, Any], planned: Mapping[str, Any]
    ) -> Answer:
        tools = await self.items("tools") or {}
        if (tools.get(name) or {}).get("description") != planned.get("description"):
            return {"outcome": "refused", "detail": "the tool has changed"}
        return await self.call(name, arguments)

    async def advance(self, ms: int) -> Answer:
        self._ahead_s += ms / 1000
        return {}


def lifetime_s(result: Json) -> float:
    """How long this page may be used from now on: its ``ttlMs``, within bounds."""
    ttl_ms = result.get("ttlMs")
    if not isinstance(ttl_ms, int) or isinstance(ttl_ms, bool):
        return 0.0
    return max(0.0, min(ttl_ms / 1000, _LONGEST_S))


def page_of(kind: str, result: Json) -> dict[str, Json]:
    """The items of a page by their keys. Raises ``Failed`` where it holds no list of items."""
    found, key = result.get(_FIELDS.get(kind, kind)), _KEYS.get(kind, "name")
    if not isinstance(found, list):
        raise Failed("a result without a list")
    items: dict[str, Json] = {}
    for item in found:
        if not (isinstance(item, dict) and isinstance(item.get(key), str)):
            raise Failed("an entry that is no item")
        items.setdefault(item[key], item)
    return items


def _answer(items: dict[str, Json] | None, opinion: Opinion) -> Answer:
    told = None if items is None else [_told(item) for item in items.values()]
    return {"items": told, "state": opinion}


def _told(item: Json) -> dict[str, str]:
    return {"name": str(item.get("name")), "description": str(item.get("description") or "")}


def serve(name: str, connection: type[Told]) -> None:
    """Be a driver."""
    ops = (*OPS, "refresh", "credentials", "advance", "planned")
    run_driver({"name": name, "version": "1", "ops": ops}, connection)
