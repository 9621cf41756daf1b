"""``relist explore``: what it prints, what it makes of a law that is wrong, and its exit codes."""

import io
import json
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from relist.check import collection
from relist.check.collection import DEFAULT, LARGER, Entry
from relist.check.explore import explore as everything
from relist.check.rows import declared_rows
from relist.check.setting import Setting
from relist.check.world import Scene, World
from relist.check.worlds import by_name
from relist.machine import LINK_TABLE
from relist_conformance.cli import app
from relist_conformance.errors import ConformanceError
from relist_conformance.explore import chosen, run_explore
from support import altered

README = Path(__file__).parents[2] / "README.md"
CHARTS = ("link over pipe", "link over http", "listen")
NOT_JUDGED = "Not judged: whether all that must happen somewhere does."


def explore(*args: str) -> Result:
    return CliRunner().invoke(app, ["explore", *args])


def rows(text: str) -> dict[str, list[str]]:
    """The table by world, without the seconds."""
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]
    return {row[0]: [*row[1:4], row[5]] for row in cells if row}


def refused(*args: str) -> str:
    """The one line that bad input gives, together with exit code 2."""
    done = explore(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line.removeprefix("relist: ")


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more world: there the first of two pages is published as the list."""
    step = altered.altered(altered.CUT_WALK_PUBLISHED)
    entry = Entry("faulty", "", lambda: World(Setting("faulty"), step, checks={}))
    monkeypatch.setattr(collection, "DEFAULT", (entry, *DEFAULT))


@pytest.fixture
def only_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are no worlds but those of the link chart, and its rows are all that must happen."""
    links = tuple(entry for entry in DEFAULT if entry.name.startswith("link"))
    monkeypatch.setattr(collection, "DEFAULT", links)
    monkeypatch.setattr(collection, "LARGER", ())
    monkeypatch.setattr(collection, "must_happen", lambda: declared_rows(LINK_TABLE))


def test_what_holds_is_counted_in_a_table() -> None:
    done = explore("--world", "link*", "--world", "listen")
    assert done.exit_code == 0
    reports = [everything(entry.make()) for entry in DEFAULT if entry.name in CHARTS]
    assert rows(done.stdout) == {
        report.world: [f"{report.scenes:,}", f"{report.moves:,}", str(report.depth), "holds"]
        for report in reports
    }
    assert done.stdout.endswith("\n3 holds\n")
    assert NOT_JUDGED in done.stdout
    told = ["1/3 holds link over pipe", "2/3 holds link over http", "3/3 holds listen"]
    assert done.stderr.splitlines()[:3] == told


def test_the_readme_shows_what_is_printed() -> None:
    example = re.compile(r"relist explore (.+)\n```\n\n```text\n(.+?)```", re.DOTALL)
    found = example.search(README.read_text())
    assert found is not None
    seconds = re.compile(r"\d\.\d")
    printed = explore(*found[1].replace('"', "").split()).stdout
    assert seconds.sub("", printed) == seconds.sub("", found[2])


SHOWN = """
faulty
  complete-or-nothing: a list that is not the whole of it
     1. client connects     initializing
     2. listing is granted  discovering, page 1 asked for
     3. server answers      discovering, page 1 asked for | wire: page of age 0
     4. answer arrives      fresh, list 0
"""


@pytest.mark.usefixtures("faulty")
def test_a_broken_promise_is_shown_as_what_happened(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    done = explore("--world", "faulty", "--world", "listen", "--json", str(file))
    assert done.exit_code == 1
    assert rows(done.stdout)["faulty"][-1] == "BROKEN"
    assert SHOWN in done.stdout
    assert done.stdout.endswith("\n1 holds, 1 BROKEN\n")
    document = json.loads(file.read_text())
    assert document["summary"] == {"holds": 1, "broken": 1, "unfinished": 0}
    assert document["never"] is None
    broken, holds = document["worlds"]
    assert holds["counterexample"] is None
    assert holds["scenes"] < holds["moves"]
    assert holds["depth"] > 1
    assert broken["counterexample"]["claim"] == SHOWN.splitlines()[2].strip()
    assert broken["counterexample"]["lines"][-1] == ["answer arrives", "fresh, list 0"]


class _Loud(World):
    """What it shows would colour a terminal."""

    def show(self, scene: Scene) -> str:
        return "\x1b[31m[bold]" + super().show(scene)

    def promise(self, scene: Scene) -> str | None:
        return "loud\x07" if scene.answer >= 0 else None


def test_a_counterexample_does_not_reach_the_terminal_as_it_is() -> None:
    file = io.StringIO()
    entry = Entry("loud", "", lambda: _Loud(by_name("one page")))
    console = Console(file=file, width=110, markup=False, highlight=False, emoji=False)
    assert run_explore((entry,), console, Console(file=io.StringIO())) == 1
    assert "loud\\x07" in file.getvalue()
    assert "  \\x1b[31m[bold]initializing" in file.getvalue()
    assert not {"\x1b", "\x07"} & set(file.getvalue())


@pytest.mark.usefixtures("only_links")
def test_a_law_in_which_all_happens() -> None:
    done = explore()
    assert done.exit_code == 0
    count = len(declared_rows(LINK_TABLE))
    assert f"All that must happen somewhere does: {count} rows, " in done.stdout
    assert NOT_JUDGED not in done.stdout


@pytest.mark.usefixtures("only_links")
def test_what_never_happens_is_complained_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(collection, "must_happen", lambda: {"live", "stale", "doubt failed"})
    file = tmp_path / "result.json"
    done = explore("--json", str(file))
    assert done.exit_code == 1
    heading = "Never happened, though it must in some world:"
    assert f"\n{heading}\n  doubt failed\n  stale\n2 holds\n" in done.stdout
    assert json.loads(file.read_text())["never"] == ["doubt failed", "stale"]


@pytest.mark.usefixtures("only_links")
def test_a_world_that_is_given_up_has_no_verdict() -> None:
    done = explore("--scenes-max", "500")
    assert done.exit_code == 3
    assert rows(done.stdout)["link over pipe"][-1] == "holds"
    assert rows(done.stdout)["link over http"][-1] == "unfinished"
    assert done.stdout.endswith("\n1 holds, 1 unfinished\n")
    assert NOT_JUDGED in done.stdout


@pytest.mark.usefixtures("faulty")
def test_a_broken_promise_counts_more_than_a_world_given_up() -> None:
    done = explore("--world", "faulty", "--world", "listen", "--scenes-max", "75")
    assert done.stdout.endswith("\n1 BROKEN, 1 unfinished\n")
    assert done.exit_code == 1


def test_bad_input_is_one_line() -> None:
    said = refused("--world", "listen", "--world", "x[\n")
    assert said.startswith("no world matches 'x[\\n'; there are: ordered atomic lossless; ")
    assert said.endswith(f"; {DEFAULT[-1].name}")
    assert refused("--json", "/no/such/folder/x.json").startswith("JSON file '/no/such/folder/x.")


def test_larger_worlds_are_explored_only_on_demand() -> None:
    assert chosen((), larger=False) == DEFAULT
    assert chosen((), larger=True) == (*DEFAULT, *LARGER)
    with pytest.raises(ConformanceError, match="no world matches"):
        chosen((LARGER[0].name,), larger=False)


def test_a_list_explores_nothing() -> None:
    done = explore("--list")
    assert (done.exit_code, done.stderr) == (0, "")
    cells = [line.split("│") for line in done.stdout.splitlines() if line.startswith("│")]
    when = {row[1].strip(): row[3].strip() for row in cells}
    expected = dict.fromkeys((entry.name for entry in DEFAULT), "by default")
    assert when == expected | dict.fromkeys((entry.name for entry in LARGER), "with --larger")
    assert len(explore("--list", "--world", "listen").stdout.splitlines()) == 5


def test_a_terminal_shows_how_far_it_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relist.check.explore.PROGRESS_EVERY", 1_000)
    out, err = io.StringIO(), io.StringIO()
    terminal = Console(file=err, width=110, force_terminal=True)
    assert run_explore(chosen(("one page",), larger=False), Console(file=out), terminal) == 0
    line = r"0/1 one page: ([\d,]+) scenes, ([\d,]+) pending, [\d,]+/s"
    told = re.search(line, err.getvalue())
    assert told is not None
    scenes, pending = (int(number.replace(",", "")) for number in told.groups())
    assert scenes - pending == 1_000
    assert "pending" not in out.getvalue()


def test_ctrl_c_ends_it() -> None:
    """After the first world; the others take seconds."""
    command = (sys.executable, "-m", "relist_conformance.cli", "explore")
    with subprocess.Popen(
        (*command, "--world", "listen", "--world", "session, legacy*"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background of a shell inherits SIGINT as ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as running:
        assert running.stdout
        assert running.stderr
        assert running.stderr.readline() == "1/3 holds listen\n"
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
        assert running.stderr.read().endswith("relist: interrupted\n")
        assert running.stdout.read() == ""
