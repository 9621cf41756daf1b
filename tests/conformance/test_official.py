"""Clients of the official suite, started as its runner starts them and judged on the wire."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from relist_conformance.errors import DriverError, DriverReplyError
from relist_conformance.official import OfficialDriver

pytestmark = pytest.mark.anyio

CASES = Path(__file__).with_name("wire_cases")
CLIENT = Path(__file__).parents[1] / "clients" / "official.py"
REVISIONS = ("2025-11-25", "2026-07-28")
RELIST = (sys.executable, "-m", "relist_conformance.cli", "check")
HTTP = {"transport": "http", "url": "http://127.0.0.1:9/a path/mcp"}


def command(*args: str) -> str:
    return shlex.join((sys.executable, str(CLIENT), *args))


def check(*args: str, own: bool = True) -> subprocess.CompletedProcess[str]:
    """Judge by the cases made for these tests, or by those that come with Relist."""
    cases = ("--cases", str(CASES)) if own else ()
    return subprocess.run(
        (*RELIST, *cases, "-j", "8", *args),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def verdicts(file: Path, *args: str, own: bool = True) -> dict[tuple[str, str, str], str]:
    done = check("--json", str(file), *args, own=own)
    assert file.exists(), done
    results: list[dict[str, Any]] = json.loads(file.read_text())["results"]
    return {(one["case"], one["transport"], one["revision"]): one["verdict"] for one in results}


@pytest.mark.parametrize(
    ("scenario", "fault", "word"),
    [
        ("tools_call", (), "pass"),
        ("initialize", (), "pass"),
        ("tools_call", ("first-page",), "warn"),
    ],
)
def test_it_is_judged_by_what_the_server_sees(
    scenario: str, fault: tuple[str, ...], word: str, tmp_path: Path
) -> None:
    found = verdicts(
        tmp_path / "result.json",
        *("--command", command(*fault), "--scenario", scenario, "--case", "wire:*"),
        *("--transport", "http", "--transport", "stdio"),
    )
    where = [(transport, revision) for transport in ("stdio", "http") for revision in REVISIONS]
    assert found == {("wire:every-page", *one): word for one in where}


def test_cases_of_the_suite_judge_it_by_its_frames(tmp_path: Path) -> None:
    """This client heeds no version but its own, and is found out."""
    legacy, modern = REVISIONS
    passed = {
        ("handshake:initialize-is-complete", legacy),
        ("http:headers-mirror-the-body", modern),
        ("http:version-in-each-request", legacy),
        ("ids:once-in-a-session", legacy),
        ("meta:in-each-request", modern),
        ("session:named-in-each-request", legacy),
    }
    expected = {(case, "http", revision): "pass" for case, revision in passed}
    expected |= {("handshake:unimplemented-version", "http", legacy): "fail"}
    expected |= {("handshake:older-version", "http", legacy): "warn"}
    cases = [word for case, *_ in expected for word in ("--case", case)]
    file = tmp_path / "result.json"
    assert verdicts(file, "--command", command(), *cases, own=False) == expected


def test_what_cannot_be_seen_on_the_wire_is_untestable_and_only_http_is_tried(
    tmp_path: Path,
) -> None:
    found = verdicts(tmp_path / "result.json", "--command", command(), "--case", "paging:*")
    assert set(found.values()) == {"untestable"}
    assert {transport for _, transport, _ in found} == {"http"}


def test_a_command_that_fails_is_told_with_its_last_words() -> None:
    done = check("--command", command(), "--scenario", "relist", "--case", "wire:*")
    told = "the command failed in 2 plays; the last: exit code 1, last line on stderr: "
    assert told + "'Unknown scenario: relist'" in " ".join(done.stderr.split())
    assert done.returncode == 0
    assert "never came to speak" in done.stdout


def test_a_command_that_is_not_there_is_an_error_of_the_harness() -> None:
    done = check("--command", "/no/such/client", "--case", "wire:*")
    assert done.returncode == 2
    assert "relist: command '/no/such/client' does not start: " in done.stderr


def test_one_or_the_other() -> None:
    done = check("--command", "x", "--driver", "y")
    assert (done.returncode, done.stderr) == (
        2,
        "relist: --driver, --command and --url exclude each other\n",
    )


def connect(name: str, target: dict[str, Any]) -> dict[str, Any]:
    return {"connection": name, "target": target, "revision": REVISIONS[1]}


async def test_the_contract_is_that_of_the_official_runner(tmp_path: Path) -> None:
    """Through a shell, the URL last and whole, three variables, and no other input."""
    told = tmp_path / "told"
    script = (
        "import json, os, sys;"
        "mine = {k: v for k, v in os.environ.items() if k.startswith('MCP_CONFORMANCE_')};"
        f"open({str(told)!r}, 'w').write(json.dumps([sys.argv[1:], sys.stdin.read(), mine]))"
    )
    shell = f"cd / && {shlex.join((sys.executable, '-c', script))} more"
    async with OfficialDriver.start(shell, "initialize") as driver:
        await driver.ask("connect", connect("c", HTTP))
        assert await driver.ask("idle", {"connection": "c"}) == {"idle": True}
    args, given, variables = json.loads(told.read_text())
    assert args == ["more", HTTP["url"]]
    assert given == ""
    assert json.loads(variables.pop("MCP_CONFORMANCE_CONTEXT")) == {"name": "initialize", **HTTP}
    assert variables == {
        "MCP_CONFORMANCE_SCENARIO": "initialize",
        "MCP_CONFORMANCE_PROTOCOL_VERSION": REVISIONS[1],
    }


async def test_it_cannot_be_asked_for_lists_but_its_end_is_waited_for() -> None:
    async with OfficialDriver.start("true", "tools_call") as driver:
        await driver.ask("connect", connect("c", HTTP))
        with pytest.raises(DriverReplyError, match="tells no lists"):
            await driver.ask("need", {"connection": "c", "kind": "tools"})
        with pytest.raises(DriverReplyError, match="calls what it likes"):
            await driver.ask("call", {"connection": "c", "name": "a"})
        with pytest.raises(DriverReplyError) as caught:
            await driver.ask("believe", {"connection": "c", "kind": "tools"})
        assert caught.value.code == "unsupported"
        assert (driver.hello.level, driver.failed, driver.broken) == ("wire", 0, None)


@pytest.mark.parametrize("how", ["stop", "leave"])
async def test_a_command_that_stays_is_ended_with_all_that_it_started(how: str) -> None:
    async with OfficialDriver.start("sleep 600 & sleep 600; true", "tools_call") as driver:
        await driver.ask("connect", connect("c", HTTP))
        process = driver._clients["c"].process
        if how == "stop":
            await driver.ask("stop", {"connection": "c"})
    assert process.returncode == -9
    assert driver.failed == 0


async def test_a_missing_program_breaks_the_driver() -> None:
    async with OfficialDriver.start("/no/such/client", "tools_call") as driver:
        await driver.ask("connect", connect("c", HTTP))
        with pytest.raises(DriverError, match="does not start"), anyio.fail_after(30):
            await driver.ask("idle", {"connection": "c"})
        assert driver.broken
