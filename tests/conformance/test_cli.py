"""The command line: exit codes, one clear line for what is wrong, nothing left behind."""

import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import relist
from relist_conformance.cli import app
from relist_conformance.errors import ConformanceError

CLIENTS = Path(__file__).parent.parent / "clients"
RELIST = (sys.executable, "-m", "relist_conformance.cli")
TOY = shlex.join((sys.executable, str(CLIENTS / "toy.py")))


def run(*args: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (*RELIST, *args), capture_output=True, text=True, timeout=timeout_s, check=False
    )


def broken(how: str) -> str:
    return shlex.join((sys.executable, str(CLIENTS / "broken.py"), how))


def refused(*args: str) -> str:
    """The one line that a run with bad input gives, together with exit code 2."""
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 2, done
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line[:1].isdigit()]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("relist: ")
    return lines[0].removeprefix("relist: ")


def test_help_and_version_load_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from relist_conformance.cli import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "heavy = {'anyio', 'mcp', 'mcp_types', 'rich.console', 'starlette', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert "check" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
    assert run("--version").stdout == f"relist {relist.__version__}\n"


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (("--case", "tools:[nothing"), "no case matches 'tools:[nothing'; see 'relist list'"),
        (
            ("--revision", "2024-11-05"),
            "--revision '2024-11-05' is not one of 2025-11-25, 2026-07-28",
        ),
        (("--transport", "smoke"), "--transport 'smoke' is not one of stdio, http"),
        (("--profile", "x\n"), "--profile 'x\\n' is not one of relist, mcp"),
        (("--driver", ""), "the driver command is empty"),
        (("--driver", "python 'x"), "driver command 'python \\'x': No closing quotation"),
        (
            ("--driver", "/no/such -x"),
            "driver '/no/such -x' does not start: No such file or directory",
        ),
        (("--json", "/no/such/folder/x.json"), "JSON file '/no/such/folder/x.json': No such file"),
        (("--html", "/"), "HTML file '/': Is a directory"),
        (
            ("--cases", "/no/such/folder"),
            "case folder '/no/such/folder': No such file or directory",
        ),
    ],
)
def test_bad_input_is_one_line(args: tuple[str, ...], line: str) -> None:
    assert refused("check", *args).startswith(line)


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ("garbage", "printed a line that is no reply: '\\x1b[31m[bold]Hello! xxx"),
        ("exits", "exited with code 3; its last line on stderr: 'no such module: [bold]client'"),
        ("exits later", "exited with code 4; its last line on stderr:"),
        ("contract", "speaks contract '2', this suite speaks 1"),
        ("hangs", "does not answer 'hello' within 0.5 s"),
    ],
)
def test_a_broken_driver_is_one_line(how: str, line: str) -> None:
    args = ("--driver", broken(how), "--driver-timeout", "0.5" if how == "hangs" else "20")
    assert line in refused("check", "--transport", "stdio", "--revision", "2025-11-25", *args)


def test_a_driver_that_hangs_in_a_command() -> None:
    said = refused("check", "--driver", broken("stays"), "--driver-timeout", "3", "-j", "1")
    assert "does not answer" in said


def test_a_run_that_came_to_nothing_leaves_no_file(tmp_path: Path) -> None:
    refused("check", "--json", str(tmp_path / "new.json"), "--driver", "/no/such")
    assert not list(tmp_path.iterdir())


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = refused("check", "--driver", TOY, "--port", port, "--transport", "http")
    assert port in said
    assert "in use" in said


def test_a_case_file_with_a_wrong_field(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("id: mine:case\nlevle: full\n")
    said = refused("check", "--cases", str(tmp_path))
    assert said.startswith("mine.yaml: ")
    assert "levle" in said


def test_an_id_that_exists_already(tmp_path: Path) -> None:
    from importlib.resources import files

    taken = next(p for p in (files("relist_specs") / "cases").iterdir() if p.name.endswith(".yaml"))
    (tmp_path / "again.yaml").write_bytes(taken.read_bytes())
    assert "exists already" in refused("check", "--cases", str(tmp_path))


ONE_CELL = ("--case", "paging:every-page", "--transport", "stdio", "--revision", "2026-07-28")
NAIVE = ("--driver", f"{sys.executable} -m relist_conformance.drivers.naive")


def test_strict_turns_a_warning_into_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    lax = run("check", *ONE_CELL, *NAIVE, "--json", str(file))
    assert lax.returncode == 0, lax.stderr
    assert lax.stdout.rstrip().endswith("1 warn")
    assert run("check", *ONE_CELL, *NAIVE, "--strict").returncode == 1
    document = json.loads(file.read_text())
    timing = document["timing"]
    assert 0 < timing["driver_start_ms"] < timing["total_ms"]
    assert timing["client_cpu_ms"] > 0
    assert timing["suite_cpu_ms"] > 0
    (result,) = document["results"]
    assert result["verdict"] == "warn"
    assert result["history"]
    witnesses = {seq for finding in result["findings"] for seq in finding["witness"]}
    assert witnesses <= {event["seq"] for event in result["history"]}


def exit_of(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Exit code and stderr of a check in which this error comes up."""

    async def fails(*_: object) -> int:
        raise error

    monkeypatch.setattr("relist_conformance.check.run_check", fails)
    result = CliRunner().invoke(app, ["check"])
    return result.exit_code, result.stderr


def test_a_known_error_is_one_line_however_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ExceptionGroup("", [ExceptionGroup("", [ConformanceError("port 1\x1b is taken")])])
    assert exit_of(error, monkeypatch) == (2, "relist: port 1\\x1b is taken\n")


def test_a_fault_of_the_suite_never_looks_like_a_failing_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, said = exit_of(RuntimeError("a bug"), monkeypatch)
    assert code == 2
    assert "RuntimeError: a bug" in said


def test_list_and_explain() -> None:
    listed = run("list")
    assert listed.returncode == 0
    assert "breaking it" in listed.stdout
    said = "no case and no rule is called '[x]'; see 'relist list'"
    assert refused("explain", "[x]") == said
    really = run("explain", "[x]")
    assert (really.returncode, really.stderr) == (2, f"relist: {said}\n")


def test_a_rule_is_explained_whether_or_not_a_case_judges_it() -> None:
    judged = run("explain", "DISC-10").stdout
    assert judged.startswith("DISC-10  ")
    assert "paging:every-page  every page is read" in judged
    alone = run("explain", "LIFE-10").stdout
    assert "No case judges it: Of 2025-03-26 alone, which the suite does not play" in alone


def read(pipe: int) -> bytes:
    """What comes next through a pipe; nothing once all who could write are gone."""
    assert select.select([pipe], [], [], 60)[0], "nobody writes, and somebody still could"
    return os.read(pipe, 100)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_process(how: signal.Signals, tmp_path: Path) -> None:
    """The driver and what it started hold the pipe open: its end is the end of both."""
    held = tmp_path / "held"
    os.mkfifo(held)
    pipe = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    script = f"exec 9>{held}; sleep 600 & echo started >&9; exec {broken('stays')}"
    command = shlex.join(("sh", "-c", script))
    # A test run in the background of a shell inherits SIGINT as ignored, which a run respects.
    with subprocess.Popen(
        (*RELIST, "check", "--driver", command),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, how, signal.SIG_DFL),  # noqa: PLW1509
    ) as suite:
        assert read(pipe) == b"started\n"
        suite.send_signal(how)
        assert suite.wait(60) == 130
        assert read(pipe) == b""
        assert suite.stderr
        assert suite.stderr.read().endswith("relist: interrupted\n")
    os.close(pipe)
