"""The store: what was told is kept, whole or not at all, and damage is never read over."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import support.storing
from properties.test_drift_machine import FAILURES, INVENTORIES, REBINDS, SETTINGS, rebound
from relist.drift import inputs as i
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import Ledger, Record
from relist.drift.receive import receive
from relist.drift.values import (
    CapabilityRef,
    ChangeClass,
    Chosen,
    ExactSelection,
    FollowPolicy,
    Newcomers,
    Profile,
    Rule,
    ServerIdentity,
    ServerSelection,
    Subject,
)
from relist.errors import ImpossibleAct
from relist.policy import Risk
from relist_mcp.drift.definitions import definition_of
from relist_mcp.drift.schemas import relate
from relist_mcp.drift.store import APPLICATION_ID, FORMAT, Store, StoreError
from support.drift import decisions, definition, exactly, inventory, ref
from support.storing import KEYS, SHOWN, replayed, told

rule = pytest.mark.rule
FOLDER_OF_THIS_TEST = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
SCRIPT = str(Path(support.storing.__file__))
A = ref("a")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "relist.db"


def opened(path: Path) -> Ledger:
    """The ledger as somebody reads it who opens the file now."""
    with Store(path, create=False) as store:
        return store.ledger


def begin(path: Path) -> Ledger:
    """A store in which one tool is approved."""
    with Store(path) as store:
        store.tell(i.ProfileSet(exactly("agent", A), "me", "", 1))
        store.tell(inventory({"a": "1"}, at_ms=2))
        store.tell(i.Approved("agent", {A: definition("a").id}, "me", "read it", 3))
        return store.ledger


# --- what is kept ---------------------------------------------------------------------------------


@rule("DRIFT-31")
def test_the_history_says_when_who_and_why_and_holds_the_definitions(path: Path) -> None:
    ledger = begin(path)
    with Store(path) as store:
        assert store.ledger == ledger
        *_, last = store.entries()
        assert (last.entry.at_ms, last.entry.who, last.entry.why) == (3, "me", "read it")
        assert last == Record(last.entry, definition("a"))
        assert [record.entry.number for record in store.entries(after=1)] == [2, 3]
        assert [record.entry.what for record in store.entries()] == [
            "profile set",
            "appeared",
            "approved",
        ]


def test_equal_observations_write_nothing(path: Path) -> None:
    begin(path)
    with Store(path) as store:
        before = store.ledger
        store.tell(inventory({"a": "1"}, at_ms=99))
        assert store.ledger == before
        with sqlite3.connect(path) as db:
            assert db.execute("SELECT count(*) FROM entries").fetchone() == (3,)


def walk(data: st.DataObject, ledger: Ledger) -> Iterator[LedgerInput]:
    """What may be told to this ledger next, at random."""
    possible: list[LedgerInput] = [data.draw(INVENTORIES), data.draw(SETTINGS), data.draw(FAILURES)]
    decided = list(decisions(ledger))
    if decided:
        possible.append(data.draw(st.sampled_from(decided)))
    if (moved := rebound(ledger, *data.draw(REBINDS))) is not None:
        possible.append(moved)
    yield data.draw(st.sampled_from(possible))


@given(data=st.data())
@settings(parent=FOLDER_OF_THIS_TEST, max_examples=25)
def test_any_ledger_is_read_as_it_was_written_and_goes_on_alike(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("any") / "relist.db"
    ledger = Ledger()
    store = Store(path)
    for at_ms in range(data.draw(st.integers(3, 15))):
        for heard in walk(data, ledger):
            with suppress(ImpossibleAct):
                step = receive(ledger, evolve(heard, at_ms=at_ms), relate)
                assert store.tell(evolve(heard, at_ms=at_ms)) == step  # in the same order, too
                ledger = step.state
        if data.draw(st.booleans()):
            store.close()
            store = Store(path)
            assert store.ledger == ledger
    store.close()
    assert opened(path) == ledger


ODD = st.text(st.characters(), max_size=6) | st.sampled_from(
    ["\x00", "\ud800", "\ud83d\ude00", "😀", "\u202e", "ключ", "a\x1b[31m"]
)
REFS = st.builds(CapabilityRef, ODD, st.sampled_from(Subject), ODD)
CHOSEN = st.builds(Chosen, st.sampled_from(Rule), st.sampled_from(Risk))
ITEMS = st.dictionaries(REFS, CHOSEN, max_size=3)
FOLLOWED = st.sampled_from([ChangeClass.TEXT, ChangeClass.META, ChangeClass.INPUT_WIDENED])
PROFILES = st.builds(
    Profile,
    ODD.filter(bool),
    st.tuples(st.builds(ExactSelection, ITEMS))
    | st.builds(
        lambda *given: (ServerSelection(*given),),
        ODD,
        st.sampled_from(Rule),
        st.sampled_from(Newcomers),
        st.booleans(),
        st.just({}),
        st.frozensets(st.sampled_from(Subject)),
    ),
    st.builds(
        FollowPolicy,
        st.dictionaries(st.sampled_from(Risk), st.frozensets(FOLLOWED)),
        st.frozensets(st.sampled_from(Risk)),
    ),
)


@given(
    PROFILES,
    st.lists(st.tuples(ODD, ODD | st.integers() | st.booleans()), max_size=3),
    st.builds(ServerIdentity, ODD, st.none() | ODD, st.none() | ODD, st.none() | ODD),
    st.binary(max_size=6),
    ODD,
)
@settings(parent=FOLDER_OF_THIS_TEST, max_examples=30)
def test_any_text_is_kept(
    tmp_path_factory: pytest.TempPathFactory,
    profile: Profile,
    listed: list[tuple[str, object]],
    server: ServerIdentity,
    opaque: bytes,
    said: str,
) -> None:
    """Lone surrogates, NUL, pairs of surrogates that are no character, bytes that are no text."""
    path = tmp_path_factory.mktemp("odd") / "relist.db"
    made = {
        key: definition_of(
            CapabilityRef(server.id, Subject.TOOL, key), json.dumps({"name": key, "x": x}).encode()
        )
        for key, x in listed
    }
    strange = definition_of(CapabilityRef(server.id, Subject.TOOL, "?"), b"[" + opaque)
    taken = i.InventoryTaken(
        server, Subject.TOOL, {**made, "?": strange}, frozenset(), True, said, 2
    )
    with Store(path) as store:
        store.tell(i.ProfileSet(profile, said, said, 1))
        store.tell(taken)
        kept = store.ledger
        history = list(store.entries())
    with Store(path) as store:
        assert store.ledger == kept
        assert store.ledger.seen[server.id, Subject.TOOL]["?"].definition == strange
        assert store.ledger.profiles == {profile.consumer: profile}
        assert list(store.entries()) == history


def test_an_act_that_cannot_be_changes_nothing(path: Path) -> None:
    ledger = begin(path)
    with Store(path) as store:
        with pytest.raises(ImpossibleAct):
            store.tell(i.Approved("agent", {A: definition("a", "2").id}, "me", "", 4))
        assert store.ledger == ledger
    assert opened(path) == ledger


def test_what_a_server_changes_without_effect_adds_no_definition(path: Path) -> None:
    """Else a server with a time stamp in its ``_meta`` would fill the disk."""
    with Store(path) as store:
        for number in range(5):
            entry = {"name": "a", "_meta": {"at": number}}
            made = definition_of(A, json.dumps(entry).encode())
            store.tell(evolve(inventory({}), definitions={"a": made}, at_ms=number))
            version = store.ledger.version(A)
            assert version is not None
            assert version.definition == made
        assert store.ledger.entries == 1
        with sqlite3.connect(path) as db:
            assert db.execute("SELECT count(*) FROM definitions").fetchone() == (1,)


@rule("DRIFT-43")
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE entries SET line = x'7b7d' WHERE number = 2",
        "DELETE FROM entries WHERE number = 3",
        "INSERT OR REPLACE INTO entries VALUES (2, x'7b7d', '')",
        "INSERT INTO entries VALUES (9, x'7b7d', '')",
        "UPDATE definitions SET content = ''",
        "DELETE FROM definitions",
    ],
)
def test_the_history_only_grows(path: Path, sql: str) -> None:
    ledger = begin(path)
    with sqlite3.connect(path) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute(sql)
    assert opened(path) == ledger


# --- several at once ------------------------------------------------------------------------------


def test_what_another_process_decides_is_noticed(path: Path) -> None:
    begin(path)
    with Store(path) as live, Store(path) as command:
        assert not live.changed()
        command.tell(i.Rejected("agent", {A: definition("a").id}, "me", "", 4))
        assert live.changed()
        assert not live.changed()
        assert live.ledger == command.ledger
        assert live.ledger.publications["agent"].manifest.items == {}
        live.tell(inventory({}, at_ms=5))
        step = command.tell(i.ObservationFailed("home", Subject.TOOL, "cut", 6))
        assert step.state.version(A) == live.ledger.version(A)  # it was taken in before


def said(child: "subprocess.Popen[str]") -> list[int]:
    assert child.stdout is not None
    return [int(line) for line in child.stdout if line.endswith("\n")]


def start(path: Path, *args: object) -> "subprocess.Popen[str]":
    root = Path(__file__).parents[2]
    parts = [str(root / part) for part in ("tests", "model", "adapters", "specs")]
    return subprocess.Popen(
        [sys.executable, SCRIPT, str(path), *map(str, args)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(parts)},
    )


def test_two_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    with Store(path) as store:
        for consumer in ("one", "two"):
            store.tell(told(0, consumer))
        store.tell(told(1))
    with start(path, 2, 102, "one") as one, start(path, 2, 102, "two") as two:
        assert said(one) == said(two) == list(range(2, 102))
    with Store(path) as store:
        who = [record.entry.who for record in store.entries() if record.entry.at_ms >= 2]
        assert who.count("one") == who.count("two") == 100 * len(KEYS)
        assert len({record.entry.number for record in store.entries()}) == store.ledger.entries
        for consumer in ("one", "two"):
            assert (
                store.ledger.publications[consumer].generation
                == replayed(101)[-1].publications["one"].generation
            )


def test_a_store_that_two_processes_make_at_once_is_one(path: Path) -> None:
    children = [start(path, 0, 1, name) for name in ("one", "two", "three")]
    for child in children:
        with child:
            assert said(child) == [0]
    assert set(opened(path).profiles) == {"one", "two", "three"}
    assert [found.name for found in path.parent.iterdir()] == [path.name]


@rule("DRIFT-19")
@rule("DRIFT-43")
def test_a_process_killed_while_it_writes_loses_no_decision_and_shows_no_half(path: Path) -> None:
    """A reader looks on all the while: whatever it reads is one of the ledgers there can be."""
    first, reads = 0, 0
    Store(path).close()
    expected = {ledger.entries: ledger for ledger in [Ledger(), *replayed(2000)]}
    for round in count():
        with start(path, first, 2000) as child, Store(path) as reader:
            assert child.stdout is not None
            goal = first + 120 + 37 * round  # killed somewhere in the write after this one
            told_last = first - 1
            for line in child.stdout:
                told_last = int(line)
                reader.changed()
                assert reader.ledger == expected[reader.ledger.entries]
                reads += 1
                if told_last >= goal:
                    child.kill()
                    break
            told_last = max([told_last, *said(child)])
        with Store(path) as after:
            assert after.ledger == expected[after.ledger.entries]
            *_, last = after.entries()
            assert last.entry.at_ms >= told_last  # nothing that was answered is lost
            shown = after.ledger.publications["one"].manifest.items
            assert shown in ({}, SHOWN)
            first = last.entry.at_ms + 1
        if round == 3:
            break
    assert first > 600
    assert reads > 500


# --- what fails closed ----------------------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(StoreError) as raised:
        Store(path)
    assert str(raised.value).startswith(f"store {path}: ")
    return str(raised.value).removeprefix(f"store {path}: ")


def test_a_store_that_is_not_there_is_not_made_where_one_is_expected(path: Path) -> None:
    with pytest.raises(StoreError, match="No such file or directory"):
        Store(path, create=False)
    assert not path.exists()
    assert refused(path.parent) == "unable to open database file"
    with pytest.raises(StoreError, match="No such file or directory"):
        Store(path / "not" / "here")


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be one" * 100])
def test_a_file_of_somebody_else(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert refused(path) in ("this is no store of relist", "file is not a database")
    assert path.read_bytes() == content


def test_a_database_of_somebody_else_is_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE entries (mine TEXT)")
    before = path.read_bytes()
    assert refused(path) == "this is no store of relist"
    assert path.read_bytes() == before


def test_a_newer_format(path: Path) -> None:
    begin(path)
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    assert refused(path).startswith(f"its format {FORMAT + 1} is newer than this version")
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 0")
    assert refused(path) == "there is no format 0"


def altered(sql: str) -> Callable[[Path], None]:
    """Somebody edits the file, after having taken the triggers away."""

    def alter(path: Path) -> None:
        with sqlite3.connect(path) as db:
            triggers = db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
            for (name,) in triggers.fetchall():
                db.execute(f"DROP TRIGGER {name}")
            assert db.execute(sql).rowcount > 0

    return alter


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def scratched(path: Path) -> None:
    """One byte of a kept row is another."""
    content = path.read_bytes()
    at = content.rindex(b'"approved":[[')
    path.write_bytes(content[:at] + b"#" + content[at + 1 :])


DAMAGE: list[tuple[Callable[[Path], None], str]] = [
    (altered("DELETE FROM entries WHERE number = 3"), "the history ends too early"),
    (altered("DELETE FROM entries WHERE number = 2"), "line 3 of the history is damaged"),
    (altered("UPDATE entries SET line = x'7b7d' WHERE number = 2"), "line 2 of the history"),
    (altered("DELETE FROM parts WHERE number = 4"), "rows of the ledger are missing or damaged"),
    (
        altered("UPDATE parts SET value = x'7b7d' WHERE number = 1"),
        "rows of the ledger are missing",
    ),
    (altered("UPDATE parts SET place = x'5b5d' WHERE number = 1"), "rows of the ledger are"),
    (altered("DELETE FROM definitions"), "the definition "),
    (altered("UPDATE definitions SET content = x'7b7d'"), "the definition "),
    (altered("UPDATE head SET entries = 2"), "the history ends too early"),
    (altered("DELETE FROM head"), "its head is missing"),
    (cut, ""),
    (scratched, "rows of the ledger are missing or damaged"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGE)
def test_damage_is_never_read_over(path: Path, damage: Callable[[Path], None], said: str) -> None:
    begin(path)
    damage(path)
    assert refused(path).startswith(said)


def test_a_store_damaged_while_it_is_used_shows_nothing_any_more(path: Path) -> None:
    begin(path)
    with Store(path) as store:
        with sqlite3.connect(path) as db:
            db.execute("UPDATE head SET total = '00'")
        with pytest.raises(StoreError, match="rows of the ledger are missing"):
            store.changed()
        with pytest.raises(StoreError, match="nothing is known since an earlier failure"):
            _ = store.ledger
        with pytest.raises(StoreError, match="rows of the ledger are missing"):
            store.tell(inventory({"a": "1"}))


def test_a_store_that_was_replaced_takes_no_decision(path: Path) -> None:
    """It would be written to a file that has no name any more."""
    begin(path)
    with Store(path) as store:
        path.rename(path.with_suffix(".old"))
        begin(path)
        with pytest.raises(StoreError, match="the file was replaced"):
            store.tell(inventory({}, at_ms=4))


def test_a_store_that_somebody_else_holds_is_known_again_afterwards(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = begin(path)
    monkeypatch.setattr("relist_mcp.drift.store.BUSY_MAX_S", 0.0)
    with Store(path) as store:
        with sqlite3.connect(path, isolation_level=None) as db:
            db.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="database is locked"):
                store.tell(inventory({}, at_ms=4))
            db.execute("ROLLBACK")
        with pytest.raises(StoreError):
            _ = store.ledger
        assert store.changed()
        assert store.ledger == ledger


def test_a_file_is_for_its_owner_only(path: Path) -> None:
    begin(path)
    assert path.stat().st_mode & 0o077 == 0
    assert APPLICATION_ID.to_bytes(4, "big") in path.read_bytes()[:100]
