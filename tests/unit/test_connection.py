"""The link: which era, which version, and what a failure of the opening proves (D-01 to D-05)."""

from typing import Any

import pytest

from relist import inputs as i
from relist.effects import (
    CloseTransport,
    LinkEffect,
    NeedCredentials,
    Note,
    OpenTransport,
    RequestDiscover,
    RequestInitialize,
    SendInitialized,
)
from relist.machine import step_link
from relist.values import Era, Failure, Link, LinkPhase, Wire, new_link
from support.alphabet import FULL
from support.one import LEGACY, METHOD_NOT_FOUND, MODERN, policy

rule = pytest.mark.rule
OLD = "2025-06-18"
OTHER = "1999-01-01"


class Line:
    """A link, driven; ``told`` holds the effects of the last input."""

    def __init__(self, wire: Wire = Wire.PIPE, **rules: Any) -> None:
        self.policy = policy(**rules)
        self.link: Link = new_link(wire)
        self.now_ms = 1_000_000  # longer than any time of the policy: no sum of two is small
        self.told: list[LinkEffect] = []
        self.hear(i.ConnectWanted(self.now_ms))

    def hear(self, heard: i.LinkInput) -> None:
        self.link, told = step_link(self.link, heard, self.policy)
        self.told = list(told)

    def phase(self) -> LinkPhase:
        return self.link.phase

    def open(self) -> None:
        self.hear(i.TransportOpened(self.link.epoch, self.now_ms))

    def discovered(self, *versions: str) -> None:
        self.hear(i.DiscoverAnswered(self.link.serial, versions, FULL, self.now_ms))

    def discover_failed(self, failure: Failure) -> None:
        self.hear(i.DiscoverFailed(self.link.serial, failure, self.now_ms))

    def initialized(self, version: str = LEGACY) -> None:
        self.hear(i.InitializeAnswered(self.link.serial, version, FULL, self.now_ms))

    def initialize_failed(self, failure: Failure) -> None:
        self.hear(i.InitializeFailed(self.link.serial, failure, self.now_ms))

    def lose(self) -> None:
        self.hear(i.TransportLost(self.link.epoch, self.now_ms))

    def expire(self) -> None:
        self.hear(i.SessionExpired(self.link.epoch, self.now_ms))

    def later(self, ms: int) -> None:
        self.now_ms += ms
        self.hear(i.TimePassed(self.now_ms))


def probing(wire: Wire = Wire.PIPE, **rules: Any) -> Line:
    line = Line(wire, **rules)
    line.open()
    assert line.phase() is LinkPhase.PROBING
    return line


def live(wire: Wire = Wire.PIPE, *, modern: bool = True) -> Line:
    line = probing(wire)
    if modern:
        line.discovered(MODERN)
    else:
        line.discover_failed(METHOD_NOT_FOUND)
        line.initialized()
    assert line.phase() is LinkPhase.LIVE
    return line


# --- the verdict ----------------------------------------------------------------------------------


@rule("LIFE-25")
@rule("LIFE-27")
def test_the_era_is_asked_for_first() -> None:
    line = probing()
    assert line.told == [RequestDiscover(1, MODERN)]


@rule("LIFE-26")
@rule("LIFE-28")
def test_an_answer_to_the_probe_proves_a_modern_server() -> None:
    line = probing()
    line.discovered(OTHER, MODERN, LEGACY)
    assert (line.link.era, line.link.version) == (Era.MODERN, MODERN)
    assert line.phase() is LinkPhase.LIVE
    assert line.told == []


@rule("LIFE-24")
@rule("LIFE-28")
def test_if_only_legacy_versions_are_shared_one_of_them_is_chosen() -> None:
    """A selection from the list, not an era fallback (D-04)."""
    line = probing()
    line.discovered(OTHER, OLD)
    assert line.told == [RequestInitialize(2, OLD)]


@rule("LIFE-05")
@pytest.mark.parametrize("versions", [(), (OTHER,)])
def test_if_nothing_is_shared_we_leave(versions: tuple[str, ...]) -> None:
    line = probing()
    line.discovered(*versions)
    assert line.phase() is LinkPhase.REFUSED
    assert isinstance(line.told[0], CloseTransport)
    assert [told.rule for told in line.told if isinstance(told, Note)] == ["LIFE-05"]


LISTED = Failure("x", code=-32022, supported=(MODERN,))
PIPE_AND_HTTP = pytest.mark.parametrize("wire", list(Wire))
BACK, PARKED, SHAKE, OUT = (
    LinkPhase.WAITING,
    LinkPhase.PARKED,
    LinkPhase.HANDSHAKING,
    LinkPhase.REFUSED,
)


@rule("LIFE-29")
@rule("LIFE-30")
@rule("LIFE-31")
@rule("LIFE-32")
@rule("LIFE-34")
@rule("LIFE-35")
@PIPE_AND_HTTP
@pytest.mark.parametrize(
    ("failure", "phase"),
    [
        (Failure("x", code=-32601), SHAKE),
        (Failure("x", code=-32601, status=404), SHAKE),
        (Failure("x", code=-32602), SHAKE),
        (Failure("x", code=-32000), SHAKE),
        (Failure("x", code=-32600, status=400), SHAKE),
        (Failure("x", status=400), SHAKE),
        (Failure("x", status=404), SHAKE),
        (Failure("x", status=405), SHAKE),
        (Failure("x", code=-32020, status=400), OUT),
        (Failure("x", code=-32021), OUT),
        (Failure("x", code=-32022), OUT),
        (Failure("x", code=-32022, supported=(OTHER,)), OUT),
        (Failure("x", code=-32022, supported=(OTHER, LEGACY)), SHAKE),
        (Failure("x", status=401), PARKED),
        (Failure("x", status=403), PARKED),
        (Failure("x", status=408), BACK),
        (Failure("x", status=429), BACK),
        (Failure("x", status=500), BACK),
        (Failure("x", status=503, code=-32601), BACK),
        (Failure("x"), BACK),
    ],
)
def test_what_a_failed_probe_proves(wire: Wire, failure: Failure, phase: LinkPhase) -> None:
    line = probing(wire)
    line.discover_failed(failure)
    assert line.phase() is phase
    assert (NeedCredentials(None) in line.told) is (phase is PARKED)


@rule("LIFE-24")
def test_a_listed_version_is_tried_once() -> None:
    line = probing(modern_versions=("2027-01-01", MODERN))
    line.discover_failed(LISTED)
    assert line.told == [RequestDiscover(2, MODERN)]
    line.discover_failed(LISTED)
    assert line.phase() is LinkPhase.REFUSED


@rule("LIFE-29")
def test_a_modern_error_never_leads_to_a_handshake_at_a_version_it_does_not_list() -> None:
    line = probing()
    line.discover_failed(Failure("x", code=-32022, supported=(OLD,)))
    assert line.told == [RequestInitialize(2, OLD)]


@rule("LIFE-04")
@rule("LIFE-30")
def test_silence_on_a_pipe_means_legacy() -> None:
    line = probing(Wire.PIPE)
    line.later(line.policy.probe_limit_ms)
    assert line.told == [RequestInitialize(2, LEGACY)]


def test_silence_over_http_means_nothing() -> None:
    line = probing(Wire.HTTP)
    line.later(line.policy.probe_limit_ms)
    assert line.phase() is LinkPhase.WAITING
    assert line.told == [CloseTransport(1)]


@rule("LIFE-39")
def test_an_answer_to_a_probe_that_was_given_up_is_late() -> None:
    line = probing(Wire.PIPE)
    line.later(line.policy.probe_limit_ms)
    before = line.link
    line.hear(i.DiscoverAnswered(1, (MODERN,), FULL, line.now_ms))
    assert line.link is before
    assert [told.rule for told in line.told if isinstance(told, Note)] == ["LIFE-39"]


@rule("LIFE-38")
def test_a_client_of_one_era_stays_in_it() -> None:
    legacy = Line(modern_versions=())
    legacy.open()
    assert legacy.told == [RequestInitialize(1, LEGACY)]
    modern = probing(legacy_versions=())
    modern.discover_failed(METHOD_NOT_FOUND)
    assert modern.phase() is LinkPhase.REFUSED


@rule("LIFE-36")
def test_the_era_of_an_endpoint_is_remembered_that_of_a_process_is_not() -> None:
    http = live(Wire.HTTP, modern=False)
    pipe = live(Wire.PIPE, modern=False)
    for line in (http, pipe):
        line.lose()
        line.later(line.policy.backoff_max_ms)
        line.open()
    assert isinstance(http.told[0], RequestInitialize)
    assert isinstance(pipe.told[0], RequestDiscover)


# --- the handshake --------------------------------------------------------------------------------


@rule("LIFE-03")
def test_initialized_follows_an_acceptable_answer() -> None:
    line = probing()
    line.discover_failed(METHOD_NOT_FOUND)
    line.initialized(OLD)
    assert line.told == [SendInitialized(OLD)]
    assert (line.link.era, line.link.version) == (Era.LEGACY, OLD)


@rule("LIFE-05")
@pytest.mark.parametrize("version", [OTHER, "", MODERN])
def test_an_unknown_counter_offer_is_left_without_a_word(version: str) -> None:
    """D-01: neither initialized nor a list request; modern versions have no handshake."""
    line = probing()
    line.discover_failed(METHOD_NOT_FOUND)
    line.initialized(version)
    assert line.phase() is LinkPhase.REFUSED
    assert not [told for told in line.told if isinstance(told, SendInitialized)]


@pytest.mark.parametrize(
    ("failure", "phase"),
    [
        (Failure("x", status=401), LinkPhase.PARKED),
        (Failure("x", code=-32603), LinkPhase.WAITING),
        (Failure("x"), LinkPhase.WAITING),
        (LISTED, LinkPhase.PROBING),
        (Failure("x", code=-32022, supported=(OTHER,)), LinkPhase.REFUSED),
    ],
)
def test_what_a_failed_handshake_leads_to(failure: Failure, phase: LinkPhase) -> None:
    line = probing()
    line.discover_failed(METHOD_NOT_FOUND)
    line.initialize_failed(failure)
    assert line.phase() is phase


@rule("LIFE-08")
def test_a_handshake_without_an_answer_is_given_up_with_its_transport() -> None:
    """There is nothing to cancel it with."""
    line = probing()
    line.discover_failed(METHOD_NOT_FOUND)
    line.later(line.policy.handshake_limit_ms)
    assert (line.phase(), line.told) == (LinkPhase.WAITING, [CloseTransport(1)])


# --- coming back ----------------------------------------------------------------------------------


@rule("FAIL-21")
@rule("REC-09")
def test_a_lost_transport_is_opened_again_after_a_growing_delay() -> None:
    line = Line()
    delays = []
    for _ in range(4):
        line.lose()
        assert line.link.due_at_ms is not None
        delays.append(line.link.due_at_ms - line.now_ms)
        line.later(delays[-1] - 1)
        assert line.told == []
        line.later(1)
        assert line.told == [OpenTransport(line.link.epoch)]
    assert delays == [500, 1_000, 2_000, 4_000]


def test_a_link_that_proved_healthy_starts_counting_anew() -> None:
    line = live()
    line.lose()
    line.later(500)
    line.open()
    line.discovered(MODERN)
    line.later(line.policy.healthy_ms)
    line.lose()
    assert line.link.due_at_ms == line.now_ms + 500


def test_one_that_dies_at_once_does_not() -> None:
    line = live()
    delays = []
    for _ in range(3):
        line.lose()
        assert line.link.due_at_ms is not None
        delays.append(line.link.due_at_ms - line.now_ms)
        line.later(delays[-1])
        line.open()
        line.discovered(MODERN)
    assert delays == [500, 1_000, 2_000]


def test_retry_after_is_honoured_and_capped() -> None:
    line = probing(Wire.HTTP, retry_after_max_ms=9_000)
    line.discover_failed(Failure("x", status=429, retry_after_ms=7_000))
    assert line.link.due_at_ms == line.now_ms + 7_000
    other = probing(Wire.HTTP, retry_after_max_ms=9_000)
    other.discover_failed(Failure("x", status=503, retry_after_ms=10**9))
    assert other.link.due_at_ms == other.now_ms + 9_000


@rule("LIFE-12")
def test_an_expired_session_is_replaced_at_once_but_only_once() -> None:
    line = live(Wire.HTTP, modern=False)
    line.expire()
    assert line.told == [CloseTransport(1), OpenTransport(2)]
    line.open()
    assert isinstance(line.told[0], RequestInitialize)
    line.initialized()
    line.expire()
    assert line.phase() is LinkPhase.WAITING


@rule("LIFE-12")
def test_a_later_expiry_is_a_first_one_again() -> None:
    line = live(Wire.HTTP, modern=False)
    line.expire()
    line.open()
    line.initialized()
    line.later(line.policy.healthy_ms)
    line.expire()
    assert line.phase() is LinkPhase.OPENING


@rule("REC-03")
@pytest.mark.parametrize("heard", [i.TransportLost, i.SessionExpired])
def test_news_of_a_replaced_transport_is_late(heard: Any) -> None:
    line = live(Wire.HTTP, modern=False)
    line.hear(i.CredentialsChanged("B", line.now_ms))
    line.open()
    line.initialized()
    before = line.link
    line.hear(heard(1, line.now_ms))
    assert line.link is before
    assert isinstance(line.told[0], Note)


def test_other_credentials_replace_the_transport_and_unpark() -> None:
    line = live()
    line.hear(i.CredentialsChanged("B", line.now_ms))
    assert line.told == [CloseTransport(1), OpenTransport(2)]
    parked = probing()
    parked.discover_failed(Failure("x", status=401))
    parked.later(10**9)
    assert parked.told == []
    parked.hear(i.CredentialsChanged("B", parked.now_ms))
    assert parked.told == [OpenTransport(2)]


def test_closing_and_connecting_again() -> None:
    line = live()
    line.hear(i.CloseWanted(line.now_ms))
    assert (line.phase(), line.told) == (LinkPhase.CLOSED, [CloseTransport(1)])
    line.later(10**9)
    assert line.told == []
    line.hear(i.ConnectWanted(line.now_ms))
    assert line.told == [OpenTransport(2)]


def test_of_a_link_that_is_gone_no_time_is_left() -> None:
    line = live()
    line.lose()
    assert (line.link.limit_at_ms, line.link.live_at_ms) == (None, None)
    for gone in (line, probing(), live()):
        gone.hear(i.CloseWanted(gone.now_ms))
        times = (gone.link.limit_at_ms, gone.link.due_at_ms, gone.link.live_at_ms)
        assert times == (None, None, None)


def test_a_link_that_is_replaced_has_still_to_prove_itself() -> None:
    line = live(Wire.HTTP, modern=False)
    line.later(line.policy.healthy_ms)
    line.expire()
    line.later(line.policy.healthy_ms)
    line.lose()
    assert line.link.failures == 2


@rule("LIFE-24")
def test_on_a_new_link_a_version_may_be_corrected_again() -> None:
    line = probing()
    for _ in range(2):
        line.discover_failed(Failure("x", code=-32022, supported=(MODERN,)))
        assert line.phase() is LinkPhase.PROBING
        line.lose()
        line.later(10**6)
        line.open()


@rule("LIFE-13")
def test_what_a_server_offered_lasts_no_longer_than_its_link() -> None:
    line = probing()
    line.hear(i.DiscoverAnswered(1, (MODERN,), FULL, line.now_ms, ttl_ms=10**9))
    assert line.link.expires_at_ms is not None
    line.lose()
    line.later(500)
    assert line.phase() is LinkPhase.OPENING
    assert line.link.expires_at_ms is None


def test_links_that_fail_together_do_not_come_back_together() -> None:
    line = probing(jitter_percent=50)
    line.lose()
    assert line.link.due_at_ms == line.now_ms + line.policy.backoff_ms(1, "link", 1)


def test_a_transport_that_does_not_open_in_time_is_given_up() -> None:
    line = Line()
    line.later(line.policy.open_limit_ms)
    assert (line.phase(), line.told) == (LinkPhase.WAITING, [CloseTransport(1)])


@rule("CAP-23")
@rule("LIFE-13")
def test_nothing_of_an_earlier_connection_is_believed() -> None:
    line = live()
    line.lose()
    line.later(500)
    assert line.link.version == ""
    assert not line.link.capabilities.kinds
