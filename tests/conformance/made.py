"""Cases, cells and results made up for the tests of runner and reports."""

from typing import Any

import yaml

from relist.check.history import Event
from relist.check.judge import Finding
from relist_conformance.driver import Hello
from relist_conformance.runner import Cell, Observed, Result, Word
from relist_conformance.script import Case, parse_case

HOSTILE = "[bold red]\x1b[2J\u202e\nsecond line [/nope]"


def made_case(**changed: Any) -> Case:
    raw: dict[str, Any] = {
        "id": "tools:made-up",
        "title": "A case made up",
        "text": "A client does what this text says.",
        "rules": ["MADE-01"],
        "source": [{"name": "A page", "url": "https://example.com/page#part"}],
        "strength": {"2025-11-25": "SHOULD", "2026-07-28": "MUST"},
        "severity": {"2025-11-25": "warn", "2026-07-28": "fail"},
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
        findings = (Finding("MADE-01", word, f"the client offered {HOSTILE}", (2, 7)),)
    observed = Observed(word, reason, findings, history, 1.25)
    return Result(Cell(case or made_case(), transport, revision), observed, 1, 12.5)
