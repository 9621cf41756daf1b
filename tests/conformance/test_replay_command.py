"""``relist replay``: what happened, whether it holds, one clear line for whatever is no trace."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import relist
from relist.values import Wire
from relist_conformance import recorder
from relist_conformance.cli import app
from support.faults import forgotten_rewalk
from support.traced import QUICK, a_notice_during_a_walk, trace_of

RELIST = (sys.executable, "-m", "relist_conformance.cli")
TOLD = Path(__file__).with_name("replayed.txt")  # what is told before the verdict
AS_RECORDED = f"all 10 steps are as relist {relist.__version__} recorded them\n"
HOLDS = "holds: no promise is broken\n"


def lines() -> list[str]:
    return trace_of(QUICK, Wire.PIPE, a_notice_during_a_walk())


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "x.trace"
    path.write_text("".join(f"{line}\n" for line in lines()))
    return path


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["replay", *map(str, args)])


def test_a_trace_is_told_and_judged(trace: Path, request: pytest.FixtureRequest) -> None:
    command = (*RELIST, "replay", str(trace))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    if request.config.getoption("--rewrite"):
        TOLD.write_text(done.stdout.removesuffix(AS_RECORDED + HOLDS))
    assert done.stdout == TOLD.read_text() + AS_RECORDED + HOLDS


def test_a_fault_in_the_law_is_found(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten_rewalk(monkeypatch)
    done = run(trace)
    assert done.exit_code == 1
    assert (
        "step 6, NoticeHeard(channel=<Channel.TOOLS: 'tools'>, serial=1, now_ms=180)\n"
        "  broke doubt-is-heeded: tools: the open walk was not spoiled\n"
    ) in done.stdout
    assert "  broke notice-is-told: tools: a notice was forgotten\n" in done.stdout
    assert done.stdout.endswith("BROKEN: promises, 2 times\n")
    assert "differ from the recording" in done.stdout


def changed(path: Path, number: int, **changes: object) -> None:
    """Another line of that number."""
    told = path.read_text().splitlines()
    told[number - 1] = json.dumps({**json.loads(told[number - 1]), **changes})
    path.write_text("".join(f"{line}\n" for line in told))


def test_a_difference_from_the_recording_is_told(trace: Path) -> None:
    changed(trace, 2, effects=[{"OpenTransport": {"epoch": 1}}, {"Paint": {"it": "\x1b[1m"}}])
    done = run(trace)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == TOLD.read_text() + (
        f"1 of 10 steps differ from the recording by relist {relist.__version__}; the first:\n"
        "step 1, ConnectWanted(now_ms=0)\n"
        '  effect 2 was {"Paint":{"it":"\\\\u001b[1m"}}, now nothing\n'.replace("\\\\", "\\")
        + HOLDS
    )
    assert run("--strict", trace).exit_code == 1


def test_an_act_that_is_refused_is_a_difference(trace: Path) -> None:
    impossible = {"StalenessProved": {"kind": "tools", "generation": 9, "now_ms": 500}}
    changed(trace, 11, heard=impossible)
    done = run(trace)
    assert done.exit_code == 0
    assert "  the act is refused: StalenessProved.generation 9 was never published" in done.stdout


def test_a_cut_line_at_the_end_is_left_out(trace: Path) -> None:
    """As when the watcher was killed while it wrote."""
    whole = trace.read_bytes()
    trace.write_bytes(whole[:-200])
    done = run(trace)
    assert done.exit_code == 0
    assert "all 9 steps are as" in done.stdout
    assert done.stderr == "relist: the last line has no end and was left out\n"
    trace.write_bytes(whole[:-1])
    assert run(trace).stdout == TOLD.read_text() + AS_RECORDED + HOLDS


# --- what is no trace -----------------------------------------------------------------------------


def refused(path: Path) -> str:
    """The one line that is told of this file."""
    done = run(path)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert len(line) < 600
    assert line.isprintable()
    return line.removeprefix("relist: ").replace(f"trace file '{path}'", "trace")


DAMAGES = {
    "another class": (
        '{"heard":{"os.system":{"command":"id"}},"effects":[],"after":{}}',
        "trace, line 4: heard names 'os.system', which is not known",
    ),
    "a field too many": (
        '{"heard":{"TimePassed":{"now_ms":1,"__class__":"x"}},"effects":[],"after":{}}',
        "trace, line 4: heard.TimePassed has '__class__', which is no field of TimePassed",
    ),
    "wrong type": (
        '{"heard":{"TimePassed":{"now_ms":"1"}},"effects":[],"after":{}}',
        "trace, line 4: heard.TimePassed.now_ms must be an integer, not a text",
    ),
    "not finite": (
        '{"heard":{"TimePassed":{"now_ms":NaN}},"effects":[],"after":{}}',
        "trace, line 4: holds 'NaN', which is no integer",
    ),
    "twice the same name": (
        '{"heard":{"TimePassed":{"now_ms":1,"now_ms":2}},"effects":[],"after":{}}',
        "trace, line 4: names 'now_ms' twice",
    ),
    "cut": (lines()[3][:-20], "trace, line 4: is not JSON"),
    "empty": ("", "trace, line 4: is not JSON"),
    "deep": ("[" * 200_000, "trace, line 4: is nested too deeply"),
    "ten megabytes": ("\x1b[1m" * 2_500_000, "trace, line 4: is not JSON"),
    "a long name": (
        '{"heard":{"' + "\u202ex" * 5_000_000 + '":{}},"effects":[],"after":{}}',
        "trace, line 4: heard names '\\u202ex\\u202ex\\u202ex\\u202ex\\u202ex\\u20..., which is"
        " not known",
    ),
    "digits": ("9" * 5_000, "trace, line 4: is not JSON"),
    "bytes": ("\udcff", "trace, line 4: is not JSON"),
    "a header again": (
        lines()[0],
        "trace, line 4: must have 'heard', 'effects' and 'after', and nothing else",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_is_named(trace: Path, damage: str) -> None:
    line, complaint = DAMAGES[damage]
    told = lines()
    told[3] = line
    trace.write_text("".join(f"{line}\n" for line in told), errors="surrogateescape")
    assert refused(trace) == complaint


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "trace is empty"),
        ("\n", "trace, line 1: is not JSON"),
        (lines()[1] + "\n", "trace, line 1: header has 'heard', which is no field of Header"),
        (lines()[0][:-9], "trace, line 1: is not JSON"),
        (
            lines()[0].replace('"format":1', '"format":2'),
            "trace, line 1: is of trace format 2; this version reads 1",
        ),
        (
            lines()[0].replace('"gather_ms":50', '"gather_ms":-1'),
            "trace, line 1: header: policy.gather_ms must be an integer >= 0: -1",
        ),
    ],
)
def test_a_header_is_needed(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "x.trace"
    path.write_text(content)
    assert refused(path) == complaint


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert refused(tmp_path / "none") == "trace: No such file or directory"
    assert refused(tmp_path) == "trace: Is a directory"


def test_a_line_is_bounded(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "LINE_MAX", len(lines()[0]) + 1)
    trace.write_text(f"{lines()[0]}\n{' ' * 5_000}")
    done = run(trace)
    assert done.exit_code == 2
    assert done.stderr.endswith(f"line 2 is longer than {len(lines()[0]) + 1} bytes\n")
