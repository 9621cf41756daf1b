"""``relist pin`` to ``relist verify``: the real commands on real server processes."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from attrs import frozen
from typer.testing import CliRunner

import support.offering
import support.raw_server
import support.sdk
from relist_conformance.cli import app
from relist_conformance.drift.keeping import default_store

rule = pytest.mark.rule
OFFERING = str(Path(support.offering.__file__))
SDK = str(Path(support.sdk.__file__))
RAW = str(Path(support.raw_server.__file__))
GOLDEN = Path(__file__).parent

SEARCH = {
    "name": "search",
    "description": "Finds text.",
    "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
}
WRITE = {"name": "write", "description": "Writes.", "inputSchema": {"type": "object"}}
NOTES = {"uri": "file:///notes", "name": "Notes"}
WIDER = {**SEARCH, "inputSchema": {"type": "object", "properties": {"q": {}}}}


class Done(NamedTuple):
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


@frozen
class Desk:
    """A folder with a store, a lock file and a server, and somebody who types commands there."""

    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / "relist.db"

    @property
    def lock(self) -> Path:
        return self.folder / "relist.lock"

    @property
    def server(self) -> tuple[str, ...]:
        return "--", sys.executable, OFFERING, "offered.json"

    @property
    def raw(self) -> tuple[str, ...]:
        return "--", sys.executable, RAW, "tools.json"

    def offer(self, *tools: Any, **others: Any) -> None:
        (self.folder / "offered.json").write_text(json.dumps({"tools": tools, **others}))

    def run(self, *args: str, typed: str = "", store: str = "relist.db") -> Done:
        """Type a command, and what it asks for."""
        result = CliRunner().invoke(app, args, input=typed, env={"RELIST_STORE": store})
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        return Done(result.exit_code, result.stdout, result.stderr)

    def really(self, *args: str, typed: str = "") -> Done:
        """The same as a process of its own."""
        paths = [str(Path(__file__).parents[2] / part) for part in ("model", "adapters", "specs")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RELIST_STORE": "relist.db"}
        done = subprocess.run(
            (sys.executable, "-m", "relist_conformance.cli", *args),
            input=typed,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def done(self, code: int, *args: str, typed: str = "", store: str = "relist.db") -> str:
        """What a command that ends like this prints."""
        done = self.run(*args, typed=typed, store=store)
        assert done.returncode == code, done
        return done.stdout

    def told(self, code: int, *args: str) -> Any:
        """The one JSON value that it prints."""
        return json.loads(self.done(code, *args, "--json"))

    def pinned(self, *args: str) -> None:
        self.done(0, "pin", "--yes", "--id", "home", "--who", "ann", *args, *self.server)

    def shown(self) -> dict[str, str]:
        """What the consumer sees: ids by key."""
        told = json.loads(self.run("status", "--json").stdout)
        (consumer,) = told["consumers"]
        return {item["key"]: item["id"] for item in consumer["items"] if item["shown"]}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    found = Desk(tmp_path)
    found.offer(SEARCH, WRITE, resources=[NOTES])
    return found


def steady(text: str) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "TIME", text)
    return re.sub(r"endpoint '[^']*'", "endpoint 'COMMAND'", text)


def refused(done: Done) -> str:
    assert done.returncode == 2, done
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("relist: ")
    return line.removeprefix("relist: ")


# --- pin ------------------------------------------------------------------------------------------


@rule("DRIFT-29")
def test_pin_shows_everything_and_needs_a_yes(desk: Desk) -> None:
    for typed, run in (("", desk.really), ("n\n", desk.run), ("what?\n", desk.run)):
        done = run("pin", "--id", "home", *desk.server, typed=typed)
        assert done.returncode == 1
        assert "approve 3 for 'default'? [y/N]" in done.stderr
        assert "declined, nothing was kept" in done.stderr
        assert not desk.store.exists()
    done = desk.really("pin", "--id", "home", *desk.server, typed="y\n")
    assert done.returncode == 0
    assert steady(done.stdout) == (GOLDEN / "pinned.txt").read_text()
    assert set(desk.shown()) == {"search", "write", "file:///notes"}


@rule("DRIFT-37")
def test_exact_items_by_globs(desk: Desk) -> None:
    desk.pinned("--only", "tool/s*")
    assert set(desk.shown()) == {"search"}
    desk.offer(SEARCH, WRITE, {**WRITE, "name": "sudo"}, resources=[NOTES])
    assert "0 to review" in desk.done(0, "status", *desk.server)
    desk.pinned("--only", "write")  # added to what was chosen before
    assert set(desk.shown()) == {"search", "write"}


@rule("DRIFT-38")
@rule("DRIFT-39")
def test_a_whole_server_has_candidates(desk: Desk) -> None:
    desk.pinned("--whole-server", "--join")
    more = {"uri": "file:///more", "name": "More"}
    desk.offer(SEARCH, WRITE, {**WRITE, "name": "sudo"}, resources=[NOTES, more])
    desk.done(1, "status", *desk.server)
    assert set(desk.shown()) == {"search", "write", "file:///notes", "file:///more"}
    (open_,) = map(json.loads, desk.done(1, "review", "--json").splitlines())
    assert (open_["key"], open_["why"]) == ("sudo", "new, and not reviewed")


def test_a_url_with_what_may_be_secret_is_not_kept(desk: Desk) -> None:
    said = refused(desk.run("pin", "https://home.test/mcp?token=secret1"))
    assert "--endpoint" in said
    assert "secret1" not in said


def test_the_default_store_is_in_the_users_own_folder(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not where one stands: a folder from elsewhere would bring its approvals along."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(desk.folder / "data"))
    assert default_store() == desk.folder / "data" / "relist" / "relist.db"
    desk.done(0, "pin", "--yes", *desk.server, store="")
    assert default_store().exists()
    assert default_store().parent.stat().st_mode & 0o077 == 0


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_a_server_behind_http(desk: Desk) -> None:
    """Its endpoint is its evidence, and names it until somebody gives it a name."""
    (desk.folder / "names.json").write_text('["a", "b"]')
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"
    command = [sys.executable, SDK, "http", "names.json", str(port)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as server:
        try:
            while not answers(port):
                assert server.poll() is None
            desk.done(0, "pin", "--yes", url)
            desk.done(0, "lock")
            assert desk.done(0, "verify", url) == "2 as locked, 0 otherwise\n"
            (desk.folder / "names.json").write_text('["a"]')
            assert "tool 'b' of " in desk.done(1, "verify", url)
        finally:
            server.kill()
    desk.done(3, "verify", url)
    (told,) = desk.told(0, "status")["servers"]
    assert told["confirmed"] == {"id": url, "endpoint": url}


# --- from a change to a decision ------------------------------------------------------------------


@rule("DRIFT-21")
@rule("DRIFT-22")
def test_a_change_is_withheld_until_its_id_is_approved(desk: Desk) -> None:
    desk.pinned()
    before = desk.shown()
    desk.offer(WIDER, WRITE, resources=[NOTES])
    assert "withheld" in desk.done(1, "status", *desk.server)
    assert set(desk.shown()) == {"write", "file:///notes"}
    open_ = desk.told(1, "review")
    assert (open_["why"], open_["approved"]) == ("changed, and not reviewed", before["search"])
    (field,) = open_["fields"]
    assert (field["name"], field["classes"]) == ("inputSchema", ["input widened"])
    assert open_["concerns"] == ["default"]
    assert open_["source"]["id"] == "home"

    said = refused(desk.run("approve", "--yes", "search"))
    assert "with --yes, name what is approved by its id" in said
    desk.done(0, "approve", "--yes", "--who", "bob", "--why", "read it", open_["id"])
    assert desk.shown()["search"] == open_["id"] != before["search"]
    last = desk.done(0, "audit", "--key", "search", "--json").splitlines()[-1]
    entry = json.loads(last)
    assert (entry["what"], entry["who"], entry["why"]) == ("approved", "bob", "read it")
    assert (entry["before"], entry["after"]) == (before["search"], open_["id"])
    # The same again is quiet, and so is what is approved by an id that is not there any more.
    assert "0 to review" in desk.done(0, "status", *desk.server)
    assert "nothing that is there" in refused(desk.run("approve", "--yes", before["search"]))


def test_approving_by_name_shows_it_and_asks(desk: Desk) -> None:
    desk.pinned()
    desk.offer(WIDER, WRITE, resources=[NOTES])
    desk.done(1, "status", *desk.server)
    assert "input widened" in desk.done(1, "approve", "search", typed="n\n")
    assert "search" not in desk.shown()
    assert "approved 1" in desk.done(0, "approve", "tool/search", typed="yes\n")
    assert "search" in desk.shown()


def test_what_is_rejected_stays_away_until_it_is_approved(desk: Desk) -> None:
    desk.pinned()
    id = desk.shown()["search"]
    desk.done(1, "reject", "search", typed="\n")
    assert "search" in desk.shown()
    desk.done(0, "reject", "--yes", "search")
    assert "search" not in desk.shown()
    assert "0 to review" in desk.done(0, "status", *desk.server)  # it is decided
    desk.pinned()  # which does not take it back
    assert "search" not in desk.shown()
    desk.done(0, "approve", "--yes", id)
    assert desk.shown()["search"] == id


# --- review ---------------------------------------------------------------------------------------


@rule("DRIFT-29")
def test_review_on_a_pipe(desk: Desk) -> None:
    desk.pinned()
    desk.offer(WIDER, {**WRITE, "description": "Overwrites."}, resources=[])
    done = desk.really("review", *desk.server, typed="x\ns\nA\nr\n")
    assert done.returncode == 1  # what is gone was skipped
    assert steady(done.stdout) == (GOLDEN / "reviewed.txt").read_text()
    assert set(desk.shown()) == {"search"}
    whats = [json.loads(line)["what"] for line in desk.done(0, "audit", "--json").splitlines()]
    assert whats[-2:] == ["approved", "rejected"]
    assert "1 left to review" in desk.done(1, "review", typed="q\n")
    assert "1 left to review" in desk.done(1, "review", typed="")


@rule("DRIFT-09")
@rule("DRIFT-30")
def test_a_new_name_is_only_proposed(desk: Desk) -> None:
    desk.pinned()
    desk.offer(SEARCH, {**WRITE, "name": "wr\u0456te"}, resources=[NOTES])
    out = desk.done(1, "status", *desk.server)
    assert "tool 'write' of 'home': gone" in out
    named = "'wr\u0456te' (not only ASCII: U+0456 CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I)"
    asked = desk.done(0, "review", typed="1\n")
    assert f"candidate 1: tool {named}" in asked
    assert set(desk.shown()) == {"search", "wr\u0456te", "file:///notes"}


@rule("DRIFT-31")
def test_rebind_without_a_dialogue(desk: Desk) -> None:
    desk.pinned()
    desk.offer(SEARCH, {**WRITE, "name": "put"}, resources=[NOTES])
    desk.done(1, "status", *desk.server)
    assert "by its id" in refused(desk.run("rebind", "--yes", "write", "put"))
    desk.done(1, "rebind", "write", "put", typed="n\n")
    id = re.search(r"definition  (\w+)", desk.done(0, "rebind", "write", "put", typed="y\n"))
    assert id is not None
    assert desk.shown()["put"].startswith(f"relist1:{id[1]}")
    assert "named 0 times" in refused(desk.run("rebind", "write", "put"))
    assert "rebound" in desk.done(0, "audit", "--key", "write")


@rule("DRIFT-11")
@rule("DRIFT-13")
def test_a_server_whose_evidence_changes_is_withheld_until_it_is_confirmed(desk: Desk) -> None:
    desk.pinned()
    moved = ("--id", "home", "--endpoint", "elsewhere", *desk.server)
    assert "IDENTITY IN DOUBT" in desk.done(1, "status", *moved)
    assert desk.shown() == {}
    desk.done(1, "pin", "--yes", *moved)
    assert desk.shown() == {}
    item = desk.told(1, "status")["consumers"][0]["items"][0]
    done = desk.run("approve", "--yes", item["id"])
    assert done.returncode == 2
    assert "first confirm the server" in done.stderr
    out = desk.done(1, "confirm", "home", typed="n\n")
    assert "+ 'elsewhere'" in out
    assert "0 left to review" in desk.done(0, "review", typed="a\n")
    assert len(desk.shown()) == 3
    assert "not in doubt" in desk.done(0, "confirm", "home")


# --- the lock file --------------------------------------------------------------------------------


def test_verify_says_what_has_drifted(desk: Desk) -> None:
    desk.pinned()
    desk.done(0, "lock")
    content = desk.lock.read_bytes()
    desk.done(0, "lock", "again.lock")
    assert (desk.folder / "again.lock").read_bytes() == content
    assert desk.done(0, "verify", *desk.server) == "3 as locked, 0 otherwise\n"
    desk.offer(WIDER, resources=[NOTES, {"uri": "file:///new", "name": "not selected"}])
    done = desk.really("verify", "--sarif", "drift.sarif", *desk.server)
    assert done.returncode == 1
    assert "tool 'search' of 'home': changed, and not reviewed" in done.stdout
    assert "tool 'write' of 'home': gone" in done.stdout
    assert done.stdout.endswith("1 as locked, 2 otherwise\n")
    log = json.loads((desk.folder / "drift.sarif").read_text())
    check_sarif(log)
    (run,) = log["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["changed", "gone"]
    (place,) = run["results"][0]["locations"]
    line = place["physicalLocation"]["region"]["startLine"]
    assert desk.lock.read_text().splitlines()[line - 1].strip() == '"key": "search",'
    told = desk.done(1, "verify", "--json", *desk.server).splitlines()
    assert [json.loads(one)["why"] for one in told] == ["changed, and not reviewed", "gone"]


def check_sarif(log: dict[str, Any]) -> None:
    """What SARIF 2.1.0 requires of these objects."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        assert driver["name"] == "relist verify"
        ids = [entry["id"] for entry in driver["rules"]]
        assert len(set(ids)) == len(ids)
        assert all(entry["shortDescription"]["text"] for entry in driver["rules"])
        for invocation in run["invocations"]:
            assert isinstance(invocation["executionSuccessful"], bool)
            for note in invocation["toolExecutionNotifications"]:
                assert note["message"]["text"]
        for result in run["results"]:
            assert result["message"]["text"]
            assert result["level"] in ("none", "note", "warning", "error")
            assert ids[result["ruleIndex"]] == result["ruleId"]
            for location in result["locations"]:
                physical = location["physicalLocation"]
                assert physical["artifactLocation"]["uri"] == "relist.lock"
                assert physical["region"]["startLine"] >= 1
            assert all(isinstance(one, str) for one in result["partialFingerprints"].values())


@rule("DRIFT-32")
@rule("DRIFT-33")
def test_what_cannot_be_seen_completely_is_no_drift(desk: Desk) -> None:
    desk.pinned()
    desk.done(0, "lock")
    desk.offer(SEARCH, WRITE)  # the kind is not offered at all any more
    done = desk.run("verify", "--sarif", "drift.sarif", *desk.server)
    assert done.returncode == 3
    assert "resources not observed: the server does not offer them now" in done.stderr
    log = json.loads((desk.folder / "drift.sarif").read_text())
    check_sarif(log)
    assert log["runs"][0]["invocations"][0]["executionSuccessful"] is False
    desk.done(3, "status", *desk.server)
    desk.offer(exit=3, log="\x1b[31mno\u202esuch database")
    done = desk.run("verify", "--timeout", "20", *desk.server)
    assert done.returncode == 3
    last = r"no connection; the last line on its stderr: '\x1b[31mno\u202esuch database'"
    assert last in done.stderr
    before = desk.shown()
    desk.done(3, "pin", "--yes", *desk.server)
    assert desk.shown() == before
    assert len(before) == 3
    assert desk.told(0, "status")["failing"]


def test_a_lock_is_imported_only_as_far_as_the_server_is_like_it(desk: Desk) -> None:
    desk.pinned("--only", "*")
    desk.done(0, "lock")
    desk.offer(WIDER, WRITE, {**WRITE, "name": "new"}, resources=[NOTES])
    given = ("pin", "--yes", "--lock", "relist.lock", "--id", "home", *desk.server)
    out = desk.done(1, *given, store="other.db")
    assert "approved 2, 1 left to review" in out
    desk.offer(SEARCH, WRITE, resources=[NOTES])
    assert "approved 1, 0 left to review" in desk.done(0, *given, store="other.db")
    desk.done(0, "lock", "other.lock", store="other.db")
    assert (desk.folder / "other.lock").read_bytes() == desk.lock.read_bytes()
    elsewhere = [*given[:-4], "--endpoint", "elsewhere", *desk.server]
    assert "is another" in refused(desk.run(*elsewhere, store="third.db"))


def test_verify_with_a_lock_that_cannot_be_relied_on(desk: Desk) -> None:
    said = refused(desk.run("verify", *desk.server))
    assert said == "lock file 'relist.lock': No such file or directory"
    desk.pinned()
    desk.done(0, "lock")
    desk.lock.write_text(desk.lock.read_text().replace("Finds text.", "Finds texts."))
    said = refused(desk.run("verify", *desk.server))
    assert said.startswith("lock file 'relist.lock': /consumers/0/approved/1: home/tool/search")
    desk.done(0, "lock")
    said = refused(desk.run("verify", "--id", "away", *desk.server))
    assert said == "no server is known as 'away': say with --id which it is, of 'home'"
    said = refused(desk.run("verify", "--sarif", "no/such/x.sarif", *desk.server))
    assert "No such file or directory" in said


# --- what fails closed ----------------------------------------------------------------------------


def cut(store: Path) -> None:
    store.write_bytes(store.read_bytes()[:5000])


def altered(store: Path) -> None:
    with sqlite3.connect(store) as db:
        db.execute("UPDATE parts SET value = x'7b7d' WHERE number = 1")


def newer(store: Path) -> None:
    with sqlite3.connect(store) as db:
        db.execute("PRAGMA user_version = 999")


def emptied(store: Path) -> None:
    store.write_bytes(b"")


ALL = [
    ("pin", "--yes", "SERVER"),
    ("pin", "SERVER"),
    ("status",),
    ("status", "--json"),
    ("status", "SERVER"),
    ("review",),
    ("review", "--json"),
    ("approve", "search"),
    ("reject", "--yes", "search"),
    ("rebind", "write", "search"),
    ("confirm", "home"),
    ("audit",),
    ("lock", "new.lock"),
]


def test_every_command_fails_closed_on_a_damaged_store(desk: Desk) -> None:
    desk.pinned()
    whole = desk.store.read_bytes()
    damages: list[Callable[[Path], None]] = [cut, altered, newer, emptied]
    for number, command in enumerate(ALL):
        for left in desk.folder.glob("relist.db*"):
            left.unlink()
        desk.store.write_bytes(whole)
        damages[number % len(damages)](desk.store)
        args = [one for word in command for one in (desk.server if word == "SERVER" else (word,))]
        said = refused(desk.run(*args, typed="y\n"))
        assert said.startswith("store relist.db: "), command
    assert refused(desk.really("status")).startswith("store relist.db: ")
    assert not (desk.folder / "new.lock").exists()


@pytest.mark.parametrize("command", ALL[2:])
def test_without_a_store_nothing_is_known(command: tuple[str, ...], tmp_path: Path) -> None:
    store = str(tmp_path / "none.db")
    args = [word for word in command if word != "SERVER"]
    result = CliRunner().invoke(app, args, env={"RELIST_STORE": store})
    assert result.exit_code == 2
    assert result.stderr == f"relist: there is no store '{store}': see 'relist pin'\n"
    assert not Path(store).exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("pin", "--join", "x"), "--join is for --whole-server"),
        (("pin", "--whole-server", "--only", "a", "x"), "--only names items, --whole-server all"),
        (("pin", "--rule", "permit", "x"), "--rule 'permit' is not one of allow, ask, deny"),
        (("pin", "--risk", "x", "x"), "--risk 'x' is not one of read only, side effects"),
        (("pin", "--lock", "no.lock", "x"), "lock file 'no.lock': No such file or directory"),
        (("pin", "/no/such/server"), "TARGET: the command '/no/such/server' is not to be found"),
        (("pin", "--env", "NO_SUCH_1", sys.executable), "--env: the environment has no variable"),
        (("pin", "--header", "a: b", sys.executable), "--header and --header-env are for a URL"),
    ],
)
def test_bad_options_are_one_line(args: tuple[str, ...], said: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, args, env={"RELIST_STORE": str(tmp_path / "none.db")})
    assert result.exit_code == 2
    assert result.stderr.startswith(f"relist: {said}")
    assert result.stderr.count("\n") == 1


# --- a hostile server -----------------------------------------------------------------------------

HUGE = "a" * 900_000
HOSTILE = [
    {"name": "pay\u202elap", "description": "\x1b]0;title\x07\x1b[2J", "inputSchema": {}},
    {"name": "p\u0430ypal", "description": "[bold]:smile:\u2028", "inputSchema": {}},
    {"name": "paypal", "description": f"{HUGE}b{HUGE}", "inputSchema": {}},
    {"name": "\ud800", "description": "\u0000", "inputSchema": {"type": "object"}},
]


def test_a_hostile_server_is_shown_safely_and_bounded(desk: Desk) -> None:
    tools = desk.folder / "tools.json"
    tools.write_text(json.dumps(HOSTILE[:3]))
    done = desk.really("pin", "--id", "home", *desk.raw, typed="y\n")
    assert done.returncode == 0, done
    check_safe(done)
    assert r"tool 'pay\u202elap' (not only ASCII: U+202E RIGHT-TO-LEFT OVERRIDE)" in done.stdout
    assert "tool 'p\u0430ypal' (not only ASCII: U+0430 CYRILLIC SMALL LETTER A)" in done.stdout
    assert r"+ \x1b]0;title\x07\x1b[2J" in done.stdout
    assert "(1800001 characters, sha256 " in done.stdout
    # One letter in the middle of it: hashed whole, found, and shown where it stands.
    tools.write_text(json.dumps([*HOSTILE[:2], {**HOSTILE[2], "description": f"{HUGE}c{HUGE}"}]))
    done = desk.run("review", *desk.raw, typed="s\n")
    assert done.returncode == 1
    check_safe(done)
    assert re.search(r"- …a{60}ba+…", done.stdout)
    assert re.search(r"\+ …a{60}ca+…", done.stdout)
    desk.done(0, "lock")
    assert desk.lock.read_text().isprintable() is False  # it has lines, and nothing else unseen
    assert all(line.isprintable() for line in desk.lock.read_text().split("\n"))


NESTED = '[{{"name":"deep","inputSchema":{}1{}}}]'


@pytest.mark.parametrize(
    "tools", [json.dumps(HOSTILE[3:]), NESTED.format('{"x":' * 10_000, "}" * 10_000)]
)
def test_what_cannot_be_read_is_not_observed(desk: Desk, tools: str) -> None:
    """Half a character, and JSON that is deeper than what anybody parses."""
    (desk.folder / "tools.json").write_text(tools)
    done = desk.run("pin", "--yes", "--timeout", "2", "--id", "home", *desk.raw)
    check_safe(done)
    assert done.returncode == 3
    assert "tools not observed: no answer within 2 s" in done.stderr
    assert "nothing was approved" in done.stderr
    assert not desk.store.exists()


def test_what_is_too_deep_to_compare_is_shown_as_text_and_asked_about(desk: Desk) -> None:
    (desk.folder / "tools.json").write_text(NESTED.format('{"x":' * 150, "}" * 150))
    done = desk.run("pin", "--id", "home", *desk.raw, typed="n\n")
    check_safe(done)
    assert done.returncode == 1
    assert "  (its text): other\n    + " in done.stdout
    desk.done(0, "pin", "--yes", "--id", "home", *desk.raw)
    desk.done(0, "lock")
    assert desk.done(0, "verify", *desk.raw) == "1 as locked, 0 otherwise\n"
    (desk.folder / "tools.json").write_text(NESTED.format('{"x":' * 151, "}" * 151))
    assert "(its text): other" in desk.done(1, "verify", *desk.raw)


def check_safe(done: Done) -> None:
    text = done.stdout + done.stderr
    assert len(text) < 20_000
    assert all(line.isprintable() for line in text.split("\n"))
