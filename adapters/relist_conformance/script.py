"""Cases: YAML files checked against a JSON Schema and read into frozen values.

A wrong file gives one line that names the file, the field and the value.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal, cast

import attrs
import jsonschema_rs
import yaml

from relist.check.expect import (
    Answered,
    Expectation,
    FullWalk,
    NeverRequested,
    NoDuplicates,
    Requested,
    Severity,
)
from relist.check.history import LIST_METHODS
from relist_conformance import steps as s
from relist_conformance.errors import ConformanceError, quoted

REVISIONS = ("2025-11-25", "2026-07-28")
TRANSPORTS = ("memory", "stdio", "http")
_MAX_CASE_BYTES = 256 * 1024


class CaseError(ConformanceError):
    """A case file that cannot be used; the message names file, field and value."""


@attrs.frozen
class Source:
    """Where a rule comes from; ``url`` is empty where there is no page to open."""

    name: str
    url: str = ""


@attrs.frozen
class ServerSetup:
    """The server at the start: capabilities and the pages of each kind.

    ``cursors`` gives the cursor after page 1, 2, ... of a kind; the others are minted.
    """

    capabilities: Mapping[str, Any]
    pages: Mapping[str, s.Pages]
    cursors: Mapping[str, tuple[str, ...]]
    ttl_ms: int
    cache_scope: Literal["public", "private"]


@attrs.frozen
class Case:
    """One case: what is demanded, by whom, of whom, and how it is provoked and judged.

    ``rule``, ``strength`` and ``severity`` are by revision; ``rules`` are all that play a part.
    """

    id: str
    title: str
    text: str
    rules: tuple[str, ...]
    rule: Mapping[str, str]
    source: tuple[Source, ...]
    strength: Mapping[str, str]
    severity: Mapping[str, Severity]
    profile: Literal["mcp", "relist"]
    revisions: tuple[str, ...]
    transports: tuple[str, ...]
    level: Literal["wire", "observing", "full"]
    server: ServerSetup
    steps: tuple[s.Step, ...]
    expect: tuple[Expectation, ...]


def load_cases(folder: Traversable | None = None) -> tuple[Case, ...]:
    """All cases of a folder (default: those that come with Relist), ordered by file name.

    Raises ``CaseError`` for the first wrong file, and when two cases share an id.
    """
    folder = folder or files("relist_specs") / "cases"
    try:
        paths = sorted(
            (path for path in folder.iterdir() if path.name.endswith(".yaml")),
            key=lambda path: path.name,
        )
    except OSError as error:
        raise CaseError(f"case folder {quoted(str(folder))}: {error.strerror}") from None
    cases: dict[str, Case] = {}
    for path in paths:
        case = load_case(path)
        if case.id in cases:
            raise CaseError(f"{path.name}: field 'id': {quoted(case.id)} is taken by another case")
        cases[case.id] = case
    return tuple(cases.values())


def load_case(path: Traversable) -> Case:
    """Read one case file. Raises ``CaseError``."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CaseError(f"case file {quoted(str(path))}: {error.strerror}") from None
    return parse_case(data, path.name)


def parse_case(data: bytes, name: str) -> Case:
    """Read one case from YAML; ``name`` is the file named in errors. Raises ``CaseError``."""
    if len(data) > _MAX_CASE_BYTES:
        raise CaseError(f"{name}: longer than {_MAX_CASE_BYTES} bytes")
    try:
        raw: object = yaml.load(data, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise CaseError(f"{name}: not YAML: {reason[:200]}") from None
    # A misspelt field is both unknown and missing: the unknown one is what the author looks for.
    wrong = sorted(_validator().iter_errors(raw), key=lambda error: not _is_unknown(error))
    if wrong:
        raise CaseError(f"{name}: {_explained(wrong[0])}")
    case = _case(cast("Mapping[str, Any]", raw))
    for field, value, reason in _mistakes(case):
        raise CaseError(f"{name}: field '{field}': {quoted(value)} {reason}")
    return case


class _Loader(yaml.SafeLoader):
    """YAML without dates and aliases: 2025-11-25 stays a text, and a short file stays small."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        return super().compose_node(parent, index)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    schema = files("relist_specs") / "schemas" / "case.schema.json"
    return jsonschema_rs.Draft202012Validator(json.loads(schema.read_bytes()))


def _is_unknown(error: jsonschema_rs.ValidationError) -> bool:
    return error.kind.name == "additionalProperties"


def _explained(error: jsonschema_rs.ValidationError) -> str:
    path = "/".join(str(part) for part in error.instance_path)
    where = f"field '{path}'" if path else "the case"
    if error.kind.name in ("additionalProperties", "required"):
        return f"{where}: {quoted(error.message)[1:-1]}"  # the message names the field
    value = json.dumps(error.instance, ensure_ascii=False, default=str)
    return f"{where}: {quoted(value)}: {quoted(error.message)[1:-1]}"


# --- from checked YAML to values ---


def _case(raw: Mapping[str, Any]) -> Case:
    server = raw["server"]
    revisions = tuple(raw["revisions"])
    return Case(
        id=raw["id"],
        title=raw["title"],
        text=" ".join(raw["text"].split()),
        rules=tuple(raw["rules"]),
        rule=_rule_of(raw),
        source=tuple(Source(**source) for source in raw["source"]),
        strength=raw["strength"],
        severity=raw["severity"],
        profile=raw["profile"],
        revisions=revisions,
        transports=("memory", *raw["transports"]),
        level=raw["level"],
        server=ServerSetup(
            capabilities=server["capabilities"],
            pages=_pages(server),
            cursors={kind: tuple(cursors) for kind, cursors in server.get("cursors", {}).items()},
            ttl_ms=server.get("ttl_ms", 600_000),
            cache_scope=server.get("cache_scope", "public"),
        ),
        steps=tuple(_step(step) for step in raw["steps"]),
        expect=tuple(_expectation(expect, raw) for expect in raw["expect"]),
    )


def _rule_of(raw: Mapping[str, Any]) -> Mapping[str, str]:
    """By revision the rule that a finding names: the first one, where the case does not say."""
    named: Mapping[str, str] = raw.get("rule", {})
    return named or dict.fromkeys(raw["revisions"], str(raw["rules"][0]))


def _pages(raw: Mapping[str, Any]) -> dict[str, s.Pages]:
    return {kind: tuple(tuple(page) for page in raw[kind]) for kind in LIST_METHODS if kind in raw}


def _match(raw: Mapping[str, Any]) -> s.RequestMatch:
    return s.RequestMatch(raw["method"], raw.get("page"), raw.get("cursor"))


_NAMES = {"as": "name", "else": "otherwise"}
_STEPS: Mapping[str, Callable[..., s.Step]] = {
    "connect": s.Connect,
    "need": s.Need,
    "believe": s.Believe,
    "call": s.Call,
    "idle": s.Idle,
    "stop": s.Stop,
    "hold": s.Hold,
    "release": s.Release,
    "fail": s.Fail,
    "await": s.Await,
    "covered": s.Covered,
    "change": s.Change,
    "notify": s.Notify,
    "cut": s.Cut,
    "mark": s.Mark,
    "fence": s.Fence,
}


def _step(raw: Mapping[str, Any]) -> s.Step:
    when: dict[str, Any] = {
        key: names if isinstance(names, str) else tuple(names)
        for key, names in raw.get("when", {}).items()
    }
    op = next(key for key in raw if key != "when")
    given: Mapping[str, Any] = raw[op] or {}
    fields: dict[str, Any] = {_NAMES.get(key, key): value for key, value in given.items()}
    match op:
        case "change":
            return s.Change(pages=_pages(given), notify=given.get("notify", False), **when)
        case "fail":
            error = fields.pop("error")
            fields |= {"code": error["code"], "message": error["message"]}
        case "cut":
            fields = {}
        case _:
            pass
    if "request" in fields:
        fields["request"] = _match(fields["request"])
    if "until" in fields:
        fields["until"] = tuple(fields["until"])
    return _STEPS[op](**fields, **when)


def _expectation(raw: Mapping[str, Any], case: Mapping[str, Any]) -> Expectation:
    ((op, given),) = raw.items()
    rule = given.get("rule")
    common: dict[str, Any] = {
        "rule": _rule_of(case) if rule is None else dict.fromkeys(case["revisions"], rule),
        "severity": case["severity"] | given.get("severity", {}),
        "since": given.get("since"),
        "given": given.get("given"),
    }
    own = {key: value for key, value in given.items() if key not in common}
    match op:
        case "requested":
            return Requested(**own, **common)
        case "full_walk":
            return FullWalk(**own, **common)
        case "answer":
            sets = own["one_of"] if "one_of" in own else [own["items"]]
            one_of = tuple(None if items is None else tuple(items) for items in sets)
            return Answered(of=own["of"], one_of=one_of, which=own.get("which", "last"), **common)
        case "no_duplicates":
            return NoDuplicates(**own, **common)
        case _:
            return NeverRequested(methods=tuple(own["methods"]), **common)


# --- what a schema cannot say ---


def _mistakes(case: Case) -> Iterator[tuple[str, str, str]]:
    """Names that refer to nothing, as (field, value, reason)."""
    names = _Names()
    for index, step in enumerate(case.steps):
        yield from names.take(f"steps/{index}", step)
    for index, expectation in enumerate(case.expect):
        for field, value in (("since", expectation.since), ("given", expectation.given)):
            if value is not None and value not in names.marks:
                yield f"expect/{index}/*/{field}", value, "is no mark of this case"
        if isinstance(expectation, Answered | NoDuplicates) and expectation.of not in names.answers:
            yield f"expect/{index}/*/of", expectation.of, "is no answer of this case"
    for field in ("rule", "strength", "severity"):
        for revision in case.revisions:
            if revision not in getattr(case, field):
                yield field, revision, "is missing here"


_ANSWERED_ALWAYS = ("initialize", "subscriptions/listen")


@attrs.define
class _Names:
    """The names that the steps of a case give, in step order."""

    answers: set[str | None] = attrs.field(factory=set[str | None])
    marks: set[str | None] = attrs.field(factory=set[str | None])
    holds: set[str] = attrs.field(factory=set[str])

    def take(self, where: str, step: s.Step) -> Iterator[tuple[str, str, str]]:
        if step.given is not None and step.given not in self.marks:
            yield f"{where}/when/given", step.given, "is no earlier mark"
        match step:
            case s.Need() | s.Believe() | s.Call():
                self.answers.add(step.name)
            case s.Await():
                if step.since is not None and step.since not in self.marks:
                    yield f"{where}/await/since", step.since, "is no earlier mark"
                self.marks.add(step.name)
                self.answers |= {step.name} if step.need is not None else set[str | None]()
            case s.Mark():
                self.marks.add(step.name)
            case s.Hold() | s.Fail() if step.request.method in _ANSWERED_ALWAYS:
                yield f"{where}/*/request/method", step.request.method, "cannot be held or failed"
            case s.Hold():
                self.holds.add(step.name)
            case s.Release() if step.name not in self.holds:
                yield f"{where}/release/name", step.name, "is held by no earlier step"
            case _:
                pass
