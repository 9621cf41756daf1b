"""Cases: YAML files checked against a JSON Schema and read into frozen values.

A wrong file gives one line that names the file, the field and the value.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal, cast

import attrs
import jsonschema_rs
import yaml

from relist.check.expect import Expectation, Severity
from relist_conformance import steps as s
from relist_conformance.errors import ConformanceError, quoted
from relist_conformance.names import Mistake, mistakes
from relist_conformance.reading import expectation_of, pages_of, rule_of, step_of

REVISIONS = ("2025-11-25", "2026-07-28")
TRANSPORTS = ("memory", "stdio", "http")
SERVER_INFO: Mapping[str, Any] = {"name": "relist-referee", "version": "1"}
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
    ``principals`` are the pages of those who do not see what everybody sees, ``contents`` by
    principal ("": everybody) and URI what resources contain. ``details`` are by label what an item
    has besides name and description.
    """

    capabilities: Mapping[str, Any]
    pages: Mapping[str, s.Pages]
    cursors: Mapping[str, tuple[str, ...]]
    ttl_ms: int
    cache_scope: Literal["public", "private"]
    principals: Mapping[str, Mapping[str, s.Pages]] = attrs.field(
        factory=dict[str, "Mapping[str, s.Pages]"]
    )
    contents: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict[str, "Mapping[str, str]"])
    details: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict[str, "Mapping[str, Any]"])
    server_info: Mapping[str, Any] = SERVER_INFO


@attrs.frozen
class Case:
    """One case: what is demanded, by whom, of whom, and how it is provoked and judged.

    ``rule``, ``strength`` and ``severity`` are by revision; ``rules`` are all that play a part;
    ``anomaly`` is what kind of harm it looks for. With ``must_speak`` a client that never comes to
    speak the revision is judged all the same.
    """

    id: str
    title: str
    text: str
    rules: tuple[str, ...]
    rule: Mapping[str, str]
    source: tuple[Source, ...]
    strength: Mapping[str, str]
    severity: Mapping[str, Severity]
    anomaly: str
    profile: Literal["mcp", "relist"]
    revisions: tuple[str, ...]
    transports: tuple[str, ...]
    must_speak: bool
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
        # Without aliases, so that a short file stays small.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(data, _Loader)):
            raise yaml.YAMLError("aliases are not allowed")
        if (key := _written_twice(yaml.compose(data, _Loader))) is not None:
            raise yaml.YAMLError(f"{quoted(key)} is there twice")
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


_BASE = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C is five times as fast
_RESOLVERS = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader: Any = type("_Loader", (_BASE,), {"yaml_implicit_resolvers": _RESOLVERS})


def _written_twice(node: Any) -> str | None:
    """A key that some mapping of the document has twice, of which YAML would keep the last."""
    below: list[Any] = []
    if isinstance(node, yaml.MappingNode):
        keys = [str(key.value) for key, _ in node.value]
        below = [value for _, value in node.value]
        if twice := [key for key in keys if keys.count(key) > 1]:
            return twice[0]
    elif isinstance(node, yaml.SequenceNode):
        below = node.value
    return next((key for one in below if (key := _written_twice(one)) is not None), None)


"""YAML without dates: 2025-11-25 stays a text."""


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
        rule=rule_of(raw),
        source=tuple(Source(**source) for source in raw["source"]),
        strength=raw["strength"],
        severity=raw["severity"],
        anomaly=raw["anomaly"],
        profile=raw["profile"],
        revisions=revisions,
        # In memory a client has a pipe: what is for HTTP alone cannot be played there.
        transports=(*(("memory",) if "stdio" in raw["transports"] else ()), *raw["transports"]),
        must_speak=raw.get("must_speak", False),
        level=raw["level"],
        server=ServerSetup(
            capabilities=server["capabilities"],
            pages=pages_of(server),
            cursors={kind: tuple(cursors) for kind, cursors in server.get("cursors", {}).items()},
            ttl_ms=server.get("ttl_ms", 600_000),
            cache_scope=server.get("cache_scope", "public"),
            principals={
                name: pages_of(pages) for name, pages in server.get("principals", {}).items()
            },
            contents={
                name: seen.get("contents", {})
                for name, seen in {"": server, **server.get("principals", {})}.items()
            },
            details=server.get("details", {}),
        ),
        steps=tuple(step_of(step) for step in raw["steps"]),
        expect=tuple(expectation_of(expect, raw) for expect in raw["expect"]),
    )


def _mistakes(case: Case) -> Iterator[Mistake]:
    yield from mistakes(case.steps, case.expect, case.transports)
    for field in ("strength", "severity", "rule"):
        for revision in case.revisions:
            if revision not in getattr(case, field):
                yield field, revision, "is missing here"
