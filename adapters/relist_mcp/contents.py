"""What resources contain: read, kept for as long as the server said, doubted when it changes.

The rules of the cache are ``relist.resources``; which updates are heard of is the core's affair.
Nothing here touches a list. Rule: RES-01, RES-02, RES-06 to RES-10.
"""

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mcp_types import ReadResourceResult

from relist import effects as e
from relist import inputs as i
from relist import resources
from relist.errors import ImpossibleAct
from relist.messages import is_integer, read_ttl_ms
from relist.resources import Contents, contains
from relist.values import Era, Kind, Scope
from relist_mcp.calls import Calls, entry, parsed
from relist_mcp.exchange import now_ms
from relist_mcp.loop import Fed, Loop
from relist_mcp.sendable import check_sendable

if TYPE_CHECKING:
    from relist_mcp.catalogs import Catalogs

NEWS_MAX = 1024  # resources whose last change is remembered one by one


class _Read:
    """A read under way; ``spoiled`` once what it brings may be older than a change."""

    def __init__(self, uri: str) -> None:
        self.uri, self.spoiled = uri, False


class ContentCache:
    """The contents of the resources of one ``Catalogs``, from when they are first asked for."""

    def __init__(self, catalogs: "Catalogs", loop: Loop, calls: Calls) -> None:
        self._catalogs, self._loop, self._calls = catalogs, loop, calls
        self._contents: Contents = {}
        self._reads: list[_Read] = []
        self._wanted: frozenset[str] = frozenset()
        self._count = 0
        self._news: dict[str, int] = {}  # by URI, which change was its last; in order

    async def read(self, uri: str) -> ReadResourceResult:
        """See ``Catalogs.read_resource``."""
        if self._loop.waiting:
            self._loop.drain()  # what was heard may be what doubts it
        partition = self._partition
        listed = self._catalogs.session.catalog(Kind.RESOURCES).snapshot
        self._calls.check_exposed(Kind.RESOURCES, uri, entry(listed, uri))
        held = resources.look_up(self._contents, uri, partition, now_ms())
        if held is not None:
            return _result(json.loads(held.body))
        reading = _Read(uri)
        self._reads.append(reading)
        try:
            raw, by_retry = await self._calls.read_resource(uri)
        finally:
            self._reads.remove(reading)
        result = _result(raw)
        if not reading.spoiled:
            self._keep(uri, raw, partition, by_retry)
        return result

    def _keep(self, uri: str, raw: Mapping[str, Any], partition: str, by_retry: bool) -> None:
        modern = self._catalogs.session.link.era is Era.MODERN
        self._contents = resources.keep(
            self._contents,
            uri,
            json.dumps(raw).encode(),
            ttl_ms=read_ttl_ms(raw) if modern else None,
            scope=Scope.PUBLIC if raw.get("cacheScope") == "public" else Scope.PRIVATE,
            partition=partition,
            by_retry=by_retry,
            now_ms=now_ms(),
            policy=self._catalogs.policy,
        )

    @property
    def _partition(self) -> str:
        return self._catalogs.session.catalogs[0].standing.partition

    # --- updates ----------------------------------------------------------------------------------

    def watch(self, wanted: Iterable[str]) -> None:
        """Hear of updates of these resources, and of no others.

        Raises ImpossibleAct for more than ``policy.subscriptions_max``, and for what is no text.
        Rule: RES-03, RES-04.
        """
        uris, most = frozenset(wanted), self._catalogs.policy.subscriptions_max
        check_sendable(sorted(uris))  # each link that it is sent on would end
        if len(uris) > most:  # raised here, not in the loop
            raise ImpossibleAct(f"{len(uris)} subscriptions, more than policy.subscriptions_max")
        self._wanted = uris
        self._loop.tell(i.UpdatesWanted(uris, now_ms()))

    @property
    def wanted(self) -> frozenset[str]:
        """The resources whose updates are wanted."""
        return self._wanted

    def updates(self) -> AsyncGenerator[str]:
        """See ``Catalogs.updates``."""
        return self._updates(self._count)

    async def _updates(self, seen: int) -> AsyncGenerator[str]:
        while not self._catalogs.over:
            found = next(((uri, at) for uri, at in self._news.items() if at > seen), None)
            if found is None:
                await self._loop.moved()
            else:
                uri, seen = found
                yield uri

    def observe(self, fed: Fed) -> None:
        """Doubt what has changed, or may have, and withdraw what is private to somebody else.

        A read under way may have been answered before the change that was told of before it came:
        it is not kept. Rule: RES-05, RES-06, RES-10, AUTH-03.
        """
        for effect in fed.effects:
            if isinstance(effect, e.ContentChanged):
                self._contents = resources.updated(self._contents, effect.uri)
                self._spoil(effect.uri)
                self._tell(effect.uri)
            elif isinstance(effect, e.ContentUncovered):
                self._contents = resources.uncovered(self._contents, effect.uris)
                for uri in sorted(effect.uris):
                    self._spoil(uri)
                    self._tell(uri)
        if isinstance(fed.heard, i.CredentialsChanged):
            self._contents = resources.withdrawn(self._contents, fed.heard.partition)

    def _spoil(self, uri: str) -> None:
        for reading in self._reads:
            if reading.uri == uri or contains(reading.uri, uri):
                reading.spoiled = True

    def _tell(self, uri: str) -> None:
        """Note that it changed. Of too many, those that are subscribed to are noted instead."""
        self._count += 1
        self._news.pop(uri, None)
        self._news[uri] = self._count
        if len(self._news) > NEWS_MAX + len(self._wanted):
            oldest = next(iter(self._news))
            del self._news[oldest]
            for wanted in sorted(self._wanted):
                if wanted != oldest and contains(wanted, oldest):
                    self._count += 1
                    self._news.pop(wanted, None)
                    self._news[wanted] = self._count


def _result(raw: Mapping[str, Any]) -> ReadResourceResult:
    """The result; hints of the wrong shape are left out of it. Rule: TTL-08, TTL-26."""
    usable = dict(raw)
    ttl_ms = usable.get("ttlMs", 0)
    if not is_integer(ttl_ms) or ttl_ms < 0:
        del usable["ttlMs"]
    if usable.get("cacheScope", "public") not in ("public", "private"):
        del usable["cacheScope"]
    return parsed("resources/read", ReadResourceResult, usable)
