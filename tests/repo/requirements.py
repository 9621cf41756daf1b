"""Where each requirement is decided, shown and judged: found by scanning the sources for its id.

A place cites a row by its id in a docstring or comment (``Rule: SUB-05, SUB-20 to 23``); a test by
``@pytest.mark.rule("SUB-05")`` as well. What no code of the client cites says in requirements.yaml
why, exactly once: by a decision record, by exclusion, or as open. A breach that the wire shows is
judged by a case of the suite, or the row says why it is not (``unplayed``).
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from relist_conformance.script import load_cases

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "specs"
DATA = SPECS / "relist_specs"
RECORDS = SPECS / "decisions"

# Every row of these is decided; the others are duties of suites and of later issues.
DECIDED = (
    *("LIFE", "CAP", "DISC", "NOTE", "SUB", "RES", "TTL"),
    *("ATOM", "STATE", "FAIL", "REC", "CALL", "EMIT", "AUTH", "OBS", "DRIFT"),
)

Row = Mapping[str, Any]


def _load(name: str) -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = yaml.safe_load((DATA / f"{name}.yaml").read_text())
    return loaded


REQUIREMENTS = _load("requirements")
DISAGREEMENTS = _load("disagreements")
ROWS: Mapping[str, Row] = {row["id"]: row for row in REQUIREMENTS["rows"]}
READINGS: Mapping[str, Row] = {row["id"]: row for row in DISAGREEMENTS["disagreements"]}
KNOWN = frozenset(ROWS) | frozenset(READINGS)


def family(rule: str) -> str:
    """The letters of an id."""
    return rule.partition("-")[0]


def must_be_decided(rule: str) -> bool:
    """Whether this row is of a family that says how a client, or a server of ours, behaves."""
    return family(rule) in DECIDED


# --- ids in text ----------------------------------------------------------------------------------

_FAMILIES = "|".join((*REQUIREMENTS["families"], "D"))
_CITED = re.compile(rf"(?<![\w-])({_FAMILIES})-(\d+)(?:\s+to\s+(?:\1-)?(\d+)(?![\w-]))?")


def ids_in(text: str) -> Iterator[str]:
    """The ids that a text cites. A range stands for the rows there are between its two ends."""
    for found in _CITED.finditer(text):
        letters, first, last = found.groups()
        yield f"{letters}-{first}"
        if last is not None:
            yield from filter(
                KNOWN.__contains__,
                (f"{letters}-{number:02d}" for number in range(int(first) + 1, int(last))),
            )
            yield f"{letters}-{last}"


# --- ids in Python --------------------------------------------------------------------------------


class Place(NamedTuple):
    """A file, and what in it cites; ``name`` is empty for the module itself."""

    path: Path
    name: str


class _Span(NamedTuple):
    first: int
    last: int
    name: str


def cited_in(path: Path) -> Iterator[tuple[str, Place]]:
    """Every id that docstrings, comments and ``rule`` marks of this file cite, and where."""
    source = path.read_text()
    tree = ast.parse(source)
    spans = list(_spans(tree, ""))
    for line, text in (*_strings(tree), *_comments(source)):
        inside = [span for span in spans if span.first <= line <= span.last]
        name = min(inside, key=lambda span: span.last - span.first).name if inside else ""
        for rule in ids_in(text):
            yield rule, Place(path, name)


def _spans(owner: ast.AST, outer: str) -> Iterator[_Span]:
    """The lines of each function and class, and of what modules and classes assign."""
    body: list[ast.stmt] = getattr(owner, "body", [])
    for statement, after in zip(body, [*body[1:], None], strict=True):
        last = statement.end_lineno or statement.lineno
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min((mark.lineno for mark in statement.decorator_list), default=last)
            name = f"{outer}{statement.name}"
            yield _Span(min(first, statement.lineno), last, name)
            if isinstance(statement, ast.ClassDef):
                yield from _spans(statement, f"{name}.")
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if after is not None and _is_text(after):
                last = after.end_lineno or last
            yield _Span(statement.lineno, last, f"{outer}{ast.unparse(target)}")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Docstrings (also of what is assigned) and the arguments of ``rule`` marks, by line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, str(node.value.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("rule", "pytest.mark.rule"):
            yield node.lineno, " ".join(ast.unparse(argument) for argument in node.args)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments, those of consecutive lines as one, by the line of code that they are about."""
    lines: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            lines.append(token.string.lstrip("# "))
            if token.line[: token.start[1]].strip():
                yield token.start[0], lines.pop()
        elif lines and token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT):
            yield token.start[0], " ".join(lines)
            lines = []


# --- who decides, who shows -----------------------------------------------------------------------

Places = Mapping[str, list[Place]]

MODEL = ROOT / "model" / "relist"
CLIENT = ROOT / "adapters" / "relist_mcp"


def _gathered(paths: Iterable[Path]) -> Places:
    found: dict[str, list[Place]] = {}
    for path in paths:
        for rule, place in cited_in(path):
            places = found.setdefault(rule, [])
            if place not in places:
                places.append(place)
    return found


def deciding() -> Places:
    """By id: what of the model or of its bindings to the SDK enforces it, by its own word."""
    model = (path for path in sorted(MODEL.rglob("*.py")) if path.parent.name != "check")
    return _gathered((*model, *sorted(CLIENT.rglob("*.py"))))


def showing() -> Places:
    """By id: the invariants, tests and dialogues that name it."""
    checks = sorted((MODEL / "check").rglob("*.py"))
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    found = {rule: list(places) for rule, places in _gathered((*checks, *tests)).items()}
    dialogues = sorted((ROOT / "tests" / "transcripts").glob("*.txt"))
    for path in (*dialogues, DATA / "drift.yaml"):  # a test plays each row of that table
        for rule in dict.fromkeys(ids_in(path.read_text())):
            found.setdefault(rule, []).append(Place(path, ""))
    return found


def judging() -> Mapping[str, list[str]]:
    """By id: the cases of the suite whose ``rules`` name it."""
    found: dict[str, list[str]] = {}
    for case in load_cases():
        for rule in case.rules:
            found.setdefault(rule, []).append(case.id)
    return found


def records() -> Mapping[str, Path]:
    """The decision records by their numbers."""
    return {path.name[:4]: path for path in sorted(RECORDS.glob("*.md"))}


def treating() -> Mapping[str, list[str]]:
    """By id: the numbers of the decision records that cite it."""
    found: dict[str, list[str]] = {}
    for number, path in records().items():
        for rule in dict.fromkeys(ids_in(path.read_text())):
            found.setdefault(rule, []).append(number)
    return found


def complaints(
    rows: Mapping[str, Row], decided: Iterable[str], treated: Mapping[str, Iterable[str]]
) -> Iterator[str]:
    """What is wrong with how rows are decided: not at all, twice, or by a record that is silent.

    ``decided``: the ids that code cites; ``treated``: which records cite a row.
    """
    by_code = set(decided)
    for rule, row in rows.items():
        ways = [way for way in ("decision", "excluded", "open") if way in row]
        if not must_be_decided(rule):
            if ways:
                yield f"{rule}: nobody asks how it is decided"
        elif rule in by_code and ways:
            yield f"{rule}: code cites it, so `{ways[0]}` is stale"
        elif len(ways) + (rule in by_code) != 1:
            yield f"{rule}: decided {len(ways)} times"
        if "decision" in row and row["decision"] not in treated.get(rule, ()):
            yield f"{rule}: decision {row['decision']} does not speak of it"


# --- who judges -----------------------------------------------------------------------------------

ON_THE_WIRE = ("wire", "wire+act", "wire+driver")


def can_be_played(rule: str, row: Row) -> bool:
    """Whether the traffic of a client shows a breach of this row, and a breach is a fault.

    A permission is never scored, a duty of servers is none of the client, and what a host does with
    its lists is out of sight.
    """
    nobody = row.get("excluded", {}).get("because") in ("server", "host")
    binds = row["strength"] != "MAY" and "obliges" not in row and not nobody
    return must_be_decided(rule) and binds and row["wire"] in ON_THE_WIRE


def unjudged(rows: Mapping[str, Row], judged: Iterable[str]) -> Iterator[str]:
    """What no case judges without saying why, and excuses that are not needed (any more)."""
    cases = set(judged)
    for rule, row in rows.items():
        if "unplayed" in row and rule in cases:
            yield f"{rule}: a case judges it, so `unplayed` is stale"
        elif "unplayed" in row and not can_be_played(rule, row):
            yield f"{rule}: nobody asks for a case, so `unplayed` says nothing"
        elif can_be_played(rule, row) and rule not in cases and "unplayed" not in row:
            yield f"{rule}: no case judges it, and nothing says why"


def unshown(rows: Mapping[str, Row], shown: Iterable[str]) -> Iterator[str]:
    """What the code claims to do, and no invariant, test, dialogue or case shows."""
    there = set(shown)
    for rule, row in rows.items():
        if must_be_decided(rule) and rule not in there and "excluded" not in row:
            yield f"{rule}: nothing shows it"
