"""A correct client that does as little as it may.

It connects when the application first needs something, and lists when the application needs a list
that is missing, stale or expired. A notice, and the end of what carried the notices, only mark a
list as stale. Each kind is followed by a subscription of its own; ``Deaf`` follows none and goes by
lifetimes alone. Over HTTP it never asks for discovery. It retries nothing, tells its application of
each failure, refuses a cursor that comes twice, and keeps no list beyond its connection.
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


@attrs.frozen
class _Held:
    """A list, and what was known when its listing began."""

    items: dict[str, Json]
    until_s: float
    reasons: int


class Lazy(Told):
    """One connection at a time, and the lists that came over it."""

    follows = True

    def __init__(self, target: Target, link: Any = None) -> None:
        super().__init__(target, link)
        self._token: str | None = None
        self._speech: Speech | None = None
        self._scope = anyio.CancelScope()
        self._connecting = anyio.Lock()
        self._listing: dict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._lists: dict[str, _Held] = {}
        self._reasons: dict[str, int] = defaultdict(int)
        """How often a channel gave reason to list anew."""
        self._covered: dict[str, bool] = {}
        """The channels asked for, and whether notices of them come."""

    async def run(self, usable: Callable[[], None]) -> None:
        """Nothing happens before somebody needs something."""
        async with anyio.create_task_group() as self._tasks:
            usable()
            await anyio.sleep_forever()

    async def connection(self) -> Speech:
        async with self._connecting:
            if self._speech is not None:
                return self._speech
            opened: Speech | Failed = await self._tasks.start(self._connect)
        if isinstance(opened, Failed):
            raise opened
        return opened

    async def _connect(self, *, task_status: anyio.abc.TaskStatus[Speech | Failed]) -> None:
        limit_s = self.target.request_timeout_s or 30
        speech = Speech(self._doubt, limit_s, probes=self.target.url is None)
        with anyio.CancelScope() as self._scope:
            try:
                async with connected(self.target, self._link, self._token, speech):
                    await speech.open()
                    self._speech = speech
                    task_status.started(speech)
                    await speech.wire.lost.wait()
            except* Failed as failures:
                task_status.started(Failed(repr(failures)))
        self._speech = None
        self._lists.clear()
        self._covered.clear()

    def _doubt(self, channel: str) -> None:
        self._reasons[channel] += 1

    async def items(self, kind: str) -> dict[str, Json] | None:
        async with self._listing[kind]:
            for _ in range(3):
                if self.opinion(kind) == "fresh":
                    break
                await self._list(kind)
        return self.held(kind)

    def held(self, kind: str) -> dict[str, Json] | None:
        return self._lists[kind].items if kind in self._lists else None

    def opinion(self, kind: str) -> Opinion:
        if (held := self._lists.get(kind)) is None:
            return "unknown"
        doubted = held.reasons < self._reasons[CHANNELS[kind]]
        return "stale" if doubted or held.until_s <= self.now_s() else "fresh"

    def drop(self, kind: str) -> None:
        self._doubt(CHANNELS[kind])

    async def credentials(self, token: str) -> Answer:
        """Nothing of one user is left for another; the next need connects anew."""
        self._token = token
        self._scope.cancel()
        async with self._connecting:
            self._speech = None
            self._lists.clear()
            self._covered.clear()
        return {}

    async def _list(self, kind: str) -> None:
        speech, channel = await self.connection(), CHANNELS[kind]
        if not speech.has(kind):
            return
        early = speech.version is None
        if not early:
            await self._follow(speech, channel)
        reasons, items, until_s = self._reasons[channel], dict[str, Json](), inf
        cursor: str | None = None
        met: set[str | None] = set()
        while True:
            met.add(cursor)
            page = await speech.request(METHODS[kind], {} if cursor is None else {"cursor": cursor})
            until_s = min(until_s, self.now_s() + lifetime_s(page))
            for key, item in page_of(kind, page).items():
                items.setdefault(key, item)
            cursor = page.get("nextCursor")
            if cursor is None:
                break
            if not isinstance(cursor, str) or cursor in met or len(met) == _MOST_PAGES:
                raise Failed("a cursor that leads nowhere")
        if speech.version == LEGACY:  # lifetimes are of the other era
            until_s = inf if self._covered.get(channel) else self.now_s()
        if speech is self._speech:
            self._lists[kind] = _Held(items, until_s, reasons)
        if early and self.follows:
            await self._follow(speech, channel)
            self._doubt(channel)  # it was begun before its notices came

    async def _follow(self, speech: Speech, channel: str) -> None:
        """Ask for notices once; and again only after they have come for a while."""
        if channel in self._covered:
            return

        def ended(granted: set[str]) -> None:
            if channel in granted and speech is self._speech:
                del self._covered[channel]
                self._doubt(channel)

        self._covered[channel] = False
        if self.follows and speech.announces(channel):
            granted = await self._tasks.start(speech.follow, {channel}, ended)
            self._covered[channel] = channel in granted


class Deaf(Lazy):
    """The same without any subscription or stream of notices."""

    follows = False


if __name__ == "__main__":
    serve("lazy", Lazy)
