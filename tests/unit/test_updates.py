"""Subscriptions to single resources, in both eras: asked for, granted, made again, heard."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from relist import inputs as i
from relist.core import Relist
from relist.effects import (
    CancelSubscribe,
    CancelUpdates,
    ContentChanged,
    ContentUncovered,
    Effect,
    Note,
    OpenUpdates,
    RequestPage,
    RequestSubscribe,
    RequestUnsubscribe,
)
from relist.errors import ImpossibleAct
from relist.updates import Updates, covered_uris, updates_deadline_ms
from relist.values import KINDS, Capabilities, Channel, Failure, ListenPhase, Wire
from support.one import LEGACY, METHOD_NOT_FOUND, MODERN, TRANSIENT, policy

rule = pytest.mark.rule
NO_PUSH = Capabilities(frozenset(KINDS), frozenset(), subscribe=True)
WITHOUT = Capabilities(frozenset(KINDS), frozenset(Channel))
ONE, TWO = "file:///one", "file:///two"


@dataclass
class Reader:
    """A session whose effects about resources are looked at."""

    rules: dict[str, Any] = field(default_factory=dict[str, Any])
    wire: Wire = Wire.PIPE
    now_ms: int = 1_000
    told: list[Effect] = field(default_factory=list[Effect])

    def __post_init__(self) -> None:
        self.core = Relist(self.wire, policy(**self.rules), "A")
        self.hear(i.ConnectWanted(self.now_ms))

    @property
    def updates(self) -> Updates:
        return self.core.session.updates

    def hear(self, heard: i.SessionInput) -> None:
        self.core.receive(heard)
        about = (*(OpenUpdates, CancelUpdates, ContentChanged, ContentUncovered),)
        requests = (RequestSubscribe, RequestUnsubscribe, CancelSubscribe)
        self.all = self.core.effects()
        self.told = [told for told in self.all if isinstance(told, (*about, *requests))]

    def notes(self) -> list[str]:
        return [told.rule for told in self.all if isinstance(told, Note)]

    def modern(self, offered: Capabilities = NO_PUSH) -> None:
        self.hear(i.TransportOpened(self.core.session.link.epoch, self.now_ms))
        serial = self.core.session.link.serial
        self.hear(i.DiscoverAnswered(serial, (MODERN,), offered, self.now_ms))

    def legacy(self, offered: Capabilities = NO_PUSH) -> None:
        self.hear(i.TransportOpened(self.core.session.link.epoch, self.now_ms))
        serial = self.core.session.link.serial
        self.hear(i.DiscoverFailed(serial, METHOD_NOT_FOUND, self.now_ms))
        serial = self.core.session.link.serial
        self.hear(i.InitializeAnswered(serial, LEGACY, offered, self.now_ms))

    def lose(self) -> None:
        self.hear(i.TransportLost(self.core.session.link.epoch, self.now_ms))

    def wake(self) -> None:
        at_ms = self.core.deadline_ms()
        assert at_ms is not None
        self.now_ms = at_ms
        self.hear(i.TimePassed(at_ms))

    def want(self, uri: str) -> None:
        self.hear(i.UpdatesWanted(self.updates.wanted | {uri}, self.now_ms))

    def unwant(self, uri: str) -> None:
        self.hear(i.UpdatesWanted(self.updates.wanted - {uri}, self.now_ms))

    def opened(self, *uris: str, serial: int | None = None) -> None:
        serial = self.updates.listen.serial if serial is None else serial
        self.hear(i.UpdatesOpened(serial, frozenset(uris), self.now_ms))

    def updated(self, uri: str, serial: int | None = None) -> None:
        self.hear(i.UpdateHeard(uri, serial, self.now_ms))

    def answered(self, serial: int) -> None:
        self.hear(i.SubscribeAnswered(serial, None, self.now_ms))

    def failed(self, serial: int, failure: Failure) -> None:
        self.hear(i.SubscribeAnswered(serial, failure, self.now_ms))


def modern(*granted: str) -> Reader:
    reader = Reader()
    reader.modern()
    for uri in granted:
        reader.want(uri)
    if granted:
        reader.opened(*granted)
    return reader


def legacy(*held: str) -> Reader:
    reader = Reader()
    reader.legacy()
    for number, uri in enumerate(held, 1):
        reader.want(uri)
        reader.answered(number)
    return reader


# --- modern ---------------------------------------------------------------------------------------


@rule("RES-04")
def test_modern_names_the_resources_in_a_listen_of_their_own() -> None:
    reader = modern()
    reader.want(ONE)
    assert reader.told == [OpenUpdates(1, frozenset({ONE}))]
    assert covered_uris(reader.updates) == frozenset()
    reader.opened(ONE)
    assert covered_uris(reader.updates) == {ONE}


@rule("SUB-08")
def test_what_was_granted_is_compared_uri_by_uri() -> None:
    reader = modern()
    reader.want(ONE)
    reader.want(TWO)
    reader.opened(TWO, "file:///three")
    assert covered_uris(reader.updates) == {TWO}
    assert "SUB-40" in reader.notes()


@rule("SUB-34")
def test_another_wish_keeps_the_old_stream_until_the_new_one_stands() -> None:
    reader = modern(ONE)
    reader.want(TWO)
    assert reader.told == [OpenUpdates(2, frozenset({ONE, TWO}))]
    assert covered_uris(reader.updates) == {ONE}
    reader.updated(ONE, 1)
    assert reader.told == [ContentChanged(ONE)]
    reader.opened(ONE, TWO)
    assert reader.told == [CancelUpdates(1), ContentUncovered(frozenset({ONE}))]
    assert covered_uris(reader.updates) == {ONE, TWO}


@rule("SUB-34")
def test_nobody_interested_any_more_ends_the_stream() -> None:
    reader = modern(ONE)
    reader.unwant(ONE)
    assert CancelUpdates(1) in reader.told
    assert reader.updates.listen.phase is ListenPhase.OFF


@rule("RES-01")
@rule("SUB-34")
def test_wishes_for_resources_leave_the_lists_alone() -> None:
    reader = modern()
    before = reader.core.session
    reader.want(ONE)
    reader.opened(ONE)
    reader.updated(ONE, 1)
    after = reader.core.session
    assert after.listen is before.listen
    assert all(a is b for a, b in zip(after.catalogs, before.catalogs, strict=True))
    assert not any(isinstance(told, RequestPage) for told in reader.all)


@rule("SUB-14")
def test_an_update_of_a_foreign_subscription_changes_nothing() -> None:
    reader = modern(ONE)
    reader.updated(ONE, 7)
    assert (reader.told, reader.notes()) == ([], ["SUB-14"])


@rule("SUB-15")
def test_an_update_without_a_tag_is_believed_and_noted() -> None:
    reader = modern(ONE)
    reader.updated(ONE, None)
    assert (reader.told, reader.notes()) == ([ContentChanged(ONE)], ["SUB-15"])


@rule("SUB-16")
def test_an_update_before_its_acknowledgement_is_believed_and_noted() -> None:
    reader = modern()
    reader.want(ONE)
    reader.updated(ONE, 1)
    assert (reader.told, reader.notes()) == ([ContentChanged(ONE)], ["SUB-16"])


@rule("RES-07")
@rule("SUB-24")
def test_modern_wishes_outlive_the_link() -> None:
    reader = modern(ONE)
    reader.lose()
    assert reader.told == [ContentUncovered(frozenset({ONE}))]
    reader.wake()
    reader.modern()
    assert reader.told == [OpenUpdates(2, frozenset({ONE}))]


@rule("SUB-26")
def test_an_ended_stream_is_asked_for_again_after_a_backoff() -> None:
    reader = modern(ONE)
    reader.hear(i.UpdatesEnded(1, None, reader.now_ms))
    assert reader.told == [ContentUncovered(frozenset({ONE}))]
    reader.wake()
    assert OpenUpdates(2, frozenset({ONE})) in reader.told


# --- legacy ---------------------------------------------------------------------------------------


@rule("RES-03")
def test_legacy_subscribes_to_each_and_ends_each() -> None:
    reader = legacy()
    reader.want(ONE)
    assert reader.told == [RequestSubscribe(1, ONE)]
    assert covered_uris(reader.updates) == frozenset()
    reader.answered(1)
    assert covered_uris(reader.updates) == {ONE}
    reader.unwant(ONE)
    assert reader.told == [RequestUnsubscribe(2, ONE)]
    reader.answered(2)
    assert covered_uris(reader.updates) == frozenset()


def test_a_wish_taken_back_before_the_answer_is_undone_after_it() -> None:
    reader = legacy()
    reader.want(ONE)
    reader.unwant(ONE)
    assert reader.told == []
    reader.answered(1)
    assert reader.told == [RequestUnsubscribe(2, ONE)]
    reader.want(ONE)
    reader.answered(2)
    assert reader.told == [RequestSubscribe(3, ONE)]


def test_a_passing_failure_is_tried_again_after_a_backoff() -> None:
    reader = legacy()
    reader.want(ONE)
    reader.failed(1, TRANSIENT)
    assert reader.told == []
    (first,) = reader.updates.resting
    first_ms = first.due_at_ms
    reader.now_ms = first_ms
    reader.hear(i.TimePassed(first_ms))
    assert reader.told == [RequestSubscribe(2, ONE)]
    reader.failed(2, TRANSIENT)
    (again,) = reader.updates.resting
    assert again.due_at_ms - first_ms > first_ms - 1_000


def test_one_that_keeps_failing_delays_no_other() -> None:
    reader = legacy()
    reader.want(ONE)
    reader.failed(1, TRANSIENT)
    reader.want(TWO)
    reader.failed(2, Failure("x", status=429, retry_after_ms=3_600_000))
    assert reader.core.deadline_ms() == 1_500
    reader.wake()
    assert reader.told == [RequestSubscribe(3, ONE)]
    reader.answered(3)
    assert reader.told == []
    assert covered_uris(reader.updates) == {ONE}
    assert [rests.uri for rests in reader.updates.resting] == [TWO]


def test_a_grant_begins_the_count_of_failures_anew() -> None:
    reader = legacy()
    reader.want(ONE)
    waits: list[int] = []
    for serial in (1, 2, 3):
        reader.failed(serial, TRANSIENT)
        began_ms = reader.now_ms
        reader.wake()
        waits.append(reader.now_ms - began_ms)
    reader.answered(4)
    reader.unwant(ONE)
    reader.answered(5)
    reader.want(ONE)
    reader.failed(6, TRANSIENT)
    began_ms = reader.now_ms
    reader.wake()
    assert [*waits, reader.now_ms - began_ms] == [500, 1_000, 2_000, 500]


def test_what_is_wanted_no_more_does_not_rest() -> None:
    reader = legacy()
    reader.want(ONE)
    reader.failed(1, TRANSIENT)
    reader.unwant(ONE)
    assert reader.updates.resting == ()
    assert reader.told == []


def test_a_new_link_asks_at_once_for_what_rested() -> None:
    reader = legacy()
    reader.want(ONE)
    reader.failed(1, Failure("x", status=429, retry_after_ms=3_600_000))
    reader.lose()
    reader.wake()
    reader.legacy()
    assert reader.told == [RequestSubscribe(2, ONE)]


@rule("SUB-14")
def test_an_update_of_a_request_that_was_given_up_is_not_believed() -> None:
    reader = modern()
    reader.want(ONE)
    reader.hear(i.UpdatesEnded(1, TRANSIENT, reader.now_ms))
    reader.updated(ONE, 1)
    assert (reader.told, reader.notes()) == ([], ["SUB-14"])


@pytest.mark.parametrize("failure", [TRANSIENT, METHOD_NOT_FOUND])
def test_what_nobody_wants_any_more_leaves_nothing_behind(failure: Failure) -> None:
    """No rest whose end changes nothing, no refusal: wanted again it is tried again."""
    reader = legacy()
    bare = reader.updates
    for serial in (1, 2, 3):
        reader.want(ONE)
        assert reader.told == [RequestSubscribe(serial, ONE)]
        if serial == 2:
            reader.failed(serial, failure)
            reader.unwant(ONE)
        else:
            reader.unwant(ONE)
            reader.failed(serial, failure)
    left = reader.updates
    assert (left.resting, left.refused, left.asked) == (bare.resting, bare.refused, ())
    assert updates_deadline_ms(left) is None


@pytest.mark.parametrize(
    "failure", [METHOD_NOT_FOUND, Failure("x", code=-32602), Failure("x", status=401)]
)
def test_any_other_failure_is_not_tried_again_on_this_link(failure: Failure) -> None:
    reader = legacy()
    reader.want(ONE)
    reader.failed(1, failure)
    assert reader.updates.resting == ()
    reader.want(TWO)
    assert reader.told == [RequestSubscribe(2, TWO)]
    reader.unwant(ONE)
    reader.want(ONE)
    assert reader.told == [RequestSubscribe(3, ONE)]
    reader.lose()
    reader.core.receive(i.ConnectWanted(reader.now_ms))
    reader.legacy()
    assert reader.told == [RequestSubscribe(4, ONE), RequestSubscribe(5, TWO)]


def test_an_end_that_fails_counts_as_an_end() -> None:
    reader = legacy(ONE)
    reader.unwant(ONE)
    reader.failed(2, TRANSIENT)
    assert covered_uris(reader.updates) == frozenset()
    assert reader.updates.resting == ()


@rule("FAIL-09")
def test_a_request_without_an_answer_is_cancelled_and_tried_again() -> None:
    reader = Reader({"request_limit_ms": 10, "walk_limit_ms": 10})
    reader.legacy(Capabilities(frozenset(), frozenset(), subscribe=True))
    reader.want(ONE)
    reader.wake()
    assert reader.told == [CancelSubscribe(1)]
    reader.wake()
    assert reader.told == [RequestSubscribe(2, ONE)]


@rule("FAIL-09")
def test_each_request_has_a_limit_of_its_own() -> None:
    reader = legacy()
    reader.want(ONE)
    reader.now_ms += 10
    reader.want(TWO)
    reader.wake()
    assert reader.told == [CancelSubscribe(1)]
    assert [asked.uri for asked in reader.updates.asked] == [TWO]


@rule("ATOM-13")
@pytest.mark.parametrize("failure", [None, TRANSIENT])
def test_a_late_answer_changes_nothing(failure: Failure | None) -> None:
    reader = legacy(ONE)
    before = reader.core.session
    reader.hear(i.SubscribeAnswered(9, failure, 0))
    assert reader.core.session is before
    assert reader.notes() == ["ATOM-13"]


@rule("RES-07")
def test_legacy_wishes_outlive_the_link() -> None:
    reader = legacy(ONE)
    reader.lose()
    assert reader.told == [ContentUncovered(frozenset({ONE}))]
    reader.wake()
    reader.legacy()
    assert reader.told == [RequestSubscribe(2, ONE)]


# --- both -----------------------------------------------------------------------------------------


@rule("CAP-09")
@rule("CAP-10")
@pytest.mark.parametrize("connect", [Reader.modern, Reader.legacy])
def test_nothing_is_asked_for_that_was_not_declared(connect: Any) -> None:
    reader = Reader()
    connect(reader, WITHOUT)
    reader.want(ONE)
    assert reader.told == []
    reader.lose()
    reader.wake()
    connect(reader, NO_PUSH)
    assert len(reader.told) == 1


@rule("RES-05")
@pytest.mark.parametrize("begin", [modern, legacy])
def test_an_update_may_concern_what_lies_below(begin: Any) -> None:
    reader = begin("file:///dir")
    serial = reader.updates.listen.stream
    reader.updated("file:///dir/sub", serial)
    assert reader.told == [ContentChanged("file:///dir/sub")]


@rule("RES-17")
@pytest.mark.parametrize("begin", [modern, legacy])
def test_an_update_that_nobody_asked_for_is_noted(begin: Any) -> None:
    reader = begin("file:///dir")
    before = reader.core.session
    reader.updated("file:///directory", reader.updates.listen.stream)
    assert (reader.told, reader.notes()) == ([], ["RES-17"])
    assert reader.core.session is before


@rule("SUB-37")
def test_each_era_has_its_own_way() -> None:
    assert not any(isinstance(told, OpenUpdates) for told in legacy(ONE).all)
    assert not any(isinstance(told, RequestSubscribe) for told in modern(ONE).all)


def test_a_server_that_offers_it_no_more_is_left_in_peace() -> None:
    reader = Reader({"discovery_lifetime_ms": 0, "discovery_gap_ms": 1})
    reader.modern()
    reader.want(ONE)
    reader.opened(ONE)
    reader.now_ms += 10
    reader.hear(i.ReadWanted(KINDS[0], reader.now_ms))
    serial = reader.core.session.link.serial
    reader.hear(i.DiscoverAnswered(serial, (MODERN,), WITHOUT, reader.now_ms))
    assert reader.told == [CancelUpdates(1), ContentUncovered(frozenset({ONE}))]
    assert reader.updates.wanted == {ONE}


def test_more_wishes_than_policy_allows_are_refused() -> None:
    reader = Reader({"subscriptions_max": 1})
    reader.want(ONE)
    reader.want(ONE)
    before = reader.core.session
    with pytest.raises(ImpossibleAct, match="subscriptions_max"):
        reader.want(TWO)
    assert reader.core.session is before
