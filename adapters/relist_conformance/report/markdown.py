"""A summary in Markdown, as the pages of CI jobs show it: verdicts counted, findings told.

All that may come from a peer is written in character references, which are never markup.
"""

from collections.abc import Iterator, Sequence

from relist_conformance.errors import plain
from relist_conformance.report.model import WORDS, CellResult, Found, Report
from relist_conformance.report.table import SHOWN
from relist_conformance.runner import Word

_MAX_ROWS = 200
_MAX_TEXT = 300
_SAFE = frozenset(" ,;/=+-")


def as_markdown(reports: Sequence[Report]) -> str:
    """The summary of all reports: far below the megabyte that a job may write."""
    return "\n".join([*_counts(reports), *(line for one in reports for line in _told(one))]) + "\n"


def _counts(reports: Sequence[Report]) -> Iterator[str]:
    used: list[Word] = [word for word in WORDS if any(report.summary[word] for report in reports)]
    yield "## Relist: how clients keep their catalogs"
    yield ""
    yield "| client | " + " | ".join(SHOWN[word][0] for word in used) + " | known |"
    yield "|---|" + "---:|" * (len(used) + 1)
    for report in reports:
        counts = " | ".join(str(report.summary[word]) for word in used)
        known = sum(result.excused for result in report.results)
        yield f"| {_text(report.client)} | {counts} | {known} |"


def _told(report: Report) -> Iterator[str]:
    found = [(result, finding) for result in report.results for finding in result.findings]
    unjudged = [one for one in report.results if one.verdict in ("inconclusive", "harness")]
    if not (found or unjudged or report.faults):
        return
    yield ""
    yield f"### {_text(report.client)}"
    if report.faults:
        yield ""
        yield from (f"- **baseline** {_text(fault)}" for fault in report.faults[:_MAX_ROWS])
    if found or unjudged:
        yield ""
        yield "| verdict | case | where | rule | what was found |"
        yield "|---|---|---|---|---|"
        rows = [_finding(report, *one) for one in found] + [_unjudged(one) for one in unjudged]
        left = [_left(one) for one in report.results if one.deviation is not None]
        yield from rows[:_MAX_ROWS]
        if len(rows) > _MAX_ROWS:
            yield ""
            yield f"and {len(rows) - _MAX_ROWS} more"
        if left:
            yield ""
            yield "| case | where | left what the reference machine allows | the machine then |"
            yield "|---|---|---|---|"
            yield from left[:_MAX_ROWS]


def _finding(report: Report, result: CellResult, finding: Found) -> str:
    word = "known" if finding.known else f"**{SHOWN[finding.severity][0]}**"
    rule, url = _text(finding.rule), _url(report, finding)
    told = _text(f"{finding.text} (known: {finding.known})" if finding.known else finding.text)
    link = f"[{rule}]({url})" if url else rule
    return f"| {word} | {_text(result.case)} | {_text(result.where)} | {link} | {told} |"


def _url(report: Report, finding: Found) -> str:
    """The page of the rule, if its address can be nothing but an address."""
    rule = report.rules.get(finding.rule)
    url = "" if rule is None else rule.url
    return url if url.startswith("https://") and not set(url) & set(' ()<>|"\\`') else ""


def _left(result: CellResult) -> str:
    left = result.deviation
    told = "" if left is None else f"{_text(f'#{left.seq}: {left.text}')} | {_text(left.held)}"
    return f"| {_text(result.case)} | {_text(result.where)} | {told} |"


def _unjudged(result: CellResult) -> str:
    told = f"{_text(result.case)} | {_text(result.where)} | | {_text(result.reason)}"
    return f"| **{SHOWN[result.verdict][0]}** | {told} |"


def _text(text: str) -> str:
    """Text that reads as it is and is never markup."""
    return "".join(
        char if char.isalnum() or char in _SAFE else f"&#{ord(char)};"
        for char in plain(text, _MAX_TEXT)
    )
