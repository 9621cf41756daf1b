"""One HTML file that needs nothing else: the matrix of clients and rules, and each finding drawn.

The page may load nothing: its policy names the digests of the one style and the one script in it.
All texts are bounded here, and escaped by the template.
"""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from typing import Any

from attrs import frozen
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

import relist
from relist_conformance.errors import plain
from relist_conformance.report import sequence
from relist_conformance.report.model import (
    WORDS,
    CellResult,
    Found,
    Report,
    Requirement,
    gravity,
)
from relist_conformance.report.table import SHOWN
from relist_conformance.runner import Word

FINDINGS_MAX = 400
_TEXT_MAX = 600
ROW_HEIGHT = 24  # of the diagram, in its own units


@frozen
class Column:
    """A transport and a revision of one client; ``number`` is the client's."""

    number: int
    transport: str
    revision: str


@frozen
class Box:
    """What one cell of the matrix says. ``target``: the finding that tells more."""

    column: Column
    word: Word | None
    known: bool
    target: str
    told: str


@frozen
class Line:
    """A case under a rule, with its boxes."""

    case: str
    title: str
    text: str
    boxes: tuple[Box | None, ...]


@frozen
class Group:
    """A rule with the cases that judge it, and the gravest box of each column."""

    rule: Requirement
    gravest: tuple[Box | None, ...]
    lines: tuple[Line, ...]


@frozen
class Drawn:
    """A finding with its diagram."""

    target: str
    client: str
    result: CellResult
    finding: Found
    title: str
    rule: Requirement
    rows: tuple[sequence.Row, ...]


def as_html(reports: Sequence[Report]) -> str:
    """The page of these runs: a block of columns for each."""
    clients = _names(reports)
    drawn = tuple(islice(_drawn(reports, clients), FINDINGS_MAX))
    found = sum(len(one.findings) for report in reports for one in report.results)
    style, script = (_part(name) for name in ("page.css", "page.js"))
    return _template().render(
        relist=relist.__version__,
        reports=list(zip(clients, reports, strict=True)),
        columns=_columns(reports),
        groups=_groups(reports),
        drawn=drawn,
        left_out=found - len(drawn),
        words=WORDS,
        shown={word: shown for word, (shown, _) in SHOWN.items()},
        row_height=ROW_HEIGHT,
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("relist_conformance.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Any] = environment.filters
    filters |= {"safe_text": _safe_text, "safe_url": _safe_url}
    return environment.get_template("page.html.j2")


def _safe_text(text: object) -> str:
    return plain(str(text), _TEXT_MAX)


def _safe_url(url: str) -> str:
    """An address that a browser opens as a page, or nothing."""
    return url if url.startswith("https://") and len(url) <= _TEXT_MAX else ""


@cache
def _part(name: str) -> str:
    return (files("relist_conformance.report") / name).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _names(reports: Sequence[Report]) -> tuple[str, ...]:
    """What the clients are called; a second run of the same one has a number."""
    names: list[str] = []
    for report in reports:
        name = plain(report.client)
        before = sum(plain(one.client) == name for one in reports[: len(names)])
        names.append(f"{name} ({before + 1})" if before else name)
    return tuple(names)


# --- the matrix -----------------------------------------------------------------------------------


def _columns(reports: Sequence[Report]) -> tuple[Column, ...]:
    return tuple(
        Column(number, *where)
        for number, report in enumerate(reports)
        for where in sorted({(one.transport, one.revision) for one in report.results})
    )


def _groups(reports: Sequence[Report]) -> tuple[Group, ...]:
    columns = _columns(reports)
    cases = {name: case for report in reports for name, case in report.cases.items()}
    judged = {rule for case in cases.values() for some in case.judged.values() for rule in some}
    return tuple(_group(reports, columns, rule) for rule in sorted(judged))


def _group(reports: Sequence[Report], columns: Sequence[Column], name: str) -> Group:
    cases = {
        case.id: case
        for report in reports
        for case in report.cases.values()
        if any(name in rules for rules in case.judged.values())
    }
    lines = tuple(
        Line(case.id, case.title, case.text, tuple(_boxes(reports, columns, name, case.id)))
        for case in cases.values()
    )
    heads = tuple(
        _gravest([line.boxes[number] for line in lines]) for number in range(len(columns))
    )
    return Group(_rule(reports, name), heads, tuple(line for line in lines if any(line.boxes)))


def _gravest(boxes: Sequence[Box | None]) -> Box | None:
    """What matters most; what is known already matters less."""
    told = [box for box in boxes if box is not None and box.word is not None]
    return max(told, key=lambda box: (not box.known, gravity(box.word)), default=None)


def _boxes(
    reports: Sequence[Report], columns: Sequence[Column], rule: str, case: str
) -> Iterator[Box | None]:
    found = {
        Column(number, result.transport, result.revision): (index, report, result)
        for number, report in enumerate(reports)
        for index, result in enumerate(report.results)
        if result.case == case and rule in report.cases[case].judged.get(result.revision, ())
    }
    for column in columns:
        if column not in found:
            yield None
            continue
        index, report, result = found[column]
        mine = [number for number, one in enumerate(result.findings) if one.rule == rule]
        yield Box(
            column,
            report.word_on(rule, result),
            bool(mine) and all(result.findings[number].known for number in mine),
            _target(column.number, index, mine[0]) if mine else "",
            "; ".join(result.findings[number].text for number in mine) or result.reason,
        )


def _rule(reports: Sequence[Report], name: str) -> Requirement:
    found = (report.rules[name] for report in reports if name in report.rules)
    return next(found, Requirement(name, "", ""))


# --- the findings ---------------------------------------------------------------------------------


def _target(client: int, result: int, finding: int) -> str:
    return f"f{client}-{result}-{finding}"


def _drawn(reports: Sequence[Report], clients: Sequence[str]) -> Iterator[Drawn]:
    for number, report in enumerate(reports):
        for index, result in enumerate(report.results):
            for which, finding in enumerate(result.findings):
                yield Drawn(
                    _target(number, index, which),
                    clients[number],
                    result,
                    finding,
                    report.cases[result.case].title,
                    _rule(reports, finding.rule),
                    _rows(result, finding),
                )


def _rows(result: CellResult, finding: Found) -> tuple[sequence.Row, ...]:
    left = result.deviation
    return sequence.rows(result.history, finding.witness, None if left is None else left.seq)
