"""The result of a run as JSON, and back: verdicts, findings, histories, and where the time went.

The format is ``relist_specs/schemas/result.schema.json``; what is read is held to it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs
import jsonschema_rs

import relist
from relist.check.deviation import Deviation
from relist.check.history import Event, History
from relist.messages import is_list
from relist_conformance.baseline import Key, key_of
from relist_conformance.bounding import bounded
from relist_conformance.driver import Hello
from relist_conformance.errors import ConformanceError, plain, quoted
from relist_conformance.report.model import CaseInfo, CellResult, Found, Report, Requirement
from relist_conformance.report.requirements import requirements
from relist_conformance.runner import Observed, Result
from relist_conformance.script import Case, Source

FORMAT = 2
_MAX_BYTES = 256 * 1024 * 1024
HISTORIES_MAX = 64 * 1024 * 1024
"""Characters of the histories in one report, as JSON without indentation."""
_FRAME_MAX = 16 * 1024


@attrs.frozen
class Timing:
    """Where the time went, in milliseconds: all of the run, and the start of the driver in it.

    The other two are processor time: of the client with its driver and the servers that it started,
    and of the suite. What is left of the run was spent waiting, as the cases want it.
    """

    total_ms: float
    driver_start_ms: float
    client_cpu_ms: float
    suite_cpu_ms: float


def report_of(
    results: Sequence[Result],
    hello: Hello,
    timing: Timing,
    options: Mapping[str, Any],
    known: Mapping[Key, str] | None = None,
    faults: Sequence[str] = (),
) -> Report:
    """The whole run. ``known``: what a baseline excuses, and why; ``faults``: what is wrong in it.

    A history is included for each cell that did not pass, with long frames cut. When there are too
    many, of the last ones only the events that show the findings are.
    """
    cases = {result.cell.case.id: case_info(result.cell.case) for result in results}
    return Report(
        relist=relist.__version__,
        options=options,
        driver=hello,
        timing=_timing(results, timing),
        rules=requirements({rule for case in cases.values() for rule in _rules(case)}),
        cases=cases,
        results=tuple(
            _result(result, known or {}, history)
            for result, history in zip(results, _histories(results), strict=True)
        ),
        faults=tuple(faults),
    )


def _rules(case: CaseInfo) -> set[str]:
    return {*case.rules, *(rule for judged in case.judged.values() for rule in judged)}


def case_info(case: Case) -> CaseInfo:
    """What reports tell of a case."""
    judged = {
        revision: tuple(dict.fromkeys(one.rule[revision] for one in case.expect))
        for revision in case.revisions
    }
    return CaseInfo(
        *(case.id, case.title, case.text, case.profile, case.rules),
        judged=judged,
        strength=case.strength,
        severity=case.severity,
        sources=case.source,
    )


def _timing(results: Sequence[Result], timing: Timing) -> dict[str, Any]:
    starts = [start for result in results if (start := client_start_ms(result)) is not None]
    lags = [result.observed.lag_ms for result in results if result.observed.lag_ms is not None]
    return {
        "total_ms": round(timing.total_ms),
        "driver_start_ms": round(timing.driver_start_ms),
        "client_cpu_ms": round(timing.client_cpu_ms),
        "suite_cpu_ms": round(timing.suite_cpu_ms),
        "client_start_ms": {
            "sum": sum(starts),
            "max": max(starts, default=0),
            "note": "from the command to connect until the client's first channel was open; "
            "plays overlap, so the sum may exceed the total",
        },
        "plays_ms": round(sum(result.elapsed_ms for result in results)),
        "worst_lag_ms": round(max(lags, default=0.0), 1),
    }


def client_start_ms(result: Result) -> int | None:
    """Milliseconds between the command to connect and the first channel of the client."""
    history = result.observed.history
    asked = next(
        (e.at_ms for e in history if e.kind == "ask" and e.data.get("op") == "connect"), None
    )
    opened = next((event.at_ms for event in history if event.kind == "open"), None)
    return None if asked is None or opened is None else opened - asked


def _histories(results: Sequence[Result]) -> Iterator[History]:
    """Of each result what a report keeps."""
    room = HISTORIES_MAX
    for result in results:
        history = result.observed.history if result.word != "pass" else ()
        if room < 0 and history:
            history = _witnesses(history, result.observed)
        shortened = [(bounded(e.message, _FRAME_MAX), bounded(e.data, _FRAME_MAX)) for e in history]
        room -= sum(message.length + data.length for message, data in shortened)
        yield tuple(
            attrs.evolve(event, message=message.value, data=data.value)
            for event, (message, data) in zip(history, shortened, strict=True)
        )


def _witnesses(history: History, observed: Observed) -> History:
    """The events that show the findings, and how many are left out."""
    shown = {seq for finding in observed.findings for seq in finding.witness}
    shown |= {observed.deviation.seq} if observed.deviation is not None else set[int]()
    kept = [event for event in history if event.seq in shown]
    last = history[-1]
    note = Event(last.seq + 1, last.at_ms, "note", data={"left_out": len(history) - len(kept)})
    return (*kept, note)


def _result(result: Result, known: Mapping[Key, str], history: History) -> CellResult:
    cell, observed = result.cell, result.observed
    findings = tuple(
        Found(
            **attrs.asdict(finding),
            known=known.get(key_of(result, finding), ""),
        )
        for finding in observed.findings
    )
    return CellResult(
        *(cell.case.id, cell.transport, cell.revision, observed.word, result.plays),
        elapsed_ms=round(result.elapsed_ms),
        client_start_ms=client_start_ms(result),
        lag_ms=observed.lag_ms,
        reason=observed.reason,
        findings=findings,
        history=history,
        deviation=observed.deviation,
    )


# --- to JSON and back -----------------------------------------------------------------------------


def as_json(report: Report) -> str:
    """The report as one JSON document."""
    plainly = attrs.asdict(report)
    del plainly["faults"]
    document = {
        "format": FORMAT,
        **plainly,
        "summary": report.summary,
        "baseline_faults": report.faults,
    }
    return json.dumps(document, indent=1, default=str) + "\n"


def read_report(path: Path) -> Report:
    """Read what ``as_json`` wrote. Raises ``ConformanceError``, one line, for anything else."""
    where = f"result file {quoted(str(path))}"
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConformanceError(f"{where} is longer than {_MAX_BYTES} bytes")
        raw = json.loads(path.read_bytes())
    except OSError as error:
        raise ConformanceError(f"{where}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ConformanceError(f"{where} is not JSON") from None
    for wrong in _validator().iter_errors(raw):
        at = "/".join(map(str, wrong.instance_path))
        raise ConformanceError(f"{where}: {plain(at) or 'the document'}: {plain(wrong.message)}")
    report = _report(raw)
    for result in report.results:
        if result.case not in report.cases:
            raise ConformanceError(f"{where}: nothing is told of the case {quoted(result.case)}")
    return report


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    schema = files("relist_specs") / "schemas" / "result.schema.json"
    return jsonschema_rs.Draft202012Validator(json.loads(schema.read_bytes()))


def _report(raw: Mapping[str, Any]) -> Report:
    """The values in a document that the schema has let pass."""
    hello = {name: _frozen(value) for name, value in raw["driver"].items()}
    return Report(
        relist=raw["relist"],
        options=raw["options"],
        driver=Hello(**hello),
        timing=raw["timing"],
        rules={name: Requirement(**_with_sources(rule)) for name, rule in raw["rules"].items()},
        cases={name: _case_of(case) for name, case in raw["cases"].items()},
        results=tuple(_result_of(result) for result in raw["results"]),
        faults=tuple(raw["baseline_faults"]),
    )


def _case_of(raw: Mapping[str, Any]) -> CaseInfo:
    judged = {revision: tuple(rules) for revision, rules in raw["judged"].items()}
    changed: dict[str, Any] = {"judged": judged, "rules": tuple(raw["rules"])}
    return CaseInfo(**(_with_sources(raw) | changed))


def _result_of(raw: Mapping[str, Any]) -> CellResult:
    findings = tuple(
        Found(**{name: _frozen(value) for name, value in found.items()})
        for found in raw["findings"]
    )
    history = tuple(Event(**event) for event in raw["history"])
    left = raw.get("deviation")  # earlier versions of Relist did not look for it
    deviation = None if left is None else Deviation(**left)
    changed: dict[str, Any] = {"findings": findings, "history": history, "deviation": deviation}
    return CellResult(**{**raw, **changed})


def _with_sources(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {**raw, "sources": tuple(Source(**source) for source in raw["sources"])}


def _frozen(value: Any) -> Any:
    """A list of JSON as a tuple, and all else as it is."""
    return tuple(value) if is_list(value) else value
