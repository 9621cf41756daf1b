"""A client that somebody connects by hand: told what to do, one play after the other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from relist_conformance.by_hand import Address, address_of
from relist_conformance.errors import ConformanceError
from support.ports import free_port

CASES = Path(__file__).with_name("wire_cases")
CLIENT = Path(__file__).parents[1] / "clients" / "official.py"
RELIST = (sys.executable, "-m", "relist_conformance.cli", "check", "--cases", str(CASES))


def connected(url: str, revision: str, *fault: str) -> None:
    """What the person does: have the client connect, list and call."""
    env = {
        **os.environ,
        "MCP_CONFORMANCE_PROTOCOL_VERSION": revision,
        "MCP_CONFORMANCE_SCENARIO": "tools_call",
    }
    subprocess.run((sys.executable, str(CLIENT), *fault, url), env=env, check=True, timeout=60)


@pytest.mark.parametrize(("fault", "word"), [((), "pass"), (("first-page",), "warn")])
def test_a_person_is_led_through_the_cases(fault: tuple[str, ...], word: str) -> None:
    url = f"http://127.0.0.1:{free_port()}/here"
    check = subprocess.Popen(
        (*RELIST, "--url", url, "--case", "wire:*"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    with check:
        assert check.stdin
        assert check.stderr
        assert check.stdout
        revision = ""
        for line in check.stderr:
            if line.startswith("wire:every-page in "):
                revision = line.split()[2].rstrip(":")
            elif url in line and revision:
                connected(url, revision, *fault)
            if "press Enter" in line:
                check.stdin.write("\n")
        told = check.stdout.read()
    assert f"\n2 {word}\n" in told
    assert check.returncode == 0


def test_without_a_person_there_is_no_verdict() -> None:
    url = f"http://127.0.0.1:{free_port()}/here"
    done = subprocess.run(
        (*RELIST, "--url", url, "--case", "wire:*"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "stdin has ended" in done.stderr


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:9/mcp",
        "http://example.com:9/mcp",
        "http://127.0.0.1/mcp",
        "http://127.0.0.1:9",
        "http://127.0.0.1:9/",
        "http://127.0.0.1:90000/mcp",
        "http://127.0.0.1:9/mcp?x=1",
        "",
    ],
)
def test_only_a_place_on_this_machine_will_do(url: str) -> None:
    with pytest.raises(
        ConformanceError, match=r"--url .* not of the form http://127\.0\.0\.1:PORT"
    ):
        address_of(url)


def test_a_place_is_port_and_path() -> None:
    assert address_of("http://localhost:80/a/b") == Address(80, "/a/b")
