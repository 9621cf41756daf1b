"""SARIF 2.1.0: one run per client, one result per finding.

A finding is about a client, not about a file; where it was found is a logical location. The address
of the physical one, which some readers demand, is a name made of the case.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from relist_conformance.errors import plain
from relist_conformance.report.labels import witness_lines
from relist_conformance.report.model import CellResult, Found, Report, Requirement

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_MAX_TEXT = 600
_MAX_WITNESSES = 8
_LEVELS = {"fail": "error", "warn": "warning"}
_NOT_JUDGED = {"inconclusive": "warning", "untestable": "note", "harness": "error"}


def as_sarif(reports: Sequence[Report]) -> str:
    """The document."""
    runs = [_run(report) for report in reports]
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": runs}, indent=1) + "\n"


def _run(report: Report) -> dict[str, Any]:
    found = [(result, one) for result in report.results for one in result.findings]
    broken = dict.fromkeys(one.rule for _, one in found)
    rules = {**dict.fromkeys(report.rules), **broken}
    index = {rule: number for number, rule in enumerate(rules)}
    return {
        "tool": {
            "driver": {
                "name": "relist",
                "version": report.relist,
                "rules": [_rule(rule, report.rules.get(rule)) for rule in rules],
            }
        },
        "automationDetails": {"id": f"relist/{quote(plain(report.client), safe='')}/"},
        "invocations": [_invocation(report)],
        "results": [
            _finding(report, result, one) | {"ruleIndex": index[one.rule]} for result, one in found
        ],
    }


def _rule(name: str, rule: Requirement | None) -> dict[str, Any]:
    told: dict[str, Any] = {"id": plain(name)}
    if rule is None:
        return told
    text = {"text": plain(rule.text, _MAX_TEXT)}
    told |= {"shortDescription": text, "fullDescription": text}
    told["properties"] = {"strength": plain(rule.strength)}
    return told | ({"helpUri": rule.url} if rule.url else {})


def _finding(report: Report, result: CellResult, finding: Found) -> dict[str, Any]:
    place = (result.case, result.transport, result.revision)
    whole = "\n".join((report.driver.name, *place, finding.rule)).encode(errors="replace")
    told: dict[str, Any] = {
        "ruleId": plain(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {
            "text": f"{plain(report.client)}, {result.where}: {plain(finding.text, _MAX_TEXT)}"
        },
        "locations": [_location(result)],
        "partialFingerprints": {"relistFinding/v1": sha256(whole).hexdigest()},
        "properties": {
            "case": plain(result.case),
            "transport": plain(result.transport),
            "revision": plain(result.revision),
            "anomaly": plain(finding.anomaly),
            "witness": [*witness_lines(result.events(finding), _MAX_WITNESSES)],
        },
    }
    if finding.known:
        reason = plain(finding.known, _MAX_TEXT)
        told["suppressions"] = [{"kind": "external", "justification": reason}]
    return told


def _location(result: CellResult) -> dict[str, Any]:
    name = plain(result.case)
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": f"relist/{quote(name, safe='')}"},
            "region": {"startLine": 1},
        },
        "logicalLocations": [{"fullyQualifiedName": f"{name} {plain(result.where)}"}],
    }


def _invocation(report: Report) -> dict[str, Any]:
    """Whether all went well, and what could not be judged."""
    told = [
        {
            "level": _NOT_JUDGED[result.verdict],
            "message": {
                "text": f"{plain(result.case)}, {plain(result.where)}: {result.verdict}: "
                f"{plain(result.reason, _MAX_TEXT)}"
            },
        }
        for result in report.results
        if result.verdict in _NOT_JUDGED
    ]
    told += [
        {"level": "error", "message": {"text": f"baseline: {plain(fault, _MAX_TEXT)}"}}
        for fault in report.faults
    ]
    return {
        "executionSuccessful": report.summary["harness"] == 0,
        "toolExecutionNotifications": told,
    }
