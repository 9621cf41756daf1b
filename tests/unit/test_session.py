"""One server: routing, order of consequences, and which notices are believed (D-15)."""

import pickle

import pytest

from relist import inputs as i
from relist.core import Relist
from relist.effects import Effect, Note, OpenListen, OpenTransport, RequestPage, SendInitialized
from relist.errors import ImpossibleAct
from relist.machine import Hit
from relist.session import deadline_ms, new_session
from relist.values import (
    KINDS,
    Capabilities,
    Channel,
    Doubt,
    Failure,
    Kind,
    LinkPhase,
    ListenPhase,
    Phase,
    Scope,
    Wire,
)
from support.alphabet import FULL
from support.one import LEGACY, METHOD_NOT_FOUND, MODERN, UNAUTHORIZED, items, policy

rule = pytest.mark.rule
ALL = frozenset(Channel)


class Client:
    """``Relist`` with a clock, and answers in one call."""

    def __init__(self, wire: Wire = Wire.PIPE) -> None:
        self.core = Relist(wire, policy(), "A")
        self.now_ms = 1_000
        self.told: list[Effect] = []
        self.hear(i.ConnectWanted(self.now_ms))

    def hear(self, heard: i.SessionInput) -> None:
        self.core.receive(heard)
        self.told = list(self.core.effects())

    def phase(self, kind: Kind = Kind.TOOLS) -> Phase:
        return self.core.session.catalog(kind).phase

    def doubt(self, kind: Kind = Kind.TOOLS) -> Doubt | None:
        return self.core.session.catalog(kind).doubt

    def requested(self) -> list[Kind]:
        return [told.kind for told in self.told if isinstance(told, RequestPage)]

    def notes(self) -> list[str]:
        return [told.rule for told in self.told if isinstance(told, Note)]

    def open(self) -> None:
        self.hear(i.TransportOpened(self.core.session.link.epoch, self.now_ms))

    def modern(self, capabilities: Capabilities = FULL) -> None:
        self.open()
        serial = self.core.session.link.serial
        self.hear(i.DiscoverAnswered(serial, (MODERN,), capabilities, self.now_ms))

    def legacy(self, capabilities: Capabilities = FULL) -> None:
        self.open()
        link = self.core.session.link
        if link.phase is LinkPhase.PROBING:
            self.hear(i.DiscoverFailed(link.serial, METHOD_NOT_FOUND, self.now_ms))
        serial = self.core.session.link.serial
        self.hear(i.InitializeAnswered(serial, LEGACY, capabilities, self.now_ms))

    def acknowledged(self, granted: frozenset[Channel] = ALL) -> None:
        self.hear(i.PushOpened(self.core.session.listen.serial, granted, self.now_ms))

    def page(self, kind: Kind, *texts: str) -> None:
        serial = self.core.session.catalog(kind).serial
        self.hear(
            i.PageArrived(kind, serial, items(*texts), None, None, Scope.PRIVATE, self.now_ms)
        )

    def page_of(self, kind: Kind, *texts: str) -> None:
        """The kind is listed anew."""
        self.hear(i.RefreshWanted(kind, self.now_ms))
        self.page(kind, *texts)

    def listed(self) -> None:
        for kind in KINDS:
            self.page(kind, "a")
            assert self.phase(kind) is Phase.FRESH

    def notice(self, channel: Channel = Channel.TOOLS, serial: int | None = None) -> None:
        self.hear(i.NoticeHeard(channel, serial, self.now_ms))


def modern() -> Client:
    """A modern client with all four lists fresh and covered."""
    client = Client()
    client.modern()
    client.acknowledged()
    client.listed()
    return client


def legacy() -> Client:
    client = Client()
    client.legacy()
    client.listed()
    return client


# --- order ----------------------------------------------------------------------------------------


@rule("LIFE-03")
@rule("NOTE-11")
def test_legacy_initialized_comes_before_any_list_request() -> None:
    client = Client()
    client.legacy()
    assert isinstance(client.told[0], SendInitialized)
    assert client.requested() == list(KINDS)
    assert all(client.core.session.catalog(kind).standing.covered for kind in KINDS)


@rule("SUB-27")
def test_modern_listens_waits_and_then_lists() -> None:
    client = Client()
    client.modern()
    assert client.told == [OpenListen(1, ALL)]
    client.acknowledged()
    assert client.requested() == list(KINDS)


@rule("SUB-30")
@rule("SUB-31")
@pytest.mark.parametrize("failure", [None, METHOD_NOT_FOUND, Failure("x", status=503)])
def test_modern_lists_uncovered_when_push_is_refused(failure: Failure | None) -> None:
    client = Client()
    client.modern()
    client.hear(i.PushEnded(1, failure, client.now_ms))
    assert client.requested() == list(KINDS)
    assert not any(client.core.session.catalog(kind).standing.covered for kind in KINDS)


@rule("SUB-30")
def test_modern_lists_uncovered_when_the_acknowledgement_is_overdue() -> None:
    client = Client()
    client.modern()
    at_ms = client.core.deadline_ms()
    assert at_ms is not None
    client.now_ms = at_ms
    client.hear(i.TimePassed(at_ms))
    assert client.requested() == list(KINDS)


@rule("CAP-14")
@rule("STATE-09")
@rule("CAP-01")
@rule("CAP-06")
def test_an_undeclared_kind_is_never_requested() -> None:
    some = Capabilities(frozenset({Kind.TOOLS}), frozenset())
    client = Client()
    client.legacy(some)
    assert client.requested() == [Kind.TOOLS]
    for kind in KINDS[1:]:
        assert client.core.read(kind, client.now_ms).hit is Hit.UNSUPPORTED
        client.hear(i.RefreshWanted(kind, client.now_ms))
        assert client.told == []


@rule("SUB-07")
@rule("SUB-05")
@rule("SUB-28")
def test_only_granted_channels_are_covered() -> None:
    client = Client()
    client.modern()
    client.acknowledged(frozenset({Channel.RESOURCES}))
    covered = {kind for kind in KINDS if client.core.session.catalog(kind).standing.covered}
    assert covered == {Kind.RESOURCES, Kind.TEMPLATES}


@rule("SUB-28")
@rule("REC-06")
def test_a_lost_channel_doubts_what_it_covered() -> None:
    client = modern()
    client.hear(i.PushEnded(1, None, client.now_ms))
    assert {client.doubt(kind) for kind in KINDS} == {Doubt.UNCOVERED}


# --- routing --------------------------------------------------------------------------------------


@rule("NOTE-04")
@rule("NOTE-05")
@pytest.mark.parametrize(
    ("channel", "kinds"),
    [
        (Channel.TOOLS, {Kind.TOOLS}),
        (Channel.PROMPTS, {Kind.PROMPTS}),
        (Channel.RESOURCES, {Kind.RESOURCES, Kind.TEMPLATES}),
    ],
)
def test_a_notice_reaches_the_kinds_of_its_channel(channel: Channel, kinds: set[Kind]) -> None:
    for client, serial in ((modern(), 1), (legacy(), None)):
        client.notice(channel, serial)
        assert {kind for kind in KINDS if client.phase(kind) is Phase.STALE} == kinds
        assert client.notes() == []


@rule("STATE-05")
@rule("ATOM-21")
def test_a_failing_kind_leaves_the_others_alone() -> None:
    client = Client()
    client.legacy()
    before = client.core.session
    serial = before.catalog(Kind.TOOLS).serial
    client.hear(i.PageFailed(Kind.TOOLS, serial, UNAUTHORIZED, client.now_ms))
    for kind in KINDS[1:]:
        assert client.core.session.catalog(kind) is before.catalog(kind)
    assert client.core.session.link is before.link


def test_the_same_serial_of_another_kind_is_another_answer() -> None:
    client = Client()
    client.legacy()
    client.page(Kind.PROMPTS, "p")
    assert client.phase(Kind.PROMPTS) is Phase.FRESH
    assert client.phase(Kind.TOOLS) is Phase.DISCOVERING


# --- notices that may not be believed -------------------------------------------------------------


@rule("SUB-14")
@pytest.mark.parametrize("serial", [0, 2, 99, -1])
def test_a_foreign_tag_changes_nothing(serial: int) -> None:
    client = modern()
    before = client.core.session
    client.notice(serial=serial)
    assert client.core.session is before
    assert client.notes() == ["SUB-14"]


@rule("SUB-15")
def test_a_missing_tag_is_a_defect_but_a_reason_for_doubt() -> None:
    client = modern()
    client.notice(serial=None)
    assert client.phase() is Phase.STALE
    assert client.notes() == ["SUB-15"]


@rule("SUB-13")
def test_a_channel_that_was_not_granted_changes_nothing() -> None:
    client = Client()
    client.modern()
    client.acknowledged(frozenset({Channel.TOOLS}))
    client.listed()
    before = client.core.session
    client.notice(Channel.PROMPTS, 1)
    assert client.core.session is before
    assert client.notes() == ["SUB-13"]


@rule("SUB-16")
def test_a_notice_before_its_acknowledgement_is_a_defect_but_a_reason_for_doubt() -> None:
    client = modern()
    client.hear(i.PushEnded(1, None, client.now_ms))
    at_ms = client.core.session.listen.due_at_ms
    assert at_ms is not None
    client.now_ms = at_ms
    client.hear(i.TimePassed(at_ms))
    assert client.core.session.listen.phase is ListenPhase.ASKED
    client.hear(i.RefreshWanted(Kind.TOOLS, at_ms))
    client.notice(serial=2)
    assert client.notes() == ["SUB-16"]
    walk = client.core.session.catalog(Kind.TOOLS).walk
    assert walk is not None
    assert walk.spoiled


@rule("SUB-09")
def test_what_else_comes_before_an_acknowledgement_is_of_no_matter() -> None:
    client = Client()
    client.modern()
    client.notice(serial=7)
    client.notice(serial=None)
    client.acknowledged()
    assert client.core.session.listen.phase is ListenPhase.OPEN
    assert all(client.core.session.catalog(kind).standing.covered for kind in KINDS)


@rule("SUB-14")
def test_a_notice_of_a_finished_subscription_changes_nothing() -> None:
    client = modern()
    client.hear(i.PushEnded(1, None, client.now_ms))
    before = client.core.session
    client.notice(serial=1)
    assert client.core.session is before
    assert client.notes() == ["SUB-14"]


def test_legacy_notices_have_no_tag() -> None:
    client = legacy()
    client.notice(serial=None)
    assert client.phase() is Phase.STALE
    assert client.notes() == []


# --- caller and clock -----------------------------------------------------------------------------


@pytest.mark.parametrize("generation", [-1, 0, 2])
def test_a_proof_about_a_list_that_never_was_is_an_impossible_act(generation: int) -> None:
    client = legacy()
    before = client.core.session
    with pytest.raises(ImpossibleAct, match=f"generation {generation} was never published"):
        client.hear(i.StalenessProved(Kind.TOOLS, generation, client.now_ms))
    assert client.core.session is before
    assert client.core.effects() == ()


@rule("ATOM-16")
def test_each_kind_has_a_surface_of_its_own() -> None:
    client = modern()
    for count, kind in enumerate((*KINDS, KINDS[0])):
        client.page_of(kind, "a", "b", "c", "d")
        client.hear(i.SurfaceAdopted(kind, 2, count, client.now_ms))
    adopted = client.core.session.adopted
    assert [one and (one.generation, one.count) for one in adopted] == [
        (2, count) for count in (4, 1, 2, 3)
    ]


def test_without_a_partition_there_is_one_all_the_same() -> None:
    assert {one.standing.partition for one in new_session(Wire.PIPE).catalogs} == {""}


def test_effects_are_handed_out_once() -> None:
    core = Relist(Wire.PIPE, policy())
    core.receive(i.ConnectWanted(0))
    assert core.effects() == (OpenTransport(1),)
    assert core.effects() == ()


def test_the_deadline_is_the_earliest_of_all() -> None:
    client = legacy()
    assert client.core.deadline_ms() is None
    client.now_ms += 500
    client.notice(Channel.PROMPTS)
    client.now_ms += 10
    client.notice(Channel.TOOLS)
    assert client.core.deadline_ms() == 1_500 + client.core.policy.gather_ms
    assert deadline_ms(new_session(Wire.HTTP), policy()) is None


@rule("TTL-36")
def test_nothing_happens_without_a_reason() -> None:
    client = legacy()
    before = client.core.session
    client.hear(i.TimePassed(client.now_ms + 10**9))
    assert client.core.session is before
    assert client.told == []


def test_a_session_is_a_value() -> None:
    session = modern().core.session
    copy = pickle.loads(pickle.dumps(session))
    assert copy == session
    assert hash(copy) == hash(session)


# --- credentials and reconnects -------------------------------------------------------------------


@rule("AUTH-12")
@rule("AUTH-03")
def test_other_credentials_withdraw_and_renew_everything() -> None:
    client = modern()
    client.hear(i.CredentialsChanged("B", client.now_ms))
    kinds = [type(told).__name__ for told in client.told]
    assert kinds.count("Withdraw") == 4
    assert kinds[-2:] == ["CloseTransport", "OpenTransport"]
    assert all(client.core.read(kind, 0).hit is Hit.MISS for kind in KINDS)
    client.modern()
    assert client.told == [OpenListen(2, ALL)]


@rule("AUTH-08")
def test_a_notice_under_other_credentials_changes_nothing() -> None:
    client = modern()
    client.hear(i.CredentialsChanged("B", client.now_ms))
    client.modern()
    client.acknowledged()
    before = client.core.session
    client.notice(serial=1)
    assert client.core.session is before
    assert client.notes() == ["SUB-14"]


@rule("FAIL-04")
def test_a_refreshed_token_of_the_same_partition_ends_parking_and_withdraws_nothing() -> None:
    client = modern()
    client.hear(i.RefreshWanted(Kind.TOOLS, client.now_ms))
    serial = client.core.session.catalog(Kind.TOOLS).serial
    client.hear(i.PageFailed(Kind.TOOLS, serial, UNAUTHORIZED, client.now_ms))
    client.hear(i.CredentialsChanged("A", client.now_ms))
    assert client.core.read(Kind.TOOLS, client.now_ms).snapshot is not None
    client.modern()
    client.acknowledged()
    assert Kind.TOOLS in client.requested()


@rule("ATOM-22")
@rule("FAIL-22")
@rule("REC-01")
@rule("REC-03")
def test_a_lost_transport_takes_walks_and_coverage_with_it() -> None:
    client = Client()
    client.legacy()
    old = {kind: client.core.session.catalog(kind).serial for kind in KINDS}
    client.hear(i.TransportLost(1, client.now_ms))
    assert {client.phase(kind) for kind in KINDS} == {Phase.DISCONNECTED}
    client.now_ms += 500
    client.hear(i.TimePassed(client.now_ms))
    client.legacy()
    assert client.requested() == list(KINDS)
    client.hear(
        i.PageArrived(
            Kind.TOOLS, old[Kind.TOOLS], items("old"), None, None, Scope.PUBLIC, client.now_ms
        )
    )
    assert client.notes() == ["ATOM-13"]
    assert client.phase() is Phase.DISCOVERING


def test_news_of_another_epoch_changes_nothing() -> None:
    client = legacy()
    before = client.core.session
    client.hear(i.TransportLost(0, client.now_ms))
    client.hear(i.TransportOpened(7, client.now_ms))
    assert client.core.session is before


@rule("REC-10")
@rule("STATE-13")
def test_after_closing_nothing_is_shown_as_certain() -> None:
    client = legacy()
    client.hear(i.CloseWanted(client.now_ms))
    assert client.core.read(Kind.TOOLS, client.now_ms).hit is Hit.DOUBTED
    assert client.core.deadline_ms() is None
