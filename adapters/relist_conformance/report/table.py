"""The table of verdicts, and below it what there is to know about each cell that did not pass."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from relist.check.deviation import Deviation
from relist.check.judge import Finding
from relist_conformance.baseline import NOTHING_KNOWN, Applied, key_of
from relist_conformance.errors import plain
from relist_conformance.report.labels import witness_lines
from relist_conformance.report.model import Report
from relist_conformance.runner import Result, Word
from relist_conformance.script import Case, Source

SHOWN: Mapping[Word, tuple[str, str]] = {
    "pass": ("pass", "green"),
    "warn": ("warn", "yellow"),
    "fail": ("FAIL", "bold red"),
    "inconclusive": ("inconclusive", "magenta"),
    "not_applicable": ("n/a", "dim"),
    "untestable": ("untestable", "cyan"),
    "harness": ("HARNESS", "bold red reverse"),
}
"""How each verdict is written (word, style), in the order in which a summary counts them."""

_MAX_TEXT = 600
_MAX_WITNESSES = 4
_NUMBER = re.compile(r"#\d+")


def print_report(
    console: Console, results: Sequence[Result], title: str, baseline: Applied = NOTHING_KNOWN
) -> None:
    """Print table, details and summary. Equal verdicts give an equal table and summary."""
    console.print(Text(plain(title), "bold"))
    console.print(_table(results))
    for case, of_case in _by_case(results):
        if any(result.word != "pass" for result in of_case):
            console.print()
            _print_case(console, case, of_case)
    console.print()
    _print_baseline(console, results, baseline)
    console.print(summary(results))


def _print_baseline(console: Console, results: Sequence[Result], baseline: Applied) -> None:
    """What is known already, and what is wrong with the list of it."""
    counts = Counter(
        (result.cell.case.id, finding.rule, baseline.known[key])
        for result in results
        for finding in result.observed.findings
        if (key := key_of(result, finding)) in baseline.known
    )
    for (case, rule, reason), count in counts.items():
        told = f"known: {case}, {rule} ({count}): {plain(reason, _MAX_TEXT)}"
        console.print(Text(told, "dim"), soft_wrap=True)
    for fault in baseline.faults:
        console.print(Text(f"baseline: {plain(fault, _MAX_TEXT)}", "bold red"), soft_wrap=True)


def counted(report: Report) -> Text:
    """The client of a report, and its verdicts counted, in one line."""
    line = Text(f"{plain(report.client)}: ")
    for word, (shown, style) in SHOWN.items():
        if count := report.summary[word]:
            line.append(f"{count} ").append(shown, style).append(" ")
    line.rstrip()
    return line


def summary(results: Sequence[Result]) -> Text:
    """One line that counts the verdicts."""
    line = Text()
    for word, (shown, style) in SHOWN.items():
        if count := sum(result.word == word for result in results):
            line.append(f"{', ' if line else ''}{count} ").append(shown, style)
    return line


def _table(results: Sequence[Result]) -> Table:
    table = Table()
    table.add_column("case", overflow="fold")
    # stdio first, and not in the order of the first cases, which need not have all of them.
    columns = sorted(
        {(r.cell.transport, r.cell.revision) for r in results},
        key=lambda column: (column[0] != "stdio", column),
    )
    for transport, revision in columns:
        table.add_column(f"{transport}\n{revision}", no_wrap=True)
    for case, of_case in _by_case(results):
        found: dict[tuple[str, str], Word] = {
            (r.cell.transport, r.cell.revision): r.word for r in of_case
        }
        table.add_row(
            Text(case.id),
            *(_word(found[key]) if key in found else Text("-", "dim") for key in columns),
        )
    return table


def _word(word: Word) -> Text:
    shown, style = SHOWN[word]
    return Text(shown, style)


def _by_case(results: Sequence[Result]) -> list[tuple[Case, list[Result]]]:
    grouped: dict[str, tuple[Case, list[Result]]] = {}
    for result in results:
        grouped.setdefault(result.cell.case.id, (result.cell.case, []))[1].append(result)
    return list(grouped.values())


def _print_case(console: Console, case: Case, results: Sequence[Result]) -> None:
    """What the case demands and who says so, then each finding with the cells that show it."""
    console.print(Text.assemble((case.id, "bold"), "  ", plain(case.title)), soft_wrap=True)
    print_indented(console, Text(plain(case.text, _MAX_TEXT)))
    print_indented(console, Text(f"{strength(case)}; rules {', '.join(case.rules)}", "dim"))
    print_sources(console, case.source)
    for text, same in _by_text([result for result in results if result.word != "pass"]):
        word, style = SHOWN[same[0].word]
        cells = ", ".join(result.cell.where for result in same)
        where = "everywhere" if len(same) == len(results) > 1 else f"on {cells}"
        said = Text.assemble((word, style), f" {where}: ", plain(text, _MAX_TEXT))
        print_indented(console, said)
        for line in _witnesses(same[0], text):
            print_indented(console, Text(line, "dim"), 6)
    for left, where in _by_deviation(results).items():
        print_indented(console, Text.assemble(("left the machine", "cyan"), f" on {where}:"))
        for line in deviation_lines(left):
            print_indented(console, Text(line, "dim"), 6)


def _by_deviation(results: Sequence[Result]) -> dict[Deviation, str]:
    """Where each deviation was seen; those that differ by nothing but their numbers, once."""
    found: dict[tuple[str, str], tuple[Deviation, list[str]]] = {}
    for result in results:
        if (left := result.observed.deviation) is not None:
            alike = tuple(_NUMBER.sub("#", text) for text in (left.text, left.held))
            found.setdefault((alike[0], alike[1]), (left, []))[1].append(result.cell.where)
    return {left: ", ".join(where) for left, where in found.values()}


def deviation_lines(left: Deviation) -> Iterator[str]:
    """Where a client left what the reference machine allows, and what that held."""
    yield f"#{left.seq}: {plain(left.text, _MAX_TEXT)}"
    yield f"the machine: {plain(left.held, _MAX_TEXT)}"


def print_sources(console: Console, sources: Iterable[Source]) -> None:
    """Where the rule comes from. Addresses are never broken, so that they can be followed."""
    for source in sources:
        print_indented(console, Text(f"Source: {plain(source.name, _MAX_TEXT)}", "dim"))
        if source.url:
            address = Text(f"    {plain(source.url, _MAX_TEXT)}", "dim")
            console.print(address, soft_wrap=True)


def print_indented(console: Console, text: Text, columns: int = 2) -> None:
    """Print wrapped text, indented, without blanks at the ends of lines."""
    for line in text.wrap(console, console.width - columns):
        line.rstrip()
        console.print(Text.assemble(" " * columns, line), soft_wrap=True)


def strength(case: Case) -> str:
    """How strongly the rule is put, by revision, and in which profile it is judged."""
    by_strength: dict[str, list[str]] = {}
    for revision in case.revisions:
        by_strength.setdefault(case.strength[revision], []).append(revision)
    said = ", ".join(f"{said} in {' and '.join(revs)}" for said, revs in by_strength.items())
    owner = "a rule of MCP" if case.profile == "mcp" else "not a rule of MCP: profile relist"
    return f"{said}; {owner}"


def _by_text(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """Results that say the same, together: one entry per finding, or per reason without one."""
    grouped: dict[tuple[Word, str], list[Result]] = {}
    for result in results:
        texts = [_told(finding) for finding in result.observed.findings]
        for text in texts or [result.observed.reason]:
            grouped.setdefault((result.word, text), []).append(result)
    return [(text, same) for (_, text), same in grouped.items()]


def _told(finding: Finding) -> str:
    return f"{finding.rule} [{finding.anomaly}]: {finding.text}"


def _witnesses(result: Result, text: str) -> Iterator[str]:
    """The events that show a finding, one line each, from the first cell that has it."""
    for finding in [one for one in result.observed.findings if _told(one) == text][:1]:
        history = result.observed.history
        some = [event for event in history if event.seq in finding.witness]
        yield from witness_lines(some, _MAX_WITNESSES)
