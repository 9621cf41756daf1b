"""A correct client that keeps pages, each with its own lifetime.

It connects at once and again when the connection is lost, asks for discovery, and follows all kinds
by one subscription. A list is put together from its pages: of those kept, only the expired ones
are fetched again, by their cursors. A notice, the loss of notices that were heard, and a refused
cursor drop all pages of a kind. Where a listing fails the application is given the last list.
"""

from collections import defaultdict
from collections.abc import Callable
from math import inf
from typing import Any

import anyio
import anyio.abc
import attrs

from clients.speech import CHANNELS, LEGACY, METHODS, Speech, connected
from clients.told import Opinion, Told, lifetime_s, page_of, serve
from clients.wires import Failed, Json
from relist_conformance.drivers.base import Answer, Target

_MOST_PAGES = 200
_CONNECTED_S = 10.0


@attrs.frozen
class _Page:
    items: dict[str, Json]
    following: str | None
    until_s: float
    private: bool


class _Spoiled(Exception):
    """The pages read so far do not belong together."""


class Pages(Told):
    """The pages of each kind by their cursors, and the last list of each."""

    def __init__(self, target: Target, link: Any = None) -> None:
        super().__init__(target, link)
        self._token: str | None = None
        self._scope = anyio.CancelScope()
        self._speech: Speech | None = None
        self._ready = anyio.Event()
        self._covered: set[str] = set()
        self._listing: dict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._pages: dict[str, dict[str | None, _Page]] = {kind: {} for kind in METHODS}
        self._last: dict[str, tuple[_Page, ...]] = {}

    async def run(self, usable: Callable[[], None]) -> None:
        pause_s = 0.1
        while True:
            speech = Speech(self._forget, self.target.request_timeout_s or 30, probes=True)
            with anyio.CancelScope() as self._scope:
                try:
                    await self._connect(speech, usable)
                    pause_s = 0.1
                except* Failed:
                    pass
            usable()
            self._lose(speech)
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, 30)

    async def _connect(self, speech: Speech, usable: Callable[[], None]) -> None:
        async with connected(self.target, self._link, self._token, speech):
            await speech.open()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow, speech)
                self._speech = speech
                await self._ready.wait()
                usable()
                await speech.wire.lost.wait()
                tasks.cancel_scope.cancel()

    def _lose(self, speech: Speech) -> None:
        """A list that rested on its lifetimes alone outlives a connection."""
        self._forget(*(METHODS if speech.version == LEGACY else self._covered))
        self._covered = set()
        self._speech = None
        if self._ready.is_set():
            self._ready = anyio.Event()

    async def _follow(self, speech: Speech) -> None:
        """Ask for notices, and again when they end; they are missed meanwhile."""
        wanted = {channel for channel in set(CHANNELS.values()) if speech.announces(channel)}
        pause_s = 0.2
        while wanted:
            async with anyio.create_task_group() as tasks:
                self._covered = await tasks.start(speech.follow, wanted, lambda _: None)
                self._ready.set()
            if not self._covered:
                break
            self._forget(*self._covered)
            self._covered = set()
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, 30)
        self._ready.set()

    def _forget(self, *channels: str) -> None:
        for kind, channel in CHANNELS.items():
            if channel in channels:
                self._pages[kind] = {}

    async def connection(self) -> Speech:
        with anyio.move_on_after(_CONNECTED_S):
            await self._ready.wait()
        if self._speech is None or self._speech.wire.lost.is_set():
            raise Failed("not connected")
        return self._speech

    async def items(self, kind: str) -> dict[str, Json] | None:
        try:
            async with self._listing[kind]:
                for tries_left in (3, 2, 1, 0):
                    try:
                        await self._walk(kind, torn=not tries_left)
                    except _Spoiled:
                        continue
                    break
        except Failed:
            if kind not in self._last:
                raise
        return self.held(kind)

    async def _walk(self, kind: str, *, torn: bool) -> None:
        """Make the list of its pages; with ``torn`` the notices meanwhile do not matter."""
        speech = await self.connection()
        if not speech.has(kind):
            self._last.pop(kind, None)
            return
        kept, met, walked = self._pages[kind], set[str | None](), list[_Page]()
        cursor: str | None = None
        while True:
            page = kept.get(cursor)
            if page is None or page.until_s <= self.now_s() or cursor in met:
                page = await self._fetch(speech, kind, cursor)
                spoiled = kept is not self._pages[kind] and not torn
                if spoiled or speech is not self._speech:
                    raise _Spoiled
                kept[cursor] = page
            met.add(cursor)
            walked.append(page)
            cursor = page.following
            if cursor is None:
                self._last[kind] = tuple(walked)
                return
            if len(walked) == _MOST_PAGES:
                raise Failed("a list without end")

    async def _fetch(self, speech: Speech, kind: str, cursor: str | None) -> _Page:
        try:
            params: Json = {} if cursor is None else {"cursor": cursor}
            result = await speech.request(METHODS[kind], params)
        except Failed as failed:
            if cursor is None or failed.code is None:
                raise
            self._forget(CHANNELS[kind])
            raise _Spoiled from None
        until_s, following = self.now_s() + lifetime_s(result), result.get("nextCursor")
        if not isinstance(following, str | None):
            raise Failed("a cursor that is no text")
        if speech.version == LEGACY:  # lifetimes are of the other era
            until_s = inf if CHANNELS[kind] in self._covered else self.now_s()
        private = result.get("cacheScope") != "public"
        return _Page(page_of(kind, result), following, until_s, private)

    def held(self, kind: str) -> dict[str, Json] | None:
        if kind not in self._last:
            return None
        items: dict[str, Json] = {}
        for page in self._last[kind]:
            items |= {key: page.items[key] for key in page.items if key not in items}
        return items

    def opinion(self, kind: str) -> Opinion:
        if kind not in self._last:
            return "unknown"
        kept = self._pages[kind].values()
        fresh = all(page in kept and page.until_s > self.now_s() for page in self._last[kind])
        return "fresh" if fresh else "stale"

    def drop(self, kind: str) -> None:
        """Somebody needs one consistent list."""
        self._forget(CHANNELS[kind])

    async def credentials(self, token: str) -> Answer:
        """What is public stays, as its lifetime allows; and the connection is made anew."""
        self._token = token
        for kind, pages in self._pages.items():
            last = self._last.get(kind, ())
            if any(page.private for page in (*pages.values(), *last)):
                self._pages[kind] = {}
                self._last.pop(kind, None)
        self._scope.cancel()
        if self._speech is not None:
            self._lose(self._speech)
        return {}


if __name__ == "__main__":
    serve("pages", Pages)
