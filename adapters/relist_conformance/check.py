"""``relist check`` without its options: start the driver, play the cells, report."""

import sys
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from signal import SIG_IGN, SIGINT, SIGTERM, getsignal
from typing import TYPE_CHECKING, Any

import anyio
import attrs
from rich.console import Console

from relist_conformance.baseline import (
    NOTHING_KNOWN,
    Applied,
    Entry,
    apply,
    load_baseline,
    without_known,
)
from relist_conformance.by_hand import HandDriver, address_of
from relist_conformance.driver import Driver, Hello, Limits, parse_command
from relist_conformance.errors import ConformanceError, DriverError, quoted
from relist_conformance.official import OfficialDriver
from relist_conformance.play import Played, Stage, open_stage, play
from relist_conformance.progress import Progress
from relist_conformance.report.data import Timing, report_of
from relist_conformance.report.files import Wanted
from relist_conformance.report.table import SHOWN, print_report
from relist_conformance.runner import (
    Cell,
    Observed,
    Result,
    Word,
    exit_code,
    play_cells,
    select_cells,
)
from relist_conformance.script import Case, load_cases

if TYPE_CHECKING:
    from relist_conformance.cli import CheckOptions

_PATHS = ("files", "cases", "baseline")
REFERENCE_DRIVER = (sys.executable, "-m", "relist_conformance.drivers.reference")


def all_cases(folder: Path | None) -> tuple[Case, ...]:
    """The cases that come with Relist, and those of ``folder``. Raises ``ConformanceError``."""
    cases = load_cases()
    added = load_cases(folder) if folder else ()
    taken = {case.id for case in cases}
    for case in added:
        if case.id in taken:
            raise ConformanceError(f"case folder {quoted(str(folder))}: {case.id} exists already")
    return (*cases, *added)


async def run_check(options: "CheckOptions", out: Console, err: Console) -> int:
    """Judge one driver as the options say, print the report on ``out``, and give the exit code.

    Progress goes to ``err``. Raises ``ConformanceError`` (one line) where nothing can be judged.
    """
    began, before = time.monotonic(), _cpu_ms()
    cases = all_cases(options.cases)
    cells = select_cells(
        cases,
        patterns=options.patterns,
        revisions=options.revisions,
        transports=options.transports,
        profile=options.profile,
    )
    subject, place = _subject(options, err), _stage(options)
    wanted = Wanted(options.files)
    wanted.check()
    baseline = None if options.baseline is None else load_baseline(options.baseline)
    starting = time.monotonic()
    async with (
        subject as driver,
        place as stage,
    ):
        started = time.monotonic()
        with Progress(err, len(cells)) as progress:
            results = await play_cells(
                cells,
                driver.hello,
                partial(play_on, driver, stage, options.patience_ms),
                at_once=options.jobs,
                finished=lambda result: progress.finished(_told(result)),
            )
    spent = [after - at_first for after, at_first in zip(_cpu_ms(), before, strict=True)]
    timing = Timing((time.monotonic() - began) * 1000, (started - starting) * 1000, *spent)
    applied = _held_against(baseline, driver.hello, results, {case.id for case in cases})
    who = f"{driver.hello.name} {driver.hello.version}"
    print_report(out, results, f"{who}, profile {options.profile}", applied)
    err.print(_time_told(timing))
    if isinstance(driver, OfficialDriver) and driver.failed:
        err.print(f"the command failed in {driver.failed} plays; the last: {driver.last_failure}")
    if wanted.paths:
        # Of the options, paths of this machine are nobody's business.
        told = attrs.asdict(options, filter=lambda field, _: field.name not in _PATHS)
        wanted.write(
            [report_of(results, driver.hello, timing, told, applied.known, applied.faults)]
        )
    code = exit_code(without_known(results, applied.known), strict=options.strict)
    return 1 if applied.faults and code in (0, 3) else code


def _cpu_ms() -> tuple[float, float]:
    """Processor time in milliseconds, of the children that have ended and of this process."""
    used = (getrusage(RUSAGE_CHILDREN), getrusage(RUSAGE_SELF))
    children, own = ((one.ru_utime + one.ru_stime) * 1000 for one in used)
    return children, own


def _time_told(timing: Timing) -> str:
    total, start, client, suite = (part / 1000 for part in attrs.astuple(timing))
    return (
        f"{total:.1f} s, {start:.1f} s of it to start; processor time: {client:.1f} s in the client"
        f" ({client / (client + suite):.0%}), {suite:.1f} s in the suite"
    )


def _held_against(
    baseline: Sequence[Entry] | None,
    hello: Hello,
    results: Sequence[Result],
    cases: Collection[str],
) -> Applied:
    if baseline is None:
        return NOTHING_KNOWN
    return apply(baseline, hello.name, results, cases, datetime.now(UTC).date())


_Subject = Driver | OfficialDriver | HandDriver


def _stage(options: "CheckOptions") -> AbstractAsyncContextManager[Stage]:
    """Where it is played, not yet opened."""
    if options.url is None:
        return open_stage(options.port)
    where = address_of(options.url)
    return open_stage(where.port, where.path)


def _subject(options: "CheckOptions", err: Console) -> AbstractAsyncContextManager[_Subject]:
    """What is judged, not yet started."""
    if options.url is not None:
        return HandDriver.start(options.url, err)
    if options.command is not None:
        parse_command(options.command)  # only to refuse what no shell would take either
        return OfficialDriver.start(options.command, options.scenario)
    argv = REFERENCE_DRIVER if options.driver is None else parse_command(options.driver)
    limits = Limits(min(Limits().hello_s, options.driver_timeout_s), options.driver_timeout_s)
    return Driver.start(argv, limits)


async def run_until_interrupted(run: Callable[[], Awaitable[int]]) -> int | None:
    """Run, and end in good order on Ctrl-C or SIGTERM: then the answer is None.

    The signals cancel a scope and not the main task, because only then is a shield respected: a
    driver that is just being started would otherwise be left behind.
    """
    code: int | None = None
    # A caller that had them ignored, such as nohup, means it.
    heard = [s for s in (SIGINT, SIGTERM) if getsignal(s) is not SIG_IGN]
    with anyio.open_signal_receiver(*heard) as signals:
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                async for _ in signals:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            code = await run()
            tasks.cancel_scope.cancel()
    return code


async def play_on(driver: _Subject, stage: Stage, patience_ms: int, cell: Cell) -> Observed:
    """Play one cell. Raises ``DriverError`` when the driver is of no more use after it."""
    if isinstance(driver, HandDriver):
        await driver.begin(f"{cell.case.id} in {cell.revision}")
    how: dict[str, Any] = {"patience_ms": patience_ms, "stage": stage, "ops": driver.hello.ops}
    played = await play(cell.case, cell.revision, cell.transport, driver, **how)
    if driver.broken is not None:
        raise DriverError(driver.broken)
    return observed(played)


def observed(played: Played) -> Observed:
    """The verdict on a cell, from what its play came to."""
    verdict, findings = played.verdict, played.verdict.findings if played.verdict else ()
    word: Word
    match played.outcome.word:
        case "judged" if verdict is not None:
            word = verdict.word
        case "not_applicable" | "untestable" | "inconclusive" as word:
            pass
        case _:
            word = "harness"
    return Observed(word, played.outcome.reason, findings, played.history, played.lag_ms)


def _told(result: Result) -> str:
    return f"{SHOWN[result.word][0]} {result.cell.case.id} {result.cell.where}"
