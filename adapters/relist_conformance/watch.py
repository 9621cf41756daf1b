"""``relist watch``: one live server, shown and recorded while it changes."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from io import FileIO
from signal import SIG_IGN, SIGINT, SIGTERM, getsignal
from typing import Any

import anyio
from attrs import evolve
from rich.console import Console
from typer import echo

from relist.check.trace import stood
from relist.session import Session
from relist.values import LinkPhase, Phase
from relist_conformance.errors import plain
from relist_conformance.recorder import recording
from relist_conformance.report.told import Ended, Why
from relist_conformance.shows import ForPeople, ForPrograms, Show
from relist_conformance.watch_options import WatchOptions
from relist_mcp.catalogs import Catalogs
from relist_mcp.fold import Seen, fold
from relist_mcp.loop import Fed, Observer
from relist_mcp.targets import Http, Stdio

Wait = Callable[[], Awaitable[Any]]
_TICK_S = 0.25
_CHUNK = 4096  # bytes read of the server's log at once
_LOG_MAX = 400  # characters of a line of it


class Watch:
    """An observer of the loop that passes on each step, and what happened in it.

    It must not raise, so its first failure is kept; ``failed`` tells of it.
    """

    def __init__(self, show: Show, observers: list[Observer]) -> None:
        self.failure: BaseException | None = None
        self.failed = anyio.Event()
        self._show = show
        self._observers = [*observers, show.observe]
        self._seen = Seen()

    def __call__(self, fed: Fed) -> None:
        """See ``relist_mcp.loop.Observer``."""
        if self.failure is not None:
            return
        try:
            self._seen, events = fold(self._seen, fed)
            for observer in self._observers:
                observer(fed)
            for event in events:
                self._show.tell(event)
        except (Exception, SystemExit) as failure:  # rich makes one of a broken pipe
            self.failure = failure
            self.failed.set()


async def run_watch(options: WatchOptions, out: Console, err: Console) -> int | None:
    """Watch until it is enough. The exit code, None if interrupted.

    0 it ended as asked; 1 not all lists were fresh, though that was asked for. Raises
    ConformanceError for a file that cannot be written.
    """
    with ExitStack() as stack:
        observers: list[Observer] = []
        if options.record is not None:
            wire, partition = options.target.wire, options.credentials.partition
            recorder = recording(options.record, options.policy, wire, partition)
            observers.append(stack.enter_context(recorder))
        show: Show
        if options.json:
            show = ForPrograms(echo, err)
        else:
            show = people = ForPeople(out, options.title, options.policy)
            stack.enter_context(people.view)
        watch = Watch(show, observers)
        why, session = await _watched(options, show, watch)
        if watch.failure is not None:
            raise watch.failure
        show.end(Ended(why, stood(session, options.policy)))
    if why == "interrupted":
        return None
    fresh = why == "idle" and _all_fresh(session, lazy=options.policy.lazy)
    return 1 if options.until_idle and not fresh else 0


def _all_fresh(session: Session, *, lazy: bool) -> bool:
    """Whether each list that is offered is fresh; a lazy one may wait to be asked for."""
    good = (Phase.FRESH, Phase.UNSUPPORTED, *((Phase.STALE,) if lazy else ()))
    live = session.link.phase is LinkPhase.LIVE
    return live and all(catalog.phase in good for catalog in session.catalogs)


async def _watched(options: WatchOptions, show: Show, watch: Watch) -> tuple[Why, Session]:
    """Why it was enough, and how everything stood before it was closed."""
    # A caller that had them ignored, such as nohup, means it.
    heeded = [one for one in (SIGINT, SIGTERM) if getsignal(one) is not SIG_IGN]
    with anyio.open_signal_receiver(*heeded) as signals:
        async with _logged(options.target, show) as target:
            connected = Catalogs.connect(
                target,
                policy=options.policy,
                credentials=options.credentials,
                observers=(watch,),
            )
            async with connected as catalogs:
                why = await _enough(options, show, catalogs, (watch.failed.wait, signals.__anext__))
                session = catalogs.session
    return why, session


async def _enough(
    options: WatchOptions, show: Show, catalogs: Catalogs, interruptions: Sequence[Wait]
) -> Why:
    """Why it is enough: what comes first of all that may end it."""
    reasons: list[Why] = []
    async with anyio.create_task_group() as tasks:

        async def ends(wait: Wait, why: Why) -> None:
            await wait()
            reasons.append(why)
            tasks.cancel_scope.cancel()

        tasks.start_soon(_tick, show)
        for wait in interruptions:
            tasks.start_soon(ends, wait, "interrupted")
        if options.until_idle:
            tasks.start_soon(ends, catalogs.idle, "idle")
        if options.for_s is not None:
            over: Why = "not idle" if options.until_idle else "time"
            tasks.start_soon(ends, partial(anyio.sleep, options.for_s), over)
    return reasons[0]


async def _tick(show: Show) -> None:
    while True:
        show.tick()
        await anyio.sleep(_TICK_S)


# --- the server's log -----------------------------------------------------------------------------


@asynccontextmanager
async def _logged(target: Stdio | Http, show: Show) -> AsyncGenerator[Stdio | Http]:
    """The target, and if it is a process, what it writes to its stderr goes to the show."""
    if isinstance(target, Http):
        yield target
        return
    read, write = os.pipe()
    os.set_blocking(read, False)
    with open(write, "wb", buffering=0) as errlog, open(read, "rb", buffering=0) as log:
        lines = _Lines(show.log)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_relay, log, lines)
            yield evolve(target, errlog=errlog)
            tasks.cancel_scope.cancel()
        lines.add(log.read(_CHUNK) or b"")
        lines.flush()


async def _relay(log: FileIO, lines: "_Lines") -> None:
    while True:
        await anyio.wait_readable(log)
        lines.add(log.read(_CHUNK) or b"")


class _Lines:
    """Bytes in, lines out that are safe to print and not too long."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._rest = b""

    def add(self, chunk: bytes) -> None:
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            self._tell(line)
        if len(self._rest) > _CHUNK:
            self.flush()

    def flush(self) -> None:
        if self._rest:
            self._tell(self._rest)
        self._rest = b""

    def _tell(self, line: bytes) -> None:
        self._say(plain(line.decode(errors="replace").rstrip("\r"), _LOG_MAX))
