"""``relist replay`` of a result of ``relist check --json``: its plays, judged anew.

By the cases and the judge of this version, from the histories in the file alone: no client is
started. A result holds no history of what passed.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from attrs import frozen
from rich.console import Console
from rich.text import Text

from relist.check.deviation import Deviation, first_deviation
from relist.check.judge import Finding, judge, loud_beliefs
from relist.messages import is_object
from relist_conformance.check import all_cases
from relist_conformance.errors import ConformanceError, plain, quoted
from relist_conformance.history import MAX_EVENTS
from relist_conformance.report.data import read_report
from relist_conformance.report.model import CellResult, Found, Report
from relist_conformance.report.table import SHOWN, deviation_lines
from relist_conformance.runner import Word
from relist_conformance.script import Case

_LINE_MAX = 256 * 1024 * 1024  # bytes, as much as a result may have
_TEXT_MAX = 600  # characters of a finding

Said = tuple[str, str, str]
"""Rule, severity and text of a finding."""


@frozen
class Choice:
    """Which plays are meant: all, where nothing is named."""

    patterns: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()
    transports: tuple[str, ...] = ()

    def means(self, result: CellResult) -> bool:
        """Whether this play is meant."""
        named = not self.patterns or any(fnmatchcase(result.case, one) for one in self.patterns)
        return (
            named
            and (not self.revisions or result.revision in self.revisions)
            and (not self.transports or result.transport in self.transports)
        )


@frozen
class Rejudged:
    """A play as it was recorded and as it is judged now; ``word`` None: it cannot be, for a reason.

    ``gone`` and ``new`` are the findings that only the recording, or only this version, has.
    """

    result: CellResult
    word: Word | None
    reason: str = ""
    gone: tuple[Said, ...] = ()
    new: tuple[Said, ...] = ()
    deviation: Deviation | None = None

    @property
    def differs(self) -> bool:
        """Whether the verdict is another one."""
        return self.word not in (None, self.result.verdict)


def is_result(path: Path) -> bool:
    """Whether the file begins like a result: with a brace alone in its line, or whole in one line.

    Else it is taken for a trace. False also for a file that cannot be read: whoever reads it next
    says why.
    """
    try:
        with path.open("rb") as file:
            line = file.readline(_LINE_MAX)
        first: object = {"results": ()} if line.strip() == b"{" else json.loads(line)
    except (OSError, ValueError, RecursionError):
        return False
    return is_object(first) and "results" in first


def run_rejudge(
    path: Path, choice: Choice, folder: Path | None, out: Console, *, strict: bool
) -> int:
    """Judge the chosen plays of this file anew and print what comes of it. The exit code.

    0 every verdict is as recorded; 1 one differs, or with ``strict`` a finding does or a play that
    was judged cannot be judged anew. Raises ConformanceError for what is no result, and when no
    play is left.
    """
    report = read_report(path)
    cases = {case.id: case for case in all_cases(folder)}
    meant = [result for result in report.results if choice.means(result)]
    if not meant:
        raise ConformanceError(f"result file {quoted(str(path))} holds no such play")
    plays = [rejudged(result, cases.get(result.case)) for result in meant]
    _print(out, report, plays)
    differ = any(one.differs for one in plays)
    strictly = any(
        one.gone or one.new or (one.word is None and one.result.history) for one in plays
    )
    return 1 if differ or (strict and strictly) else 0


def rejudged(result: CellResult, case: Case | None) -> Rejudged:
    """One play, judged by this version as far as the file allows."""
    if result.verdict in ("not_applicable", "untestable", "harness"):
        return Rejudged(result, None, result.reason or "it was not judged")
    if not result.history:
        return Rejudged(result, None, "its history was not kept")
    if "left_out" in result.history[-1].data:
        return Rejudged(result, None, "of its history only what shows the findings was kept")
    if case is None or result.revision not in case.revisions:
        return Rejudged(result, None, "this version has no such case")
    if result.verdict == "inconclusive" and not _by_judge(result, case):
        return Rejudged(result, None, result.reason or "it was not judged")
    verdict = judge(case.expect, result.history, result.revision, result.lag_ms or 0)
    word: Word = verdict.word
    if loud_beliefs(result.history):
        word = "harness"
    elif len(result.history) >= MAX_EVENTS and not verdict.findings:
        word = "inconclusive"  # what flooded the run can no longer pass
    before, now = [_said(one) for one in result.findings], [_said(one) for one in verdict.findings]
    left = first_deviation(result.history) if before or now else None
    gone = tuple(one for one in before if one not in now)
    return Rejudged(result, word, "", gone, tuple(one for one in now if one not in before), left)


def _by_judge(result: CellResult, case: Case) -> bool:
    """Whether it was the judge who could not tell: then the reason begins with a rule."""
    rules = {one.rule.get(result.revision, "") for one in case.expect}
    return any(rule and result.reason.startswith(f"{rule}: ") for rule in rules)


def _said(finding: Finding | Found) -> Said:
    return finding.rule, finding.severity, finding.text


# --- in words -------------------------------------------------------------------------------------


def _print(out: Console, report: Report, plays: Sequence[Rejudged]) -> None:
    recorded = f"as relist {plain(report.relist)} recorded it"
    out.print(Text(f"{plain(report.client)}, {recorded}", "bold"), soft_wrap=True)
    for play in plays:
        if play.word is None and not play.result.history:
            continue  # counted below
        for line in _lines(play):
            out.print(line, soft_wrap=True)
    out.print()
    for text in _missing(plays):
        out.print(Text(text), soft_wrap=True)
    out.print(Text(_summary(plays)), soft_wrap=True)


def _lines(play: Rejudged) -> Iterator[Text]:
    result = play.result
    line = Text(f"{plain(result.case)} on {plain(result.where)}: ").append(_word(result.verdict))
    if play.word is None:
        yield line.append(f", not judged anew ({plain(play.reason, _TEXT_MAX)})")
        return
    yield line.append(", now ").append(_word(play.word)) if play.differs else line
    for rule, _, text in play.gone:
        yield Text(f"    no more: {plain(rule)}: {plain(text, _TEXT_MAX)}")
    for rule, _, text in play.new:
        yield Text(f"    new: {plain(rule)}: {plain(text, _TEXT_MAX)}")
    if play.deviation is not None:
        first, *rest = deviation_lines(play.deviation)
        yield Text(f"    left the machine at {first}")
        yield from (Text(f"    {one}") for one in rest)


def _word(word: Word) -> Text:
    shown, style = SHOWN[word]
    return Text(shown, style)


def _missing(plays: Sequence[Rejudged]) -> Iterator[str]:
    """What the file does not hold, by verdict."""
    counts: Mapping[Word, int] = Counter(
        play.result.verdict for play in plays if play.word is None and not play.result.history
    )
    if counts:
        told = ", ".join(f"{SHOWN[word][0]} {counts[word]}" for word in SHOWN if word in counts)
        yield f"not judged anew, because the file holds no history of them: {told}"


def _summary(plays: Sequence[Rejudged]) -> str:
    judged = [play for play in plays if play.word is not None]
    differ = sum(play.differs for play in judged)
    others = sum(bool(play.gone or play.new) and not play.differs for play in judged)
    if not judged:
        return "nothing was judged anew"
    if not (differ or others):
        return f"judged anew: {len(judged)}, all as recorded"
    return (
        f"judged anew: {len(judged)}; verdicts that differ: {differ}; others with findings that"
        f" differ: {others}"
    )
