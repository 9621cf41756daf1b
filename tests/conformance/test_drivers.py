"""The drivers that run where Relist does, judged end to end over stdio and HTTP.

The verdicts on clients of others are pinned: a case that stops finding what it is for, and one
that begins to blame a client for something else, both show here.
"""

import shlex
import sys
from pathlib import Path

import pytest

from conformance.findings import FINDINGS, findings
from conformance.pinned import verdicts
from relist_conformance.driver import Driver
from relist_conformance.script import load_cases

pytestmark = pytest.mark.anyio

EVERYWHERE_WARN = "warn warn warn warn"

NAIVE = {
    # It offers the first page and never asks for another.
    "paging:every-page": EVERYWHERE_WARN,
    "paging:empty-cursor": "n/a n/a n/a n/a",
    "paging:empty-page": "n/a n/a n/a n/a",
    "paging:endless": "n/a n/a n/a n/a",
    # It lists again on a notice, but the first page only.
    "notice:next-access": EVERYWHERE_WARN,
    "notice:during-listing": "n/a n/a n/a n/a",
    # It keeps the list and never tries again.
    "failure:keeps-last-good": EVERYWHERE_WARN,
    "late:timed-out-answer": "pass pass pass pass",
    "capability:undeclared": "pass pass pass pass",
    # It neither reconnects nor listens again.
    "reconnect:lists-again": EVERYWHERE_WARN,
}
EVERYWHERE_PASS = "pass pass pass pass"
MCP = {
    "paging:every-page": EVERYWHERE_PASS,
    "paging:empty-cursor": EVERYWHERE_PASS,
    "notice:next-access": EVERYWHERE_PASS,
    "notice:during-listing": EVERYWHERE_PASS,
    "failure:keeps-last-good": EVERYWHERE_PASS,
    "late:timed-out-answer": EVERYWHERE_PASS,
    # It asks for whatever the application asks for, declared or not.
    "capability:undeclared": "fail warn fail warn",
    # It does not reconnect; and in the modern era a lost change stream leaves the cached page in
    # use, although no notice would reach the client any more.
    "reconnect:lists-again": EVERYWHERE_WARN,
    # It asks for the rest of a modern stream that broke (GET with Last-Event-ID).
    "stream:broken-is-not-resumed": "warn",
}
FASTMCP = {
    "paging:every-page": "pass pass pass pass",
    "paging:empty-cursor": "pass pass pass pass",
    # In the modern era it opens no change stream, so there is nothing to notify on.
    "notice:next-access": "pass n/a pass n/a",
    "notice:during-listing": "pass n/a pass n/a",
    "failure:keeps-last-good": "pass n/a pass n/a",
    "late:timed-out-answer": "pass pass pass pass",
    # It asks for whatever the application asks for, declared or not.
    "capability:undeclared": "fail warn fail warn",
    # A client held open stays on its dead process (stdio) or asks under its dead session id (HTTP),
    # so that each need ends in an error, and nothing is ever listed again.
    "reconnect:lists-again": "warn n/a warn n/a",
    # The client of the SDK underneath asks for the rest of a modern stream that broke.
    "stream:broken-is-not-resumed": "warn",
}
README = Path(__file__).parents[2] / "README.md"


def module(driver: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"relist_conformance.drivers.{driver}")


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ("naive", NAIVE),
        ("mcp_client", MCP),
        ("fastmcp_client", FASTMCP),
    ],
)
def test_verdicts_are_as_pinned(driver: str, expected: dict[str, str], tmp_path: Path) -> None:
    found = verdicts(shlex.join(module(driver)), tmp_path / "result.json", expected)
    assert found == expected


@pytest.mark.nightly
@pytest.mark.parametrize("driver", ["naive", "mcp_client", "fastmcp_client"])
def test_all_findings_are_as_pinned(driver: str, tmp_path: Path) -> None:
    found = verdicts(shlex.join(module(driver)), tmp_path / "result.json")
    assert findings(found) == FINDINGS[driver]


@pytest.mark.parametrize("driver", sorted(FINDINGS.keys() - {"naive"}))
def test_each_finding_is_explained(driver: str) -> None:
    page = (README.parent / "specs" / "drivers.md").read_text()
    missing = {case for case in FINDINGS[driver] if case.removeprefix("listen:ended:") not in page}
    assert missing == set()


UNTESTABLE = {
    *("ttl:absent-is-zero", "listen:partial-acknowledgment"),
    *("malformed:huge-lifetime", "malformed:wrong-lifetime"),
}
"""They want the clock moved by a day, which no driver of a client in real time can do."""


def test_the_reference_client_passes_whatever_it_can_be_put_to(tmp_path: Path) -> None:
    found = verdicts(shlex.join(module("reference")), tmp_path / "result.json")
    assert found.keys() == {case.id for case in load_cases()}
    for case, words in found.items():
        assert set(words.split()) == {"-" if case in UNTESTABLE else "pass"}, (case, words)


def test_the_readme_shows_the_verdicts_on_the_naive_client() -> None:
    block = README.read_text().partition("```text\nnaive client")[2].partition("```")[0]
    rows = [line.split("│") for line in block.splitlines() if line.startswith("│")]
    shown = {row[1].strip(): " ".join(word.strip() for word in row[2:6]) for row in rows}
    assert len(shown) == 7
    assert shown.items() <= NAIVE.items()


@pytest.mark.parametrize("driver", ["naive", "mcp_client", "fastmcp_client"])
async def test_a_driver_that_cannot_reach_its_server_still_answers(driver: str) -> None:
    target = {"transport": "stdio", "command": ["/no/such/server"], "env": {}}
    async with Driver.start(module(driver)) as running:
        assert running.hello.level == "full"
        fields = {"connection": "c", "target": target, "revision": "2026-07-28"}
        assert await running.ask("connect", fields) == {}
        believed = await running.ask("believe", {"connection": "c", "kind": "tools"})
        assert believed == {"items": None, "state": "unknown"}
        assert await running.ask("idle", {"connection": "c"}) == {"idle": None}
