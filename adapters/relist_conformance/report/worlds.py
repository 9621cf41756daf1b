"""What exploring worlds came to: as tables, with the way to each broken promise, and as JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Literal

import attrs
from rich.console import Console
from rich.table import Table
from rich.text import Text

import relist
from relist.check import collection
from relist.check.collection import Entry
from relist.check.explore import Counterexample, Report
from relist_conformance.errors import plain

FORMAT = 1
Verdict = Literal["holds", "broken", "unfinished"]
SHOWN: Mapping[Verdict, tuple[str, str]] = {
    "holds": ("holds", "green"),
    "broken": ("BROKEN", "bold red"),
    "unfinished": ("unfinished", "magenta"),
}
"""How each verdict is written (word, style), in the order in which a summary counts them."""

_MAX_LINE = 400


@attrs.frozen
class Explored:
    """What was found in one world, and how long it took to look."""

    report: Report
    elapsed_s: float

    @property
    def verdict(self) -> Verdict:
        """Only a world that was looked at whole holds its promises."""
        if self.report.counterexample is not None:
            return "broken"
        return "holds" if self.report.complete else "unfinished"


def print_list(console: Console, entries: Sequence[Entry]) -> None:
    """A table of worlds, and which of them only ``--larger`` explores."""
    table = Table("world", "what is looked at", "explored")
    for entry in entries:
        when = "with --larger" if entry in collection.LARGER else "by default"
        table.add_row(Text(entry.name), Text(entry.about), when)
    console.print(table)


def print_worlds(
    console: Console, results: Sequence[Explored], never: Sequence[str] | None
) -> None:
    """Print the table, each counterexample, what never happened (None: not judged), a summary."""
    console.print(_table(results))
    for found in results:
        if found.report.counterexample is not None:
            console.print()
            console.print(Text(plain(found.report.world, _MAX_LINE), "bold"), soft_wrap=True)
            _print_counterexample(console, found.report.counterexample)
    console.print()
    if never is None:
        console.print("Not judged: whether all that must happen somewhere does.")
        console.print("Only the default worlds together can show it, each looked at whole.")
    elif never:
        console.print(Text("Never happened, though it must in some world:", "bold red"))
        for name in never:
            console.print(Text(f"  {plain(name, _MAX_LINE)}"), soft_wrap=True)
    else:
        count = len(collection.must_happen())
        console.print(
            "All that must happen somewhere does: "
            f"{count} rows, phases, doubts and pairs of phases."
        )
    console.print(_summary(results))


def _table(results: Sequence[Explored]) -> Table:
    table = Table("world")
    for number in ("scenes", "moves", "depth", "seconds"):
        table.add_column(number, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for found in results:
        report = found.report
        table.add_row(
            Text(plain(report.world, _MAX_LINE)),
            f"{report.scenes:,}",
            f"{report.moves:,}",
            f"{report.depth}",
            f"{found.elapsed_s:.1f}",
            Text(*SHOWN[found.verdict]),
        )
    return table


def _print_counterexample(console: Console, shown: Counterexample) -> None:
    """As it reads: one line per move, with the scene after it."""
    for line in str(shown).splitlines():
        console.print(Text(f"  {plain(line, _MAX_LINE)}"), soft_wrap=True)


def _summary(results: Sequence[Explored]) -> Text:
    line = Text()
    for verdict, (shown, style) in SHOWN.items():
        if count := _count(results, verdict):
            line.append(f"{', ' if line else ''}{count} ").append(shown, style)
    return line


def _count(results: Sequence[Explored], verdict: Verdict) -> int:
    return sum(found.verdict == verdict for found in results)


def as_json(
    results: Sequence[Explored], never: Sequence[str] | None, scenes_max: int | None
) -> str:
    """The whole run as one JSON document. ``never`` null: not judged."""
    document = {
        "format": FORMAT,
        "relist": relist.__version__,
        "scenes_max": scenes_max,
        "summary": {verdict: _count(results, verdict) for verdict in SHOWN},
        "never": never,
        "worlds": [
            {
                "world": found.report.world,
                "verdict": found.verdict,
                "scenes": found.report.scenes,
                "moves": found.report.moves,
                "depth": found.report.depth,
                "elapsed_ms": round(found.elapsed_s * 1000),
                "counterexample": found.report.counterexample
                and attrs.asdict(found.report.counterexample),
            }
            for found in results
        ],
    }
    return json.dumps(document, indent=2) + "\n"
