"""What happened, read off what the loop fed: causes, outcomes, notices, and whole sessions."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from relist import effects as e
from relist import inputs as i
from relist.effects import Effect
from relist.inputs import SessionInput
from relist.values import (
    KINDS,
    Capabilities,
    Carrier,
    Channel,
    Doubt,
    Failure,
    Kind,
    LinkPhase,
    ListenPhase,
    Parked,
)
from relist_mcp import events as ev
from relist_mcp.events import Cause, Event, Outcome
from relist_mcp.fold import Seen, fold
from relist_mcp.loop import Fed
from relist_mcp.tally import Tally, Walked, tally
from support.one import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REFUSED,
    TRANSIENT,
    UNAUTHORIZED,
    policy,
)
from support.told import ALL, Teller
from support.wild import WildPeer

rule = pytest.mark.rule
TOOLS = Kind.TOOLS
NOTHING = Capabilities(frozenset(), frozenset())


def listed(**rules: Any) -> Teller:
    """Connected, covered and listed."""
    teller = Teller(**rules)
    teller.link()
    teller.page("a")
    return teller


# --- why a walk began -----------------------------------------------------------------------------


def _first() -> Teller:
    teller = Teller()
    teller.link()
    return teller


def _relinked() -> Teller:
    teller = listed()
    teller.lose()
    teller.wait()
    teller.link()
    return teller


def _noticed() -> Teller:
    teller = listed()
    teller.notice()
    teller.wait()
    return teller


def _uncovered() -> Teller:
    teller = listed()
    teller.hear(i.PushEnded(1, METHOD_NOT_FOUND, teller.now_ms))
    teller.wait()
    return teller


def _suspected() -> Teller:
    teller = listed()
    teller.now_ms += 60_000  # else it is taken for feedback
    teller.hear(i.StalenessProved(TOOLS, 1, teller.now_ms))
    teller.wait()
    return teller


def _unvouched() -> Teller:
    teller = Teller()
    teller.link(push=False)
    teller.wait()  # no acknowledgement in time
    teller.page("a")
    teller.wait()  # asked for again
    teller.push()
    teller.wait()
    return teller


def _spoiled() -> Teller:
    teller = _first()
    teller.notice()
    teller.page("a")
    teller.wait()
    return teller


def _failed() -> Teller:
    teller = _first()
    teller.fail(TRANSIENT)
    teller.wait()
    return teller


def _polled() -> Teller:
    teller = listed(poll_ms=1_000)
    teller.wait()
    return teller


def _wish(wish: type[i.ReadWanted | i.VerificationWanted | i.RefreshWanted]) -> Teller:
    teller = Teller(unvouched_lifetime_ms=0)
    teller.offer = evolve(teller.offer, channels=frozenset())
    teller.link(push=False)
    teller.page("a")
    teller.hear(wish(TOOLS, teller.now_ms))
    return teller


CAUSES: dict[Cause, Callable[[], Teller]] = {
    Cause.FIRST: _first,
    Cause.RELINKED: _relinked,
    Cause.NOTICED: _noticed,
    Cause.UNCOVERED: _uncovered,
    Cause.SUSPECTED: _suspected,
    Cause.UNVOUCHED: _unvouched,
    Cause.SPOILED: _spoiled,
    Cause.FAILED: _failed,
    Cause.POLL: _polled,
    Cause.READ: lambda: _wish(i.ReadWanted),
    Cause.VERIFY: lambda: _wish(i.VerificationWanted),
    Cause.REFRESH: lambda: _wish(i.RefreshWanted),
}


@rule("OBS-03")
@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.value)
def test_a_walk_says_why_it_began(cause: Cause) -> None:
    teller = CAUSES[cause]()
    began = teller.of(ev.WalkBegan)[-1]
    assert began.cause is cause
    assert (began.at_ms, began.kind) == (teller.now_ms, TOOLS)
    assert (began.walk,) == tuple(request.serial for request in teller.requests())
    assert isinstance(teller.told[-1], ev.WalkBegan)


@rule("OBS-03")
def test_a_refresh_asked_for_during_a_walk_is_why_the_next_begins() -> None:
    teller = _first()
    teller.refresh()
    told = teller.page("a")
    assert [type(event) for event in told] == [
        ev.PageListed,
        ev.Published,
        ev.WalkEnded,
        ev.WalkBegan,
    ]
    assert teller.of(ev.WalkBegan)[-1].cause is Cause.REFRESH
    assert teller.of(ev.WalkBegan)[-1].walk == 2

    teller = listed()
    teller.notice()
    teller.wait()
    teller.refresh()
    teller.page("a")
    causes = [began.cause for began in teller.of(ev.WalkBegan)]
    assert causes == [Cause.FIRST, Cause.NOTICED, Cause.REFRESH]


# --- how a walk ended -----------------------------------------------------------------------------


def _checked() -> Teller:
    teller = listed()
    teller.refresh()
    teller.page("a")
    return teller


def _disturbed() -> Teller:
    teller = _first()
    teller.notice()
    teller.page("a")
    return teller


def _dead_cursor() -> Teller:
    teller = _first()
    teller.page("a", more="c")
    teller.fail(INVALID_PARAMS)
    return teller


def _overlong() -> Teller:
    teller = Teller(pages_max=1)
    teller.link()
    teller.page("a", more="c")
    return teller


def _silent() -> Teller:
    teller = _first()
    teller.wait()
    return teller


def _refused_as(failure: Failure) -> Teller:
    teller = _first()
    teller.fail(failure)
    return teller


def _cut() -> Teller:
    teller = _first()
    teller.page("a", more="c")
    teller.lose()
    return teller


OUTCOMES: dict[Outcome, tuple[Callable[[], Teller], str, tuple[int, int, int]]] = {
    Outcome.CHANGED: (listed, "", (1, 1, 0)),
    Outcome.CHECKED: (_checked, "", (1, 1, 0)),
    Outcome.SPOILED: (_disturbed, "disturbed", (1, 1, 0)),
    Outcome.DEAD_CURSOR: (_dead_cursor, "error answer", (1, 1, 1)),
    Outcome.OVERLONG: (_overlong, "over a bound of pages, items or bytes", (1, 1, 1)),
    Outcome.TIMED_OUT: (_silent, "no answer in time", (0, 0, 0)),
    Outcome.FAILED: (lambda: _refused_as(TRANSIENT), "error answer", (0, 0, 0)),
    Outcome.UNAUTHORIZED: (lambda: _refused_as(UNAUTHORIZED), "error answer", (0, 0, 0)),
    Outcome.REFUSED: (lambda: _refused_as(REFUSED), "error answer", (0, 0, 0)),
    Outcome.UNKNOWN: (lambda: _refused_as(METHOD_NOT_FOUND), "error answer", (0, 0, 0)),
    Outcome.ABANDONED: (_cut, "link lost", (1, 1, 1)),
}


@rule("OBS-02")
@rule("OBS-08")
@pytest.mark.parametrize("outcome", Outcome, ids=lambda outcome: outcome.value)
def test_a_walk_says_how_it_ended(outcome: Outcome) -> None:
    make, reason, counted = OUTCOMES[outcome]
    teller = make()
    ended = teller.of(ev.WalkEnded)[-1]
    assert (ended.outcome, ended.reason) == (outcome, reason)
    assert (ended.pages, ended.entries, ended.cursors) == counted
    assert ended.walk == teller.of(ev.WalkBegan)[-1].walk
    assert ended.at_ms == teller.now_ms
    assert ended.spoiled is (outcome is Outcome.SPOILED)
    failed = isinstance(teller.session.catalog(TOOLS).doubt, Doubt) and ended.failures > 0
    assert failed is (outcome in FAILING)
    assert (ended.due_at_ms is not None) is (outcome in WAITING)


FAILING = {
    Outcome.OVERLONG,
    Outcome.TIMED_OUT,
    Outcome.FAILED,
    Outcome.UNAUTHORIZED,
    Outcome.REFUSED,
}
WAITING = (FAILING - {Outcome.UNAUTHORIZED, Outcome.REFUSED}) | {
    Outcome.SPOILED,
    Outcome.DEAD_CURSOR,
}


@pytest.mark.parametrize(
    ("heard", "reason"),
    [
        (lambda teller: i.CloseWanted(teller.now_ms), "link closed"),
        (lambda teller: i.CredentialsChanged("B", teller.now_ms), "credentials changed"),
        (lambda teller: i.TransportLost(1, teller.now_ms), "link lost"),
    ],
)
def test_an_abandoned_walk_says_what_went(
    heard: Callable[[Teller], SessionInput], reason: str
) -> None:
    teller = _first()
    teller.hear(heard(teller))
    ended = teller.of(ev.WalkEnded)[-1]
    assert (ended.outcome, ended.reason) == (Outcome.ABANDONED, reason)


@rule("OBS-03")
def test_a_walk_that_ends_with_its_list_withdrawn_says_why_and_when_it_began() -> None:
    teller = listed()
    teller.now_ms += 1_000
    teller.refresh()
    began = teller.of(ev.WalkBegan)[-1]
    teller.now_ms += 50
    teller.hear(i.CredentialsChanged("B", teller.now_ms))
    assert [event.kind for event in teller.of(ev.Withdrawn)] == [TOOLS]
    ended = teller.of(ev.WalkEnded)[-1]
    assert (ended.cause, ended.began_at_ms) == (Cause.REFRESH, began.at_ms)
    assert ended.duration_ms == 50


def test_a_walk_of_what_is_no_longer_declared_is_abandoned() -> None:
    teller = _first()
    teller.now_ms += 10**7  # what was offered is out of date; the walk has not been looked at
    teller.refresh()
    serial = teller.session.link.serial
    teller.hear(i.DiscoverAnswered(serial, ("2026-07-28",), NOTHING, teller.now_ms))
    ended = teller.of(ev.WalkEnded)[-1]
    assert (ended.outcome, ended.reason) == (Outcome.ABANDONED, "no longer declared")
    assert [agreed.capabilities for agreed in teller.of(ev.Agreed)] == [teller.offer, NOTHING]


def test_definitions_that_contradict_each_other_spoil_a_walk() -> None:
    teller = _first()
    teller.page("a", "a@2")
    ended = teller.of(ev.WalkEnded)[-1]
    assert (ended.outcome, ended.reason) == (Outcome.SPOILED, "conflicting duplicates")
    assert not ended.spoiled


@rule("OBS-02")
def test_pages_and_times_are_counted_from_their_own_requests() -> None:
    teller = _first()
    began_ms = teller.now_ms
    teller.now_ms += 10
    teller.page("a", "b", more="c")
    teller.now_ms += 5
    teller.page("c")
    first, second = teller.of(ev.PageListed)
    assert (first.number, first.entries, first.more, first.took_ms) == (1, 2, True, 10)
    assert (second.number, second.entries, second.more, second.took_ms) == (2, 1, False, 5)
    ended = teller.of(ev.WalkEnded)[-1]
    assert (ended.began_at_ms, ended.duration_ms, ended.took_ms) == (began_ms, 15, 5)
    assert (ended.pages, ended.entries, ended.cursors) == (2, 3, 1)


def test_a_list_that_is_disturbed_too_often_is_published_so() -> None:
    teller = _first()
    for _ in range(3):
        teller.notice()
        teller.page("a")
        teller.wait()
    assert [ended.outcome for ended in teller.of(ev.WalkEnded)] == [
        Outcome.SPOILED,
        Outcome.SPOILED,
        Outcome.CHANGED,
    ]
    published = teller.of(ev.Published)[-1]
    assert (published.snapshot.clean, published.lag_ms) == (False, None)


def test_a_dead_cursor_may_publish_the_list_before_it() -> None:
    teller = _first()
    for _ in range(2):
        teller.notice()
        teller.page("a")
        teller.wait()
    teller.page("a", more="c")
    teller.fail(INVALID_PARAMS)
    assert teller.of(ev.WalkEnded)[-1].outcome is Outcome.DEAD_CURSOR
    assert teller.of(ev.Published)[-1].snapshot.walk < teller.of(ev.WalkEnded)[-1].walk


# --- notices --------------------------------------------------------------------------------------


@rule("OBS-01")
def test_each_notice_is_told_with_channel_time_connection_and_subscription() -> None:
    teller = listed()
    told = [teller.notice()[0] for _ in range(2)]
    teller.notice(serial=7)
    teller.notice(serial=None)
    teller.notice(Channel.PROMPTS)
    about: dict[str, Any] = {"at_ms": 1_000, "epoch": 1, "channel": Channel.TOOLS}
    assert told == [
        ev.Noticed(**about, serial=1, kinds=(TOOLS,), fault=None, merged=False),
        ev.Noticed(**about, serial=1, kinds=(TOOLS,), fault=None, merged=True),
    ]
    assert teller.of(ev.Noticed)[2:] == [
        ev.Noticed(**about, serial=7, kinds=(), fault="SUB-14", merged=False),
        ev.Noticed(**about, serial=None, kinds=(TOOLS,), fault="SUB-15", merged=True),
        ev.Noticed(
            at_ms=1_000,
            epoch=1,
            channel=Channel.PROMPTS,
            serial=1,
            kinds=(),
            fault="SUB-13",
            merged=False,
        ),
    ]
    assert teller.of(ev.Noted) == []  # what is wrong with a tag is told with its notice


def test_a_notice_of_resources_is_heeded_by_templates_too() -> None:
    teller = Teller(ALL)
    teller.link()
    for kind in KINDS:
        teller.page("a", kind=kind)
    teller.notice(Channel.RESOURCES)
    assert teller.of(ev.Noticed)[0].kinds == (Kind.RESOURCES, Kind.TEMPLATES)


def test_a_notice_that_was_never_promised_is_heeded_by_nobody() -> None:
    """Also where the list is doubted for another reason."""
    teller = Teller()
    teller.offer = evolve(teller.offer, channels=frozenset())
    teller.link(push=False)
    teller.page("a")
    teller.hear(i.StalenessProved(TOOLS, 1, teller.now_ms))
    session = teller.session
    legacy = evolve(session, link=evolve(session.link, era=None))
    heard = i.NoticeHeard(Channel.TOOLS, None, teller.now_ms)
    note = e.Note("CAP-19", "list_changed was not declared", ("tools",))
    _, told = fold(teller.seen, Fed(heard, legacy, legacy, (note,)))
    assert [event.kinds for event in told if isinstance(event, ev.Noticed)] == [()]
    assert [event.rule for event in told if isinstance(event, ev.Noted)] == ["CAP-19"]


def test_lag_is_counted_from_the_first_notice_that_no_list_has_answered() -> None:
    teller = listed()
    teller.notice()
    teller.now_ms += 3
    teller.notice()
    teller.wait()
    assert (teller.of(ev.WalkBegan)[-1].notices, teller.now_ms) == (2, 1_100)
    teller.notice()  # spoils it
    teller.page("a", "b")
    teller.wait()
    assert teller.of(ev.WalkBegan)[-1].notices == 3
    assert teller.of(ev.WalkBegan)[-1].noticed_at_ms == 1_000
    teller.now_ms += 7
    teller.page("a", "b")
    published = teller.of(ev.Published)[-1]
    assert (published.notices, published.lag_ms) == (3, teller.now_ms - 1_000)
    teller.refresh()
    teller.page("a")
    published = teller.of(ev.Published)[-1]
    assert (published.notices, published.lag_ms, published.changed) == (0, None, True)
    assert published.replaced is not None
    assert published.covered


@rule("OBS-01")
def test_updates_of_resources_are_told_apart_from_notices() -> None:
    offer = evolve(ALL, subscribe=True)
    teller = Teller(offer)
    teller.link()
    teller.hear(i.UpdatesWanted(frozenset({"a:1"}), 1_000))
    teller.hear(i.UpdatesOpened(1, frozenset({"a:1"}), 1_000))
    teller.hear(i.UpdateHeard("a:1", 1, 1_000))
    teller.hear(i.UpdateHeard("a:1", 9, 1_000))
    assert teller.of(ev.ContentNoticed) == [
        ev.ContentNoticed(at_ms=1_000, epoch=1, serial=1, believed=True),
        ev.ContentNoticed(at_ms=1_000, epoch=1, serial=9, believed=False),
    ]


# --- links, credentials, parking, lateness --------------------------------------------------------


@rule("OBS-09")
def test_what_was_agreed_on_is_told_once_for_each_link() -> None:
    teller = listed()
    teller.lose()
    teller.wait()
    teller.link()
    assert [(a.epoch, a.version, a.capabilities) for a in teller.of(ev.Agreed)] == [
        (1, "2026-07-28", teller.offer),
        (2, "2026-07-28", teller.offer),
    ]
    moved = [(moved.epoch, moved.after) for moved in teller.of(ev.LinkMoved)]
    assert moved == [
        (1, LinkPhase.OPENING),
        (1, LinkPhase.PROBING),
        (1, LinkPhase.LIVE),
        (1, LinkPhase.WAITING),
        (2, LinkPhase.OPENING),
        (2, LinkPhase.PROBING),
        (2, LinkPhase.LIVE),
    ]
    waiting = teller.of(ev.LinkMoved)[3]
    assert (waiting.failures, waiting.due_at_ms) == (1, 1_500)


def test_the_channel_for_notices_says_what_it_carries_and_why_it_ended() -> None:
    teller = listed()
    teller.hear(i.PushEnded(1, TRANSIENT, teller.now_ms))
    told = [(m.before, m.after, m.granted, m.failure) for m in teller.of(ev.ListenMoved)]
    none: frozenset[Channel] = frozenset()
    assert told == [
        (ListenPhase.OFF, ListenPhase.ASKED, none, None),
        (ListenPhase.ASKED, ListenPhase.OPEN, {Channel.TOOLS}, None),
        (ListenPhase.OPEN, ListenPhase.RESTING, none, TRANSIENT),
    ]
    assert teller.of(ev.ListenMoved)[0].carrier is Carrier.SUBSCRIPTION
    assert [doubted.doubt for doubted in teller.of(ev.Doubted)] == [Doubt.UNCOVERED]


def test_what_is_parked_says_why_and_what_ends_it() -> None:
    teller = listed()
    teller.refresh()
    teller.fail(UNAUTHORIZED)
    assert [parked.why for parked in teller.of(ev.WasParked)] == [Parked.AUTHORIZATION]
    teller.hear(i.CredentialsChanged("A", teller.now_ms))
    assert len(teller.of(ev.Unparked)) == 1
    teller.hear(i.CredentialsChanged("B", teller.now_ms))
    assert [changed.foreign for changed in teller.of(ev.CredentialsMoved)] == [False, True]
    assert [gone.kind for gone in teller.of(ev.Withdrawn)] == [TOOLS]


@rule("OBS-07")
def test_a_late_answer_is_told_with_kind_and_serial() -> None:
    teller = _silent()
    told = teller.page("old", serial=1)
    assert told == (
        ev.Noted(
            at_ms=teller.now_ms,
            epoch=1,
            rule="ATOM-13",
            text="late answer",
            late=True,
            kind=TOOLS,
            serial=1,
        ),
    )


@rule("OBS-11")
def test_a_declared_method_that_is_missing_is_a_defect() -> None:
    teller = _refused_as(METHOD_NOT_FOUND)
    assert [(noted.rule, noted.late) for noted in teller.of(ev.Noted)] == [("CAP-16", False)]


@rule("OBS-04")
def test_what_the_model_was_given_is_told() -> None:
    teller = listed()
    teller.hear(i.SurfaceAdopted(TOOLS, 1, 1, teller.now_ms))
    assert teller.told[-1] == ev.Adopted(
        at_ms=1_000, epoch=1, kind=TOOLS, generation=1, count=1, listed=1
    )


def test_what_changes_nothing_is_no_event() -> None:
    teller = listed()
    assert teller.hear(i.TimePassed(teller.now_ms)) == ()
    assert teller.hear(i.ReadWanted(TOOLS, teller.now_ms)) == ()


# --- numbers --------------------------------------------------------------------------------------


def test_events_are_counted() -> None:
    teller = listed()
    teller.notice()
    teller.notice()
    teller.wait()
    teller.fail(TRANSIENT)
    teller.wait()
    teller.page("b")
    teller.page("b", serial=1)
    teller.lose()
    teller.wait()
    counted = tally(Tally(), teller.told)
    tools = counted.of(TOOLS)
    assert (tools.notices, tools.merged) == (2, 1)
    assert tools.walks == {Outcome.CHANGED: 2, Outcome.FAILED: 1}
    last = teller.of(ev.WalkEnded)[-1]
    assert tools.last == Walked(
        *(last.at_ms, last.cause, last.outcome, last.reason),
        *(last.pages, last.entries, last.duration_ms),
    )
    assert (counted.reconnects, counted.late) == (1, 1)
    assert counted.of(Kind.PROMPTS) == Tally().of(Kind.PROMPTS)


# --- whole sessions -------------------------------------------------------------------------------


class Followed(WildPeer):
    """A session of which each step is folded, and the story checked against the states."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.walks: dict[Kind, int] = {}
        self.told: list[Event] = []
        super().__init__(policy())

    def step(self, heard: SessionInput) -> tuple[Effect, ...]:
        before = self.session
        effects = super().step(heard)
        self.seen, told = fold(self.seen, Fed(heard, before, self.session, effects))
        self.told += told
        for event in told:
            self._follow(event)
        walks = {c.kind: c.walk.first for c in self.session.catalogs if c.walk is not None}
        assert self.walks == walks
        assert _published(told) == [one for one in effects if isinstance(one, e.Publish)]
        notes = [one for one in effects if isinstance(one, e.Note)]
        assert sum(isinstance(one, ev.Noted) for one in told) == sum(
            not (isinstance(heard, i.NoticeHeard) and note.rule.startswith("SUB-"))
            for note in notes
        )
        return effects

    def _follow(self, event: Event) -> None:
        match event:
            case ev.WalkBegan():
                assert event.kind not in self.walks
                self.walks[event.kind] = event.walk
            case ev.PageListed():
                assert self.walks[event.kind] == event.walk
                assert event.took_ms >= 0
            case ev.WalkEnded():
                assert self.walks.pop(event.kind) == event.walk
                assert 0 <= event.took_ms <= event.duration_ms
                assert event.cursors <= event.pages
                assert (event.reason == "") is (event.outcome in (Outcome.CHANGED, Outcome.CHECKED))
            case ev.Published():
                assert event.lag_ms is None or (event.lag_ms >= 0 and event.notices > 0)
            case _:
                pass


def _published(told: tuple[Event, ...]) -> list[e.Publish]:
    return [
        e.Publish(one.kind, one.snapshot, one.changed)
        for one in told
        if isinstance(one, ev.Published)
    ]


@rule("OBS-07")
@rule("OBS-08")
@given(start=st.sampled_from(["unknown", "modern", "legacy"]), data=st.data())
def test_the_story_is_true_whatever_a_peer_says(start: str, data: st.DataObject) -> None:
    """Walks begin and end as in the states, lists are published as in the effects, no other."""
    peer = Followed()
    peer.start(start)
    for _ in range(data.draw(st.integers(1, 15))):
        peer.act(data)
