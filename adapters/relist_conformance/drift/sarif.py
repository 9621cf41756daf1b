"""Drift as a SARIF 2.1.0 log, so that a review of code shows it where the lock file says it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import relist
from relist.drift.inputs import ObservationFailed
from relist.drift.values import CapabilityRef, Review, Why
from relist_conformance.drift import names
from relist_mcp.drift.layout import text

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_INCOMPLETE = "not-observed"
_RULES: Mapping[Why, str] = {why: why.name.lower() for why in Why}


def log(drift: Iterable[Review], unseen: Iterable[ObservationFailed], lock: Path) -> dict[str, Any]:
    """The log of one run. Each result has the line of the lock file that it is about."""
    lines = lock.read_text(encoding="utf-8").split("\n")
    results = [_result(one, lock, lines) for one in drift]
    rules = [{"id": rule, "shortDescription": {"text": why.value}} for why, rule in _RULES.items()]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "relist verify",
                        "version": relist.__version__,
                        "rules": rules,
                    }
                },
                "invocations": [_invocation(unseen)],
                "results": results,
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _invocation(unseen: Iterable[ObservationFailed]) -> dict[str, Any]:
    told = [
        {
            "level": "error",
            "message": {"text": f"{one.subject.value}s not observed: {names.said(one.why)}"},
            "descriptor": {"id": _INCOMPLETE},
        }
        for one in unseen
    ]
    return {"executionSuccessful": not told, "toolExecutionNotifications": told}


def _result(review: Review, lock: Path, lines: list[str]) -> dict[str, Any]:
    rule = _RULES[review.why]
    classes = [] if review.change is None else sorted(one.value for one in review.change.classes)
    what = f"{names.of(review.ref)}: {review.why.value}"
    more = f" ({', '.join(classes)})" if classes else ""
    return {
        "ruleId": rule,
        "ruleIndex": list(_RULES.values()).index(rule),
        "level": "error",
        "message": {"text": f"{what}{more}, for {names.named(review.consumer)}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(lock)},
                    "region": {"startLine": _line(review.ref, lines)},
                }
            }
        ],
        "partialFingerprints": {"relist/1": f"{review.consumer}/{review.ref}/{rule}"},
    }


def _uri(lock: Path) -> str:
    """Relative to where the command runs, if it is there: CI maps that to its repository."""
    found, here = lock.resolve(), Path.cwd().resolve()
    if found.is_relative_to(here):
        return quote(found.relative_to(here).as_posix())
    return found.as_uri()


def _line(ref: CapabilityRef, lines: list[str]) -> int:
    """Where the lock file names it last: there its definition stands. Else its first line."""
    wanted = f'"key": {text(ref.key)},'
    at = (number for number, line in enumerate(lines, 1) if line.strip() == wanted)
    return max(at, default=1)
