"""JUnit XML: one test suite per client, one test case per cell.

What is known to a baseline, cannot be tested or does not apply is skipped; what could not be judged
is an error. A warning passes, with its text as output, unless the run was strict.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from junitparser.junitparser import FinalResult

from relist_conformance.errors import plain
from relist_conformance.report.labels import witness_lines
from relist_conformance.report.model import CellResult, Found, Report
from relist_conformance.report.table import deviation_lines

_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>'
_MAX_TEXT = 600
_MAX_WITNESSES = 8


def as_junit(reports: Sequence[Report]) -> str:
    """The document, in characters that XML allows."""
    document = JUnitXml("relist")
    for report in reports:
        suite = TestSuite(plain(report.client))
        for result in report.results:
            suite.add_testcase(_test_case(report, result))
        for fault in report.faults:
            stale = TestCase(plain(fault, _MAX_TEXT), "relist.baseline")
            stale.result = [Failure(plain(fault, _MAX_TEXT), "baseline")]
            suite.add_testcase(stale)
        document.add_testsuite(suite)
    # The library says of none of its methods what they take or give.
    whole = cast("Any", document)
    whole.update_statistics()
    text: bytes = whole.tostring()
    return f"{_DECLARATION}\n{text.decode()}\n"


def _test_case(report: Report, result: CellResult) -> TestCase:
    case = TestCase(
        result.where, f"relist.{plain(result.case, _MAX_TEXT)}", round(result.elapsed_ms / 1000, 3)
    )
    outcome = _outcome(report, result)
    if outcome is not None:
        outcome.text = "\n".join(_told(report, result))
        case.result = [outcome]
    elif result.findings:
        case.system_out = "\n".join(_told(report, result))
    return case


def _outcome(report: Report, result: CellResult) -> FinalResult | None:
    """How JUnit calls the verdict; None: it passed."""
    title = plain(report.cases[result.case].title, _MAX_TEXT)
    if result.excused:
        return Skipped(f"known: {plain(result.findings[0].known, _MAX_TEXT)}", "known")
    match result.counted:
        case "fail":
            return Failure(title, "fail")
        case "warn" if report.strict:
            return Failure(title, "warn")
        case "untestable" if report.strict:
            return Failure(plain(result.reason, _MAX_TEXT), "untestable")
        case "untestable" | "not_applicable":
            return Skipped(plain(result.reason, _MAX_TEXT), result.verdict)
        case "inconclusive" | "harness":
            return Error(plain(result.reason, _MAX_TEXT), result.verdict)
        case _:
            return None


def _told(report: Report, result: CellResult) -> Iterator[str]:
    for finding in result.findings:
        yield _finding(finding)
        rule = report.rules.get(finding.rule)
        if rule is not None:
            yield f"  {plain(rule.text, _MAX_TEXT)} {plain(rule.url, _MAX_TEXT)}".rstrip()
        for line in witness_lines(result.events(finding), _MAX_WITNESSES):
            yield f"  {line}"
    if result.deviation is not None:
        yield "left what the reference machine allows:"
        yield from (f"  {line}" for line in deviation_lines(result.deviation))


def _finding(finding: Found) -> str:
    harm = f" [{plain(finding.anomaly)}]" if finding.anomaly else ""
    known = f" (known: {plain(finding.known, _MAX_TEXT)})" if finding.known else ""
    told = plain(finding.text, _MAX_TEXT)
    return f"{finding.severity} {plain(finding.rule)}{harm}: {told}{known}"
