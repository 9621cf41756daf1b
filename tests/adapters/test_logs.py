"""What is logged: its fields and levels, what can be told from it, and what never stands there.

Rule: OBS-01 to OBS-03, OBS-06 to OBS-11.
"""

import logging
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

from relist import effects as e
from relist import inputs as i
from relist.values import Capabilities, Kind
from relist_mcp import Catalogs, Credentials, Http, logs
from relist_mcp import events as ev
from relist_mcp.credentials import NOBODY
from relist_mcp.fold import Told
from relist_mcp.identity import CLIENT_VERSION, Identity
from relist_mcp.logs import Log, described
from relist_mcp.loop import Fed
from support.brain import LEGACY, MODERN, Frame, error_of, notice, tool
from support.live import ERAS, LIST, policy, serve, serve_http
from support.loops import everywhere, virtually
from support.one import METHOD_NOT_FOUND, TRANSIENT, UNAUTHORIZED
from support.told import ALL, Teller

rule = pytest.mark.rule
TOOLS = Kind.TOOLS


@pytest.fixture(autouse=True)
def _everything(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG, "relist_mcp"):
        yield


Record = dict[str, Any]


def records(caplog: pytest.LogCaptureFixture, event: str | None = None) -> list[Record]:
    """The fields of our records, of one event or of all, without their prefix."""
    found = [
        {
            key.removeprefix("relist_"): value
            for key, value in vars(record).items()
            if key.startswith("relist_") or key == "levelname"
        }
        for record in caplog.records
        if record.name == "relist_mcp" and hasattr(record, "relist_event")
    ]
    return [record for record in found if event in (None, record["event"])]


# --- fields ---------------------------------------------------------------------------------------


@rule("OBS-01")
@rule("OBS-02")
@rule("OBS-03")
@rule("OBS-08")
@rule("OBS-09")
@ERAS
@everywhere
async def test_records_carry_what_is_needed_to_follow_a_refresh(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    brain, pipe = serve(era, "a", "b", "c", page_size=2)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.set_tools("b", "a", "c", "d")
        pipe.send(brain.change(), brain.change())
        await brain.until_seen(LIST, 4)
        await catalogs.idle()
        surface = catalogs.tools.surface()
        assert surface is not None
        surface.adopted(4)
        await catalogs.idle()
    about = {
        "epoch": 1,
        "server": "scripted",
        "server_version": "1",
        "client_version": CLIENT_VERSION,
        "era": "modern" if era == MODERN else "legacy",
        "protocol_version": era,
        "partition": "",
    }
    (agreed,) = records(caplog, "agreed")
    assert agreed.items() >= about.items()
    assert agreed["capabilities"] == {
        "kinds": ["tools"],
        "channels": ["tools"],
        "subscribe": False,
    }
    first, second = records(caplog, "notice")
    assert first.items() >= {**about, "channel": "tools", "kinds": ["tools"]}.items()
    assert first.get("serial") == (1 if era == MODERN else None)
    assert (first["merged"], second["merged"]) == (False, True)
    _, began = records(caplog, "walk began")
    assert began.items() >= {**about, "kind": "tools", "walk": 3, "cause": "noticed"}.items()
    assert began["notices"] == 2
    ended = records(caplog, "walk ended")[1]
    counts = {"pages": 2, "entries": 4, "cursors": 1, "outcome": "changed", "cause": "noticed"}
    assert ended.items() >= {**about, **counts, "walk": 3, "began_at_ms": began["at_ms"]}.items()
    assert ended["at_ms"] == ended["began_at_ms"] + ended["duration_ms"]
    before, after = records(caplog, "published")
    numbers = {"generation": 2, "walk": 3, "entries": 4, "changed": True, "replaced": 1}
    assert after.items() >= {**about, **numbers, "clean": True, "notices": 2}.items()
    assert after["lag_ms"] >= 0
    assert "lag_ms" not in before
    assert after["names_digest"] != before["names_digest"]
    (adopted,) = records(caplog, "adopted")
    assert adopted.items() >= {**about, "generation": 2, "adopted": 4, "listed": 4}.items()


@rule("OBS-03")
def test_digests_tell_names_from_definitions_and_do_not_depend_on_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """So that several clients of one server can be compared."""
    for texts in (("a", "b"), ("b", "a"), ("a", "b@2"), ("a", "c")):
        teller = _logged(Teller())
        teller.link()
        teller.page(*texts)
    told = [(r["names_digest"], r["schema_digest"]) for r in records(caplog, "published")]
    one, reordered, redefined, renamed = told
    assert one == reordered
    assert one[0] == redefined[0] != renamed[0]
    assert one[1] != redefined[1]


def test_the_message_holds_the_fields_too(caplog: pytest.LogCaptureFixture) -> None:
    teller = _logged(Teller())
    teller.link()
    teller.page("a")
    (text,) = (r.getMessage() for r in caplog.records if r.getMessage().startswith("published "))
    assert " kind='tools' " in text
    assert " entries=1 " in text
    assert "None" not in text


def test_each_client_in_a_process_has_a_number_of_its_own() -> None:
    assert len({Log(Identity).number for _ in range(3)}) == 3


def _logged(teller: Teller) -> Teller:
    """From now on what happens is logged."""
    log, hear = Log(lambda: Identity("a.test", "name", "1")), teller.hear

    def hear_and_log(heard: i.SessionInput) -> Told:
        before, told = teller.session, hear(heard)
        log(Fed(heard, before, teller.session, teller.effects), told)
        return told

    teller.hear = hear_and_log  # type: ignore[method-assign]
    return teller


# --- levels ---------------------------------------------------------------------------------------


def _levels(caplog: pytest.LogCaptureFixture) -> dict[str, set[str]]:
    levels: dict[str, set[str]] = {}
    for record in records(caplog):
        levels.setdefault(record["levelname"], set()).add(record["event"])
    return levels


def test_what_an_operator_must_see_is_a_warning_and_what_changes_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    teller = _logged(Teller())
    teller.link()
    for _ in range(3):
        teller.notice()
        teller.page("a")
        teller.wait()
    assert _levels(caplog)["WARNING"] == {"published"}  # disturbed too often in a row
    teller.page("b")
    teller.refresh()
    teller.fail(UNAUTHORIZED)
    teller.hear(i.CredentialsChanged("B", teller.now_ms))
    levels = _levels(caplog)
    assert levels["WARNING"] == {"published", "parked"}
    assert levels["INFO"] == {"published", "withdrawn"}
    assert levels["DEBUG"] >= {"walk began", "walk ended", "page", "notice", "link", "agreed"}
    caplog.clear()
    teller.link()
    teller.page("a")
    teller.refresh()
    teller.page("a")
    shown = [(r["levelname"], r["changed"]) for r in records(caplog, "published")]
    assert shown == [("INFO", True), ("DEBUG", False)]


@pytest.mark.parametrize(
    ("failing", "after"),
    [(UNAUTHORIZED, "parked"), (None, "refused")],
)
def test_a_link_that_is_given_up_is_a_warning(
    failing: Any, after: str, caplog: pytest.LogCaptureFixture
) -> None:
    teller = _logged(Teller(legacy_versions=()))
    teller.hear(i.ConnectWanted(0))
    teller.hear(i.TransportOpened(1, 0))
    none = Capabilities(frozenset(), frozenset())
    answer = i.DiscoverAnswered(1, ("1999-01-01",), none, 0)
    teller.hear(answer if failing is None else i.DiscoverFailed(1, failing, 0))
    link = records(caplog, "link")[-1]
    assert (link["levelname"], link["after"]) == ("WARNING", after)


def test_nothing_is_made_of_what_nobody_wants_to_see(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise AssertionError("described")

    monkeypatch.setattr(logs, "described", fail)
    with caplog.at_level(logging.ERROR, "relist_mcp"):
        teller = _logged(Teller())
        teller.link()
        teller.page("a")
    assert caplog.records == []


def test_what_is_no_event_of_ours_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="Event"):
        described(ev.Event(at_ms=0, epoch=0))


# --- what can be told from the records alone ------------------------------------------------------


def findings(told: list[Record]) -> set[str]:
    """What is wrong, from the records of one kind of one client."""
    published = [record for record in told if record["event"] == "published"]
    good = {record["walk"] for record in published}
    found = {
        f"refresh unfinished: {record['outcome']}"
        for record in told
        if record["event"] == "walk ended" and record["walk"] not in good
    }
    ended = {record["walk"] for record in told if record["event"] == "walk ended"}
    if any(r["event"] == "walk began" and r["walk"] not in ended for r in told):
        found.add("refresh unfinished: still open")
    if any(record["event"] == "late answer" for record in told):
        found.add("late answer left out")
    for before, after in pairwise(published):
        if after["walk"] <= before["walk"]:
            found.add("list overwritten by an older one")
        elif after["partition"] != before["partition"]:
            if after["names_digest"] != before["names_digest"]:
                found.add("views differ by authorization")
        elif after["changed"] and after["covered"] and not after["notices"]:
            found.add("notice missing")
    return found


@rule("OBS-07")
@ERAS
@virtually
async def test_a_change_that_nobody_announced_can_be_told(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        await catalogs.tools.refresh()
        brain.set_tools("b")
        pipe.send(brain.change())
        await brain.until_seen(LIST, 3)
        await catalogs.idle()
        assert findings(records(caplog)) == set()
        brain.set_tools("c")
        await catalogs.tools.refresh()
    assert findings(records(caplog)) == {"notice missing"}


@rule("OBS-07")
@pytest.mark.parametrize(
    ("trouble", "found"),
    [
        ("silence", "timed out"),
        ("error", "failed"),
        ("cut", "abandoned"),
        ("none yet", "still open"),
    ],
)
@virtually
async def test_a_refresh_that_never_ended_can_be_told(
    trouble: str, found: str, caplog: pytest.LogCaptureFixture
) -> None:
    brain, pipe = serve(MODERN, "a", "b", page_size=1)
    rules = policy(request_limit_ms=500, backoff_base_ms=50_000)
    async with Catalogs.connect(pipe.target, policy=rules) as catalogs:
        await catalogs.idle()
        brain.hold.add(LIST)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(catalogs.tools.refresh)
            pipe.reply(await brain.until_held(LIST))
            second = await brain.until_held(LIST)
            match trouble:
                case "error":
                    pipe.send(error_of(second, -32603))
                case "cut":
                    pipe.cut()
                case "silence":
                    await anyio.sleep(1)
                case _:
                    assert findings(records(caplog)) == {"refresh unfinished: still open"}
                    brain.hold.clear()
                    pipe.reply(second)
                    return
        assert findings(records(caplog)) == {f"refresh unfinished: {found}"}
        ended = records(caplog, "walk ended")[-1]
        assert (ended["pages"], ended["cursors"]) == (1, 1)
        assert ended["reason"]
        assert ended.get("error_code") == (-32603 if trouble == "error" else None)


@rule("OBS-07")
@virtually
async def test_an_answer_that_came_too_late_can_be_told(caplog: pytest.LogCaptureFixture) -> None:
    brain, pipe = serve(MODERN, "old")
    async with Catalogs.connect(pipe.target, policy=policy(request_limit_ms=500)) as catalogs:
        await catalogs.idle()
        brain.hold.add(LIST)
        await catalogs.tools.refresh()
        slow = await brain.until_held(LIST)
        brain.hold.clear()
        pipe.send(brain.change())
        while not records(caplog, "notice"):
            await anyio.lowlevel.checkpoint()
        late = brain.answer(slow)
        brain.set_tools("new")
        await catalogs.tools.refresh()
        assert late is not None
        pipe.send(late)
        await anyio.sleep(1)
        await catalogs.idle()
    found = findings(records(caplog))
    assert found == {"late answer left out", "refresh unfinished: timed out"}
    (told,) = records(caplog, "late answer")
    assert (told["kind"], told["serial"]) == ("tools", 2)
    walks = [(r["generation"], r["walk"]) for r in records(caplog, "published")]
    assert walks == sorted(walks)


@rule("OBS-07")
@rule("OBS-08")
def test_a_list_that_an_older_one_replaced_could_be_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """This client never does; so the records of one that does are made by hand."""
    teller = _logged(Teller())
    teller.link()
    for text in ("old", "new"):
        teller.page(text)
        teller.refresh()
    older, newer = teller.of(ev.Published)
    late = evolve(older, replaced=newer.snapshot, at_ms=teller.now_ms)
    fed = Fed(i.TimePassed(0), teller.session, teller.session, ())
    teller.page("new")
    assert "list overwritten by an older one" not in findings(records(caplog))
    Log(Identity)(fed, (late,))
    assert "list overwritten by an older one" in findings(records(caplog))


@rule("OBS-07")
@virtually
async def test_views_of_different_credentials_can_be_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    brain, web = serve_http(MODERN, "a", "b")
    brain.hints = {**brain.hints, "cacheScope": "private"}
    alice, bob = (Credentials(headers={"x-user": name}) for name in ("alice", "bob"))
    async with Catalogs.connect(web.target, policy=policy(), credentials=alice) as catalogs:
        await catalogs.idle()
        brain.set_tools("a")
        catalogs.change_credentials(bob)
        await catalogs.idle()
        brain.set_tools("a", "b")
        catalogs.change_credentials(alice)
        await catalogs.idle()
    assert findings(records(caplog)) == {"views differ by authorization"}
    one, other, again = records(caplog, "published")
    assert (one["partition"], one["names_digest"]) == (again["partition"], again["names_digest"])
    assert other["partition"] != one["partition"]


# --- what never stands there ----------------------------------------------------------------------

CANARY = "can4ry"
PERSON = "alice@can4ry.test"


def _texts(caplog: pytest.LogCaptureFixture) -> list[str]:
    formatter = logging.Formatter("%(name)s %(message)s")
    ours = [record for record in caplog.records if record.name.startswith("relist")]
    return [f"{formatter.format(record)} {vars(record)!r}" for record in ours]


def _poisoned(frame: Frame) -> Frame:
    entry = tool(f"a{CANARY}", description=CANARY, title=CANARY, **{CANARY: CANARY})
    entry["inputSchema"]["properties"] = {CANARY: {"description": CANARY}}
    if frame.get("params", {}).get("cursor") is None:
        result: Frame = {"tools": [entry], "nextCursor": CANARY}
    else:
        result = {"tools": [{"name": CANARY}, {"bad": CANARY}, CANARY, {**entry, "name": CANARY}]}
    return {"result": {**result, CANARY: CANARY, "_meta": {CANARY: CANARY}, "cacheScope": CANARY}}


@rule("OBS-06")
@pytest.mark.parametrize("credentials", [NOBODY, Credentials(partition=PERSON)], ids=["", "named"])
@ERAS
@virtually
async def test_nothing_that_a_server_or_caller_wrote_is_logged(
    era: str, credentials: Credentials, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever goes well or wrong; in messages, fields or tracebacks."""
    brain, web = serve_http(era)
    capabilities = {"tools": {"listChanged": True, CANARY: 1}, "resources": {"subscribe": CANARY}}
    entries = {"resources": [{"uri": f"x:{CANARY}", "name": CANARY}]}
    brain.lists.update(entries)
    brain.answers[LIST] = _poisoned
    legacy = era == LEGACY
    method, made = (
        ("initialize", brain.greeting()) if legacy else ("server/discover", brain.discovery())
    )
    said = {**made, "instructions": CANARY, "capabilities": capabilities, CANARY: CANARY}
    brain.answers[method] = lambda _: {"result": said}
    target = evolve(
        web.target,
        url=f"http://{CANARY}:{CANARY}@scripted.test/{CANARY}?key={CANARY}#{CANARY}",
        headers={"authorization": CANARY, f"x-{CANARY}": CANARY},
    )
    assert isinstance(target, Http)
    shown = evolve(credentials, headers={"x-user": CANARY}, env={"TOKEN": CANARY})
    async with Catalogs.connect(target, policy=policy(), credentials=shown) as catalogs:
        await catalogs.idle()
        assert catalogs.tools.read().snapshot is not None
        stream = web.streams[-1] if era == LEGACY else web.bodies[brain.listens[-1]["id"]]
        stream.send(
            notice("notifications/tools/list_changed", **{CANARY: CANARY, "_meta": {CANARY: 1}}),
            notice("notifications/resources/updated", uri=f"x:{CANARY}"),
            notice("notifications/message", level="error", data=CANARY),
            notice(CANARY, data=CANARY),
        )
        await anyio.sleep(1)
        await catalogs.call_tool(f"a{CANARY}", {"password": CANARY})
        error = {"code": -32602, "message": CANARY, "data": {CANARY: CANARY}}
        brain.answers[LIST] = lambda _: {"error": error}
        await catalogs.tools.refresh()
        brain.answers[LIST] = lambda _: {"result": {"tools": CANARY}}
        await catalogs.tools.refresh()
        catalogs.change_credentials(Credentials(headers={"x-user": CANARY + "2"}))
        await anyio.sleep(1)
        web.down = True
        await catalogs.tools.refresh()
    texts = _texts(caplog)
    assert len(texts) > 20
    assert [text for text in texts if CANARY in text] == []


@rule("OBS-10")
@virtually
async def test_a_tool_that_is_left_out_is_named_and_nothing_else_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Somebody looks for it. Its name is quoted and cut short."""
    brain, web = serve_http(MODERN)
    schema = {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A"}}}
    name = "left\n\u202eout" + "x" * 500
    brain.lists["tools"] = [tool("a"), {"name": name, "inputSchema": schema}]
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
    (told,) = (record for record in records(caplog, "noted") if record["rule"] == "OBS-10")
    assert "'left\\n\\u202eoutxxx" in told["about"]
    assert len(told["about"]) < 600
    assert (told["epoch"], told["levelname"]) == (1, "DEBUG")


@rule("OBS-11")
def test_a_declared_method_that_is_missing_is_logged_as_a_defect(
    caplog: pytest.LogCaptureFixture,
) -> None:
    teller = _logged(Teller())
    teller.link()
    teller.fail(METHOD_NOT_FOUND)
    (told,) = records(caplog, "noted")
    assert (told["rule"], told["reason"]) == ("CAP-16", "declared kind has no list method")
    assert told["kind"] == "tools"


@rule("OBS-06")
def test_a_note_on_a_message_is_logged_without_what_it_is_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs.note(e.Note("DISC-25", "entry is no object", (CANARY,)), 3)
    (told,) = records(caplog, "noted")
    assert (told["rule"], told["reason"], told["epoch"]) == ("DISC-25", "entry is no object", 3)
    assert CANARY not in _texts(caplog)[0]


# --- the page for operators -----------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "specs" / "observability.md").read_text()


def _rows() -> dict[str, set[str]]:
    """The fields that the page names, by event; "" for those of every record."""
    section = PAGE.partition("## Log records")[2].partition("`names_digest` is")[0]
    every = section.partition("On every record:")[2].partition("\n\n")[0]
    found = {"": set(re.findall(r"`(\w+)`", every))}
    for event, fields in re.findall(r"(?m)^\| `([\w ]+)` \|[^|]*\| (.*) \|$", section):
        found[event] = set(re.findall(r"`(\w+)`", fields))
    return found


def test_the_page_for_operators_names_every_record_and_field(
    caplog: pytest.LogCaptureFixture,
) -> None:
    teller = _logged(Teller(evolve(ALL, subscribe=True), request_limit_ms=1_000))
    teller.link()
    teller.page("a")
    teller.notice()
    teller.notice(serial=9)
    teller.hear(i.UpdatesWanted(frozenset({"a:1"}), teller.now_ms))
    teller.hear(i.UpdateHeard("a:1", 1, teller.now_ms))
    teller.hear(i.SurfaceAdopted(TOOLS, 1, 1, teller.now_ms))
    teller.wait()
    teller.fail(evolve(TRANSIENT, status=503))
    teller.page("late", serial=1)
    teller.refresh()
    teller.page("b")
    teller.refresh()
    teller.fail(UNAUTHORIZED)
    teller.hear(i.PageFailed(Kind.PROMPTS, 1, METHOD_NOT_FOUND, teller.now_ms))
    teller.hear(i.PushEnded(1, evolve(TRANSIENT, code=-1), teller.now_ms))
    teller.lose()
    teller.hear(i.CredentialsChanged("B", teller.now_ms))
    logs.note(e.Note("OBS-10", "entry", ("tools", 1, "name", "why")), 1)
    rows = _rows()
    every = rows.pop("")
    used: dict[str, set[str]] = {}
    for record in records(caplog):
        used.setdefault(record["event"], set()).update(record.keys() - {"levelname"})
    assert set(used) == set(rows)
    classes = {one for one in vars(ev).values() if isinstance(one, type)}
    events = {one for one in classes if issubclass(one, ev.Event)} - {ev.Event, ev.OfKind}
    assert {type(event) for event in teller.told} == events  # there is no other
    for event, fields in rows.items():
        assert used[event] - every == fields, event
