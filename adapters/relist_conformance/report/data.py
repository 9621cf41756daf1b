"""The result of a run as JSON: verdicts, findings with their histories, and where the time went."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

import relist
from relist_conformance.driver import Hello
from relist_conformance.report.table import SHOWN
from relist_conformance.runner import Result

FORMAT = 1


@attrs.frozen
class Timing:
    """Where the time went, in milliseconds: all of the run, and the start of the driver in it."""

    total_ms: float
    driver_start_ms: float


def as_json(
    results: Sequence[Result], hello: Hello, timing: Timing, options: Mapping[str, Any]
) -> str:
    """The whole run as one JSON document; a history is included for each cell that did not pass."""
    document = {
        "format": FORMAT,
        "relist": relist.__version__,
        "options": options,
        "driver": attrs.asdict(hello),
        "summary": {word: sum(result.word == word for result in results) for word in SHOWN},
        "timing": _timing(results, timing),
        "results": [_result(result) for result in results],
    }
    return json.dumps(document, indent=2, default=str) + "\n"


def _timing(results: Sequence[Result], timing: Timing) -> dict[str, Any]:
    starts = [start for result in results if (start := client_start_ms(result)) is not None]
    lags = [result.observed.lag_ms for result in results if result.observed.lag_ms is not None]
    return {
        "total_ms": round(timing.total_ms),
        "driver_start_ms": round(timing.driver_start_ms),
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


def _result(result: Result) -> dict[str, Any]:
    cell, observed = result.cell, result.observed
    document: dict[str, Any] = {
        "case": cell.case.id,
        "transport": cell.transport,
        "revision": cell.revision,
        "verdict": observed.word,
        "plays": result.plays,
        "elapsed_ms": round(result.elapsed_ms),
        "client_start_ms": client_start_ms(result),
        "lag_ms": observed.lag_ms,
    }
    if observed.reason:
        document["reason"] = observed.reason
    if observed.word != "pass":
        document |= {
            "title": cell.case.title,
            "rules": cell.case.rules,
            "strength": cell.case.strength.get(cell.revision),
            "profile": cell.case.profile,
            "source": [attrs.asdict(source) for source in cell.case.source],
            "findings": [attrs.asdict(finding) for finding in observed.findings],
            "history": [attrs.asdict(event) for event in observed.history],
        }
    return document
