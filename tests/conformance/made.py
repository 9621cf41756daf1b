"""Cases, cells and results made up for the tests of runner and reports."""

from typing import Any

import attrs
import yaml

from relist.check.history import Event
from relist.check.judge import Finding
from relist_conformance.driver import Hello
from relist_conformance.report.data import Timing, report_of
from relist_conformance.report.model import Report
from relist_conformance.runner import Cell, Observed, Result, Word
from relist_conformance.script import Case, parse_case

HOSTILE = "[bold red]\x1b[2J\u202e\nsecond line [/nope]"
MARKUP = f"</script></title><img src=x onerror=alert(1)>'\"|`*]]>{{{{7*7}}}}\ud800\uffff{HOSTILE}"
HUGE = f"{MARKUP}{'very much ' * 100_000}"


def made_case(**changed: Any) -> Case:
    raw: dict[str, Any] = {
        "id": "tools:made-up",
        "title": "A case made up",
        "text": "A client does what this text says.",
        "rules": ["MADE-01"],
        "source": [{"name": "A page", "url": "https://example.com/page#part"}],
        "strength": {"2025-11-25": "SHOULD", "2026-07-28": "MUST"},
        "severity": {"2025-11-25": "warn", "2026-07-28": "fail"},
        "anomaly": "lost notice",
        "profile": "mcp",
        "revisions": ["2025-11-25", "2026-07-28"],
        "transports": ["stdio", "http"],
        "level": "full",
        "server": {"capabilities": {"tools": {}}, "tools": [["a@1"]]},
        "steps": [{"connect": {}}, {"need": {"kind": "tools", "as": "list"}}],
        "expect": [{"answer": {"rule": "MADE-01", "of": "list", "items": ["a@1"]}}],
        **changed,
    }
    return parse_case(yaml.safe_dump(raw).encode(), "made.yaml")


def made_hello(**changed: Any) -> Hello:
    fields: dict[str, Any] = {
        "name": "made up",
        "version": "1",
        "level": "full",
        "ops": (),
        "transports": ("stdio", "http"),
        "revisions": ("2025-11-25", "2026-07-28"),
        "kinds": ("tools",),
        **changed,
    }
    return Hello(**fields)


def made_result(
    word: Word = "pass",
    transport: str = "stdio",
    revision: str = "2025-11-25",
    case: Case | None = None,
    reason: str = "",
) -> Result:
    findings: tuple[Finding, ...] = ()
    history = (
        Event(0, 0, "ask", data={"op": "connect"}),
        Event(1, 40, "open", "c1", data={"kind": transport}),
        Event(2, 90, "in", "c1", {"jsonrpc": "2.0", "id": 1, "method": HOSTILE}),
    )
    if word in ("fail", "warn"):
        findings = (
            Finding("MADE-01", word, "lost notice", f"the client offered {HOSTILE}", (2, 7)),
        )
    observed = Observed(word, reason, findings, history, 1.25)
    return Result(Cell(case or made_case(), transport, revision), observed, 1, 12.5)


def made_report(*results: Result, **changed: Any) -> Report:
    """What a run with these results comes to."""
    fields: dict[str, Any] = {
        "hello": made_hello(),
        "timing": Timing(1000.0, 250.0, 400.0, 100.0),
        "options": {"jobs": 4, "strict": False},
        **changed,
    }
    return report_of(results, **fields)


def hostile_report() -> Report:
    """A client that puts markup, control characters and a megabyte wherever it can."""
    answer = {"items": [{"name": HUGE, "description": MARKUP}] * 40, "state": HUGE}
    history = (
        Event(0, 0, "truth", data={"pages": {"tools": [[MARKUP, HUGE], ["b@1"]]}}),
        Event(1, 4, "open", MARKUP, data={"channel_kind": MARKUP}),
        Event(2, 5, "in", "c1", data={"malformed": HUGE}),
        Event(3, 6, "in", "c1", {"jsonrpc": "2.0", "id": HUGE, "method": HUGE, "params": {}}),
        Event(4, 7, "out", "c1", {"id": HUGE, "result": {"tools": [{"name": MARKUP}, 3]}}),
        Event(5, 8, "out", "c1", {"id": 1, "error": {"code": MARKUP}}),
        Event(6, 9, "answer", data={"op": "need", "kind": "tools", "ok": answer}),
        Event(7, 9, "answer", data={"op": MARKUP, "error": HUGE}),
        Event(8, 9, "note", data={"changed": [MARKUP]}),
        Event(9, 10, "mark", data={"name": MARKUP}),
    )
    (usual,) = made_result("fail").observed.findings
    finding = attrs.evolve(usual, text=HUGE, witness=tuple(range(10)))
    case = made_case(title=MARKUP[:60].replace("\ud800", ""), text="text </script> of a case")
    found = Result(
        Cell(case, "http", "2026-07-28"), Observed("fail", "", (finding,), history), 1, 2
    )
    odd = made_result("harness", reason=HUGE)
    hello = made_hello(name=f"{MARKUP}{'n' * 150}", version=MARKUP)
    known = {("tools:made-up", "http", "2026-07-28", "MADE-01"): MARKUP}
    return made_report(found, odd, hello=hello, known=known, faults=(HUGE,))


def left_the_machine() -> Report:
    """The run of it."""
    return made_report(left_result())


def left_result() -> Result:
    """A client that showed a list which no server had given it, told so at event 3."""
    (usual,) = made_result("fail").observed.findings
    items = [{"name": "x", "description": "x@1"}]
    need = {"ask": 1, "op": "need", "kind": "tools"}
    history = (
        Event(0, 0, "open", "c1", data={"channel_kind": "memory"}),
        Event(1, 1, "in", "c1", {"jsonrpc": "2.0", "id": 1, "method": "initialize"}),
        Event(2, 2, "ask", data=need),
        Event(3, 90, "answer", data={**need, "ok": {"items": items, "state": "fresh"}}),
        Event(4, 95, "mark", data={"name": "after"}),
    )
    observed = Observed("fail", "", (attrs.evolve(usual, witness=(1,)),), history, 1.25)
    return Result(Cell(made_case(), "stdio", "2025-11-25"), observed, 1, 12.5)
