"""``relist watch``: real servers, shown and recorded; it ends in good order and tells no secret."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import anyio
import jsonschema_rs
import pytest
from rich.console import Console
from typer.testing import CliRunner

import support.sdk
from relist.values import Kind
from relist_conformance import watch, watch_options
from relist_conformance.cli import app
from relist_conformance.report.told import watch_schema
from relist_conformance.watch_options import WatchOptions
from relist_mcp import Catalogs
from relist_mcp.targets import Stdio
from support.loops import really
from support.ports import free_port

pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")

RELIST = (sys.executable, "-m", "relist_conformance.cli")
SDK = str(Path(support.sdk.__file__))
PATIENCE_S = 100.0


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(["a", "b", "become"]))
    return path


def server(tools: Path) -> tuple[str, ...]:
    """The command of a server that lists these."""
    return (sys.executable, SDK, "stdio", str(tools))


def run(*args: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (*RELIST, "watch", *map(str, args)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **env},
    )


def refused(*args: str) -> str:
    """The one line that bad input gives, together with exit code 2."""
    done = CliRunner().invoke(app, ["watch", *args])
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line.removeprefix("relist: ")


def replayed(trace: Path) -> str:
    """What a replay says of this trace, which it finds to hold."""
    done = CliRunner().invoke(app, ["replay", "--strict", str(trace)])
    assert done.exit_code == 0, done.output
    return done.stdout


# --- a process on a pipe --------------------------------------------------------------------------


def test_lines_for_people_and_a_trace(tools: Path, tmp_path: Path) -> None:
    trace = tmp_path / "x.trace"
    done = run("--until-idle", "--record", trace, "--", *server(tools))
    assert (done.returncode, done.stderr) == (0, "")
    told = [re.sub(r"^ +[\d.]+  (\S*) +", r"\1: ", line) for line in done.stdout.splitlines()]
    told = [re.sub(r", \d+ ms$", "", line) for line in told]
    assert told == [
        f"watching {sys.executable} {SDK} ...",
        "link: closed -> opening",
        "link: opening -> probing",
        "link: probing -> live",
        "link: modern 2026-07-28: declares tools; notices of tools",
        "push: off -> asked (subscription)",
        "push: asked -> open (subscription), for tools",
        "tools: walk 1 begins: first",
        "tools: walk 1: page 1, 2 entries, more follow",
        "tools: walk 1: page 2, 1 entry, the last",
        "tools: generation 1, 3 entries, changed",
        ": + a",
        ": + b",
        ": + become",
        "tools: walk 1 ends: changed, 2 pages, 3 entries",
        "link: live -> closed",
        "push: open -> off (subscription)",
        "tools: doubted: disconnected",
        "ended: idle",
    ]
    assert stat.S_IMODE(trace.stat().st_mode) == 0o600
    lines = done.stdout.splitlines()[1:-1]
    assert replayed(trace).splitlines()[: len(lines)] == lines


def test_json_for_programs(tools: Path) -> None:
    done = run("--json", "--until-idle", "--revision", "2025-11-25", "--", *server(tools))
    assert (done.returncode, done.stderr) == (0, "")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    validator = jsonschema_rs.Draft202012Validator(watch_schema())
    assert all(map(validator.is_valid, events))
    (agreed,) = (event["Agreed"] for event in events if "Agreed" in event)
    assert (agreed["era"], agreed["version"]) == ("legacy", "2025-11-25")
    (listed,) = (event["Listed"] for event in events if "Listed" in event)
    assert listed["added"] == {"count": 3, "first": ["a", "b", "become"]}
    ended = events[-1]["Ended"]
    assert ended["why"] == "idle"
    assert ended["stood"]["tools"] == {"phase": "fresh", "doubt": None, "generation": 1}


def test_what_a_server_says_is_made_safe(tools: Path) -> None:
    tools.write_text(json.dumps(["\x1b[2J", "\u202eevil", "[red]x[/red]", "x" * 300]))
    code = (
        "import os, sys\n"
        "os.write(2, b'\\x1b]0;owned\\x07\\xff\\xe2\\x80\\xae\\n' + b'y' * 9000)\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    command = (sys.executable, "-c", code, *server(tools)[1:])
    done = run("--until-idle", "--", *command)
    assert done.returncode == 0
    assert all(line.isprintable() for line in done.stdout.splitlines())
    for text in ("+ \\x1b[2J", "+ \\u202eevil", "+ [red]x[/red]", f"+ {'x' * 60}…"):
        assert text in done.stdout
    assert "server log          \\x1b]0;owned\\x07\N{REPLACEMENT CHARACTER}\\u202e\n" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 500


def test_a_log_line_without_an_end_is_cut() -> None:
    code = "import os; os.write(2, b'y' * 9_000); input()"
    with watching("--", sys.executable, "-c", code) as process:
        until(process, "server log +y{400}…$")


@really
async def test_on_both_event_loops(tools: Path) -> None:
    out = Console(file=open(os.devnull, "w"))  # noqa: SIM115
    options = WatchOptions(
        Stdio(server(tools)),
        "it",
        watch_options.credentials_from(Stdio(server(tools)), (), (), ()),
        watch_options.policy_from(None, lazy=False, poll_s=None),
        json=False,
        record=None,
        for_s=None,
        until_idle=True,
    )
    with out.file:
        assert await watch.run_watch(options, out, out) == 0


def test_a_server_that_dies_is_tried_again(tmp_path: Path) -> None:
    trace = tmp_path / "x.trace"
    dies = (sys.executable, "-c", "raise SystemExit(3)")
    with watching("--record", trace, "--", *dies) as process:
        until(process, r"link +\S+ -> waiting, next try in \d+ ms")
        until(process, r"link +waiting -> opening")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 130
    assert "link closed" in replayed(trace)


def test_time_ends_it(tmp_path: Path) -> None:
    """With a server that never answers: that is no failure, unless lists were asked for."""
    silent = ("--for", "0.1", "--", sys.executable, "-c", "input()")
    done = run("--until-idle", *silent)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "ended: not idle")
    done = run(*silent)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "ended: time")


def test_a_lazy_watcher_lists_nothing(tools: Path) -> None:
    done = run("--lazy", "--json", "--until-idle", "--", *server(tools))
    assert done.returncode == 0
    assert '"ListenMoved"' in done.stdout
    assert '"WalkBegan"' not in done.stdout


def test_who_polls_lists_again_by_itself(tools: Path) -> None:
    with watching("--poll", "0.1", "--", *server(tools)) as process:
        until(process, "walk 3 begins: poll")


# --- a server over HTTP that changes while it is watched ------------------------------------------


@contextmanager
def serving(tools: Path) -> Iterator[str]:
    """A server process; its address. It may come up later than its clients."""
    port = free_port()
    command = (sys.executable, SDK, "http", str(tools), str(port))
    with subprocess.Popen(command) as process:
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@contextmanager
def watching(*args: str | Path) -> Iterator["subprocess.Popen[str]"]:
    """The command under way. Whoever waits for what never comes learns of it after a while."""
    command = (*RELIST, "watch", *map(str, args))
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        stdout=pipe,
        stderr=pipe,
        text=True,
        # A test run in the background of a shell inherits SIGINT as ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as process:
        patience = Timer(PATIENCE_S, process.kill)
        patience.start()
        try:
            yield process
        finally:
            patience.cancel()
            process.kill()


def until(process: "subprocess.Popen[str]", pattern: str) -> list[str]:
    """What it tells until a line says this."""
    assert process.stdout is not None
    told: list[str] = []
    for line in process.stdout:
        told.append(line)
        if re.search(pattern, line):
            return told
    pytest.fail(f"{pattern!r} was never told: {told}")


async def _become(url: str, *names: str) -> None:
    async with Catalogs.connect(url) as catalogs:
        await catalogs.get(Kind.TOOLS)
        await catalogs.call_tool("become", {"names": names})


def test_a_change_is_shown_and_ctrl_c_ends_it_in_good_order(tools: Path, tmp_path: Path) -> None:
    trace = tmp_path / "x.trace"
    with serving(tools) as url, watching(url, "--record", trace) as process:
        until(process, r"\+ become")
        until(process, "walk 1 ends")
        anyio.run(partial(_become, url, "a", "c", "become"))
        told = until(process, "ends: changed")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        code = process.returncode
    assert (code, err) == (130, "relist: interrupted\n")
    shown = "".join(told)
    assert re.search(r"notice +tools: heeded by tools", shown)
    assert re.search(r"begins: noticed, after 1 notice\n", shown)
    assert re.search(r"\+ c\n.*- b\n", shown)
    assert out.endswith("ended: interrupted\n")
    assert "link closed" in replayed(trace)
    assert "127.0.0.1" not in trace.read_text()


def test_who_kills_the_watcher_loses_at_most_a_line(tools: Path, tmp_path: Path) -> None:
    trace = tmp_path / "x.trace"
    with serving(tools) as url, watching("--json", url, "--record", trace) as process:
        until(process, '"WalkEnded"')
        process.kill()
        process.communicate(timeout=60)
    assert "tools fresh, generation 1, 3 entries" in replayed(trace)


def test_a_reader_that_goes_ends_it(tools: Path) -> None:
    with serving(tools) as url, watching("--json", url) as process:
        until(process, '"LinkMoved"')
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
        assert process.wait(timeout=60) == 1
    assert "Traceback" not in told


# --- secrets --------------------------------------------------------------------------------------

SECRET = "Bearer s3cr3t"


class _Locked(BaseHTTPRequestHandler):
    """Refuses everybody, and remembers what they showed."""

    shown: list[str | None]

    def do_POST(self) -> None:
        self.shown.append(self.headers.get("authorization"))
        self.shown.append(self.headers.get("x-plain"))
        self.send_response(401)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def test_credentials_are_sent_and_never_told(tmp_path: Path) -> None:
    trace = tmp_path / "x.trace"
    handler: Any = type("Locked", (_Locked,), {"shown": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as locked:
        Thread(target=locked.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{locked.server_port}/mcp"
        given = ("--header-env", "Authorization: MY_TOKEN", "--header", "X-Plain:s3cr3t too")
        done = run(f"{url}?key=s3cr3t", "--until-idle", "--record", trace, *given, MY_TOKEN=SECRET)
        locked.shutdown()
    assert set(handler.shown) == {SECRET, "s3cr3t too"}
    assert done.returncode == 1  # idle, and nothing is fresh
    assert re.search(r"link +probing -> parked", done.stdout)
    assert done.stdout.startswith(f"watching {url}\n")
    for told in (done.stdout, done.stderr, trace.read_text()):
        assert "s3cr3t" not in told
    assert json.loads(trace.read_text().splitlines()[0])["partition"] != ""


def test_a_command_gets_the_variables_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0k3n")
    monkeypatch.setenv("OTHER", "0th3r")
    code = 'import os; os.write(2, f\'{os.getenv("TOKEN")} {os.getenv("OTHER")}\\n\'.encode())'
    with watching("--env", "TOKEN", "--", sys.executable, "-c", code) as process:
        until(process, "server log +t0k3n None$")


# --- bad input ------------------------------------------------------------------------------------

URL = "http://localhost:1/mcp"


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (("ftp://u:s3cr3t@h/?k=s3cr3t",), "TARGET 'ftp://...@h/': a URL must begin with http://"),
        ((URL, "more"), f"TARGET '{URL}': a URL must begin with http:// or https://, and no word"),
        (("http://",), "TARGET 'http://' is no URL"),
        (("http://h:port/",), "TARGET 'http://h:port/' is no URL"),
        (("",), "TARGET '': target must be a command of at least one word: ''"),
        (("python 'x",), "TARGET 'python \\'x': No closing quotation"),
        (("/no/such\x1b", "x"), "TARGET: the command '/no/such\\x1b' is not to be found"),
        (
            ("--header", "s3cr3t", URL),
            "--header must be 'Name: value'; what was given is not shown",
        ),
        (("--header", "a b: s3cr3t", URL), "--header must be 'Name: value'; what was given"),
        (("--header", "A: s3cr3t\n", "--header", "a: 1", URL), "--header a: this header was given"),
        (("--header", "A: s3cr3t\x1b", URL), "--header A: the value has characters that no header"),
        (("--header-env", "A: NO_SUCH", URL), "--header-env: the environment has no variable 'NO_"),
        (("--env", "PATH", URL), "--env is for a command; a URL has --header and --header-env"),
        (("--env", "NO_SUCH", "ls"), "--env: the environment has no variable 'NO_SUCH'"),
        (("--header", "A: s3cr3t", "ls"), "--header and --header-env are for a URL; a command has"),
        (("--revision", "2020", URL), "--revision '2020' is not one of 2026-07-28, 2025-11-25,"),
        (("--poll", "nan", URL), "--poll must be a number of seconds above 0, not nan"),
        (("--poll", "1", "--lazy", URL), "--poll lists by itself, --lazy only when asked: choose"),
        (("--for", "0", URL), "--for must be a number of seconds above 0, not 0.0"),
        (("--for", "inf", URL), "--for must be a number of seconds above 0, not inf"),
        (("--record", "/no/such/x", "ls"), "record file '/no/such/x': No such file or directory"),
        (("--record", "/dev/full", "ls"), "record file '/dev/full': No space left on device"),
    ],
)
def test_bad_input_gives_one_line(args: tuple[str, ...], line: str) -> None:
    told = refused(*args)
    assert told.startswith(line)
    assert told.isprintable()
    assert "s3cr3t" not in told


def test_a_full_disk_ends_it(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it has begun: the observer does not raise into the loop, the command says why."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("relist_conformance.recorder.Recorder.__call__", full)
    done = CliRunner().invoke(
        app, ["watch", "--record", str(tools.with_suffix(".trace")), "--", *server(tools)]
    )
    assert done.exit_code == 2
    assert done.stderr.endswith(".trace': No space left on device\n")
    assert done.stderr.count("\n") == 1


def test_help_says_what_is_in_a_trace() -> None:
    done = CliRunner().invoke(app, ["watch", "--help"], terminal_width=300)
    assert "It holds the lists as the server sent them" in " ".join(done.stdout.split())
