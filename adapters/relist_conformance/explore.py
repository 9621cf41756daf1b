"""``relist explore`` without its options: look at everything that can happen in small worlds."""

import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from rich.console import Console

from relist.check import collection
from relist.check.collection import Entry
from relist.check.explore import explore
from relist_conformance.errors import ConformanceError, must_be_writable, quoted
from relist_conformance.progress import Progress
from relist_conformance.report.worlds import SHOWN, Explored, as_json, print_worlds


def chosen(patterns: Sequence[str], *, larger: bool) -> tuple[Entry, ...]:
    """The worlds whose name matches a pattern (all when there is none).

    Raises ``ConformanceError`` for a pattern that matches none of them.
    """
    known = (*collection.DEFAULT, *(collection.LARGER if larger else ()))
    for pattern in patterns:
        if not any(fnmatchcase(entry.name, pattern) for entry in known):
            names = "; ".join(entry.name for entry in known)
            raise ConformanceError(f"no world matches {quoted(pattern)}; there are: {names}")
    return tuple(
        entry
        for entry in known
        if not patterns or any(fnmatchcase(entry.name, pattern) for pattern in patterns)
    )


def run_explore(
    entries: Sequence[Entry],
    out: Console,
    err: Console,
    *,
    scenes_max: int | None = None,
    json: Path | None = None,
) -> int:
    """Explore these worlds one after the other, print what was found, and give the exit code.

    Each world is given up beyond ``scenes_max`` scenes. Progress goes to ``err``. Raises
    ``ConformanceError`` where the JSON file cannot be written.
    """
    if json is not None:
        must_be_writable(json)
    with Progress(err, len(entries)) as progress:
        results = [_explored(entry, progress, scenes_max) for entry in entries]
    never = never_happened(results)
    print_worlds(out, results, never)
    scenes = sum(found.report.scenes for found in results)
    elapsed_s = sum(found.elapsed_s for found in results)
    err.print(f"{elapsed_s:.1f} s, {scenes / elapsed_s:,.0f} scenes a second")
    if json is not None:
        json.write_text(as_json(results, never, scenes_max), encoding="utf-8")
    return exit_code(results, never)


def _explored(entry: Entry, progress: Progress, scenes_max: int | None) -> Explored:
    began = time.perf_counter()

    def met(scenes: int, pending: int) -> None:
        rate = scenes / (time.perf_counter() - began)
        progress.under_way(f"{entry.name}: {scenes:,} scenes, {pending:,} pending, {rate:,.0f}/s")

    progress.under_way(entry.name)
    report = explore(entry.make(), met, scenes_max)
    found = Explored(report, time.perf_counter() - began)
    progress.finished(f"{SHOWN[found.verdict][0]} {entry.name}")
    return found


def never_happened(results: Sequence[Explored]) -> tuple[str, ...] | None:
    """What must happen and did not; None where the default worlds were not all looked at whole."""
    whole = {found.report.world for found in results if found.verdict == "holds"}
    if not whole.issuperset(entry.name for entry in collection.DEFAULT):
        return None
    happened = frozenset[str]().union(*(found.report.reached for found in results))
    return tuple(sorted(collection.must_happen() - happened))


def exit_code(results: Sequence[Explored], never: Sequence[str] | None) -> int:
    """1 for a broken promise or a law that does too little, 3 for a world not looked at whole."""
    verdicts = {found.verdict for found in results}
    if "broken" in verdicts or never:
        return 1
    return 3 if "unfinished" in verdicts else 0
