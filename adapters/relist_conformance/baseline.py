"""Baselines: findings of a client that are known already, each with its reason.

What is known does not fail a run. An entry that excuses nothing any more, or that has expired,
does: a baseline never grows old unseen. The format is ``specs/reports.md``.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs
import jsonschema_rs
import yaml

from relist.check.expect import Severity
from relist.check.judge import Finding
from relist_conformance.errors import ConformanceError, plain, quoted
from relist_conformance.runner import Cell, Result, Word

Key = tuple[str, str, str, str]
"""Case, transport, revision, rule: what of a run an entry can excuse."""

_MAX_BYTES = 1024 * 1024


@attrs.frozen
class Entry:
    """One known finding. Without transports or revisions: on all; ``expires``: the last day."""

    case: str
    rule: str
    client: str
    reason: str
    expires: date | None = None
    transports: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()

    def covers(self, cell: Cell) -> bool:
        """Whether it speaks of this cell."""
        return (
            self.case == cell.case.id
            and (not self.transports or cell.transport in self.transports)
            and (not self.revisions or cell.revision in self.revisions)
        )

    def __str__(self) -> str:
        return f"{quoted(self.case)}, rule {quoted(self.rule)}"


@attrs.frozen
class Applied:
    """What a baseline came to in a run: what it excuses and why, and what is wrong with it."""

    known: Mapping[Key, str]
    faults: tuple[str, ...] = ()


NOTHING_KNOWN = Applied({})


def key_of(result: Result, finding: Finding) -> Key:
    """What an entry must cover to excuse this finding."""
    cell = result.cell
    return (cell.case.id, cell.transport, cell.revision, finding.rule)


def load_baseline(path: Path) -> tuple[Entry, ...]:
    """Read a baseline. Raises ``ConformanceError``, one line that names file and field."""
    where = f"baseline {quoted(str(path))}"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConformanceError(f"{where}: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise ConformanceError(f"{where} is longer than {_MAX_BYTES} bytes")
    try:
        # Dates, which revisions look like, become the texts that they were.
        raw = json.loads(json.dumps(yaml.safe_load(data), default=str))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        reason = plain(" ".join(str(error).split()))
        raise ConformanceError(f"{where}: not YAML: {reason}") from None
    for wrong in _validator().iter_errors(raw):
        at = "/".join(map(str, wrong.instance_path))
        raise ConformanceError(f"{where}: {plain(at) or 'the file'}: {plain(wrong.message)}")
    try:
        return tuple(_entry(one) for one in raw["findings"])
    except ValueError as error:
        raise ConformanceError(f"{where}: expires: {plain(str(error))}") from None


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    schema = files("relist_specs") / "schemas" / "baseline.schema.json"
    return jsonschema_rs.Draft202012Validator(json.loads(schema.read_bytes()))


def _entry(raw: Mapping[str, Any]) -> Entry:
    expires = raw.get("expires")
    return Entry(
        *(raw["case"], raw["rule"], raw["client"], raw["reason"]),
        expires=None if expires is None else date.fromisoformat(expires),
        transports=tuple(raw.get("transports", ())),
        revisions=tuple(raw.get("revisions", ())),
    )


def apply(
    entries: Iterable[Entry],
    client: str,
    results: Sequence[Result],
    cases: Collection[str],
    today: date,
) -> Applied:
    """Hold a run against a baseline; entries about other clients say nothing.

    ``cases``: the ids of all cases there are. What was not judged in this run, because it was not
    chosen or could not be, makes no entry stale.
    """
    known: dict[Key, str] = {}
    faults: list[str] = []
    for entry in entries:
        if entry.client != client:
            continue
        if entry.case not in cases:
            faults.append(f"stale: there is no case {quoted(entry.case)}")
            continue
        covered = [result for result in results if entry.covers(result.cell)]
        excused = list(_excused(entry, covered))
        if not excused and any(result.word in ("pass", "warn", "fail") for result in covered):
            faults.append(f"stale: {entry} is not found any more")
        elif entry.expires is not None and entry.expires < today:
            faults.append(f"expired on {entry.expires}: {entry}")
        else:
            known |= dict.fromkeys(excused, entry.reason)
    return Applied(known, tuple(faults))


def _excused(entry: Entry, covered: Iterable[Result]) -> Iterator[Key]:
    for result in covered:
        for finding in result.observed.findings:
            if finding.rule == entry.rule:
                yield key_of(result, finding)


def without_known(results: Iterable[Result], known: Mapping[Key, str]) -> tuple[Result, ...]:
    """The results as if what is known had not been found: for the exit code."""
    return tuple(_without(result, known) for result in results)


def worst(severities: Iterable[Severity]) -> Word:
    """The verdict that findings of these severities make."""
    some = set(severities)
    if "fail" in some:
        return "fail"
    return "warn" if some else "pass"


def _without(result: Result, known: Mapping[Key, str]) -> Result:
    findings = result.observed.findings
    left = tuple(one for one in findings if key_of(result, one) not in known)
    if left == findings:
        return result
    word = worst(finding.severity for finding in left)
    return attrs.evolve(result, observed=attrs.evolve(result.observed, word=word, findings=left))
