"""The channel for notices: asked for, granted, ended, asked for again."""

from collections.abc import Callable
from typing import Any

import pytest

from relist import inputs as i
from relist.effects import CancelListen, ListenEffect, Note, OpenListen
from relist.machine import step_listen
from relist.values import Carrier, Channel, Failure, Listen, ListenPhase, new_listen
from support.one import METHOD_NOT_FOUND, policy

rule = pytest.mark.rule
BOTH = frozenset({Channel.TOOLS, Channel.PROMPTS})
TOOLS = frozenset({Channel.TOOLS})
END_OF_ALL = (
    METHOD_NOT_FOUND,
    Failure("x", code=-32600),
    Failure("x", code=-32021),
    Failure("x", status=405),
    Failure("x", status=401),
    Failure("x", status=403),
)
END_FOR_NOW = (None, Failure("x", code=-32603), Failure("x", status=503), Failure("x"))


class Ear:
    """The listen chart, driven; ``told`` holds the effects of the last input."""

    def __init__(self, carrier: Carrier = Carrier.SUBSCRIPTION, **rules: Any) -> None:
        self.policy = policy(**rules)
        self.listen: Listen = new_listen()
        self.now_ms = 1_000_000  # longer than any time of the policy: no sum of two is small
        self.told: list[ListenEffect] = []
        self.hear(i.PushWanted(BOTH, carrier, self.now_ms))

    def hear(self, heard: i.ListenInput) -> None:
        self.listen, told = step_listen(self.listen, heard, self.policy)
        self.told = list(told)

    def phase(self) -> ListenPhase:
        return self.listen.phase

    def opened(self, granted: frozenset[Channel] = BOTH, serial: int | None = None) -> None:
        serial = self.listen.serial if serial is None else serial
        self.hear(i.PushOpened(serial, granted, self.now_ms))

    def ended(self, failure: Failure | None = None, serial: int | None = None) -> None:
        serial = self.listen.serial if serial is None else serial
        self.hear(i.PushEnded(serial, failure, self.now_ms))

    def wake(self) -> int:
        at_ms = self.listen.limit_at_ms or self.listen.due_at_ms
        assert at_ms is not None
        took_ms, self.now_ms = at_ms - self.now_ms, at_ms
        self.hear(i.TimePassed(self.now_ms))
        return took_ms


@rule("SUB-01")
@rule("SUB-27")
def test_a_subscription_is_asked_for() -> None:
    ear = Ear()
    assert ear.phase() is ListenPhase.ASKED
    assert ear.told == [OpenListen(1, BOTH)]


@rule("NOTE-10")
def test_a_pipe_carries_what_was_declared_without_asking() -> None:
    ear = Ear(Carrier.PIPE)
    assert (ear.phase(), ear.listen.granted, ear.told) == (ListenPhase.OPEN, BOTH, [])


@rule("NOTE-13")
def test_a_stream_is_the_transports_to_open() -> None:
    ear = Ear(Carrier.STREAM)
    assert (ear.phase(), ear.told) == (ListenPhase.ASKED, [])
    ear.opened(frozenset(Channel))
    assert (ear.phase(), ear.listen.granted) == (ListenPhase.OPEN, BOTH)


@rule("CAP-06")
def test_nothing_declared_nothing_asked() -> None:
    listen, told = step_listen(
        new_listen(), i.PushWanted(frozenset(), Carrier.SUBSCRIPTION, 0), policy()
    )
    assert (listen.phase, told) == (ListenPhase.OFF, ())


@rule("SUB-05")
@rule("SUB-06")
def test_only_what_was_granted_is_covered() -> None:
    ear = Ear()
    ear.opened(TOOLS)
    assert ear.listen.granted == TOOLS


@rule("SUB-40")
def test_more_than_was_asked_for_is_not_believed() -> None:
    ear = Ear()
    ear.opened(frozenset(Channel))
    assert ear.listen.granted == BOTH
    assert ear.told == [Note("SUB-40", "granted without being asked for (topics)", (1,))]


@rule("SUB-29")
def test_an_open_channel_has_no_deadline() -> None:
    ear = Ear()
    ear.opened()
    before = ear.listen
    assert (before.limit_at_ms, before.due_at_ms) == (None, None)
    ear.now_ms += 10**9
    ear.hear(i.TimePassed(ear.now_ms))
    assert ear.listen is before


@rule("SUB-30")
def test_a_late_acknowledgement_is_cancelled_and_asked_for_again() -> None:
    ear = Ear()
    assert ear.wake() == ear.policy.ack_limit_ms
    assert (ear.phase(), ear.told) == (ListenPhase.RESTING, [CancelListen(1)])
    assert ear.wake() == 500
    assert ear.told == [OpenListen(2, BOTH)]


@rule("SUB-19")
@rule("SUB-14")
def test_a_subscription_that_was_given_up_stays_given_up() -> None:
    ear = Ear()
    ear.wake()
    before = ear.listen
    ear.opened(serial=1)
    assert ear.listen is before
    ear.wake()
    before = ear.listen
    ear.opened(serial=1)
    assert ear.listen is before
    assert [told.rule for told in ear.told if isinstance(told, Note)] == ["SUB-14"]


@rule("SUB-20")
@rule("SUB-21")
@rule("SUB-22")
@rule("SUB-23")
@rule("SUB-26")
@pytest.mark.parametrize("failure", END_FOR_NOW)
@pytest.mark.parametrize("acknowledged", [True, False])
def test_any_end_is_followed_by_another_request(
    failure: Failure | None, acknowledged: bool
) -> None:
    ear = Ear()
    if acknowledged:
        ear.opened()
    ear.ended(failure)
    assert ear.phase() is ListenPhase.RESTING
    assert ear.listen.granted == frozenset()
    assert ear.wake() == 500
    assert ear.told == [OpenListen(2, BOTH)]


@rule("SUB-20")
def test_after_one_end_the_others_are_ignored() -> None:
    ear = Ear()
    ear.opened()
    ear.ended()
    before = ear.listen
    ear.ended()
    assert ear.listen is before


@rule("SUB-31")
@rule("NOTE-14")
@pytest.mark.parametrize("failure", END_OF_ALL)
@pytest.mark.parametrize("carrier", [Carrier.SUBSCRIPTION, Carrier.STREAM])
def test_a_server_without_it_is_not_asked_again(failure: Failure, carrier: Carrier) -> None:
    ear = Ear(carrier)
    ear.ended(failure)
    assert ear.phase() is ListenPhase.OFF
    assert (ear.listen.limit_at_ms, ear.listen.due_at_ms) == (None, None)


@rule("SUB-24")
@rule("SUB-25")
def test_asking_again_backs_off_until_a_channel_proved_healthy() -> None:
    ear = Ear()
    waits = []
    for _ in range(3):
        ear.opened()
        ear.ended()
        waits.append(ear.wake())
    assert waits == [500, 1_000, 2_000]
    ear.opened()
    ear.now_ms += ear.policy.healthy_ms
    ear.ended()
    assert ear.wake() == 500


def test_retry_after_is_honoured_and_capped() -> None:
    for asked_ms, waited_ms in ((200, 500), (7_000, 7_000), (10**9, 9_000)):
        ear = Ear(retry_after_max_ms=9_000)
        ear.ended(Failure("x", status=429, retry_after_ms=asked_ms))
        assert ear.wake() == waited_ms


def test_a_stream_that_ends_may_be_reopened_by_the_transport() -> None:
    ear = Ear(Carrier.STREAM)
    ear.opened()
    ear.ended()
    assert (ear.phase(), ear.listen.due_at_ms) == (ListenPhase.RESTING, None)
    ear.opened()
    assert ear.phase() is ListenPhase.OPEN


def test_channels_that_fail_together_do_not_come_back_together() -> None:
    ear = Ear(jitter_percent=50)
    ear.ended()
    assert ear.listen.due_at_ms == ear.now_ms + ear.policy.backoff_ms(1, "listen", 1)


def test_a_pipe_after_a_subscription_is_a_pipe_that_never_failed() -> None:
    ear = Ear()
    ear.ended()
    ear.hear(i.PushReleased(ear.now_ms))
    ear.hear(i.PushWanted(BOTH, Carrier.PIPE, ear.now_ms))
    listen = ear.listen
    assert (listen.carrier, listen.failures) == (Carrier.PIPE, 0)
    assert listen.opened_at_ms == ear.now_ms


def test_of_a_channel_that_has_ended_nothing_is_left() -> None:
    for failure in (None, METHOD_NOT_FOUND):
        ear = Ear()
        ear.opened()
        ear.ended(failure)
        assert (ear.listen.stream, ear.listen.opened_at_ms) == (None, None)
        assert ear.listen.granted == frozenset()


def test_a_channel_on_another_link_starts_counting_anew() -> None:
    ear = Ear()
    ear.ended()
    ear.hear(i.PushReleased(ear.now_ms))
    ear.hear(i.PushWanted(BOTH, Carrier.SUBSCRIPTION, ear.now_ms))
    ear.ended()
    assert ear.wake() == 500


def test_with_the_link_goes_the_channel() -> None:
    for prepare in (lambda ear: None, Ear.opened, Ear.ended):
        ear = Ear()
        prepare(ear)
        ear.hear(i.PushReleased(ear.now_ms))
        assert (ear.phase(), ear.told) == (ListenPhase.OFF, [])
        assert (ear.listen.limit_at_ms, ear.listen.due_at_ms) == (None, None)
        ear.hear(i.PushWanted(TOOLS, Carrier.SUBSCRIPTION, ear.now_ms))
        assert ear.told == [OpenListen(2, TOOLS)]


# --- renewing -------------------------------------------------------------------------------------

MORE = BOTH | {Channel.RESOURCES}


def renewing() -> Ear:
    """Stream 1 stands for BOTH; another one is asked for, for MORE."""
    ear = Ear()
    ear.opened()
    ear.hear(i.PushWanted(MORE, Carrier.SUBSCRIPTION, ear.now_ms))
    assert ear.told == [OpenListen(2, MORE)]
    assert (ear.phase(), ear.listen.granted) == (ListenPhase.RENEWING, BOTH)
    return ear


@rule("SUB-34")
def test_the_old_stream_goes_when_the_new_one_stands() -> None:
    ear = renewing()
    ear.opened(MORE)
    assert ear.told == [CancelListen(1)]
    assert (ear.phase(), ear.listen.granted) == (ListenPhase.OPEN, MORE)
    ear.ended(serial=1)  # the end of what was cancelled is late
    assert ear.phase() is ListenPhase.OPEN


@rule("SUB-34")
def test_if_the_new_one_fails_the_old_one_stands_and_another_try_follows() -> None:
    ear = renewing()
    ear.ended(Failure("x", code=-32603))
    assert (ear.phase(), ear.listen.granted, ear.told) == (ListenPhase.OPEN, BOTH, [])
    assert ear.wake() == 500
    assert ear.told == [OpenListen(3, MORE)]
    assert ear.wake() == ear.policy.ack_limit_ms
    assert ear.told == [CancelListen(3)]
    assert (ear.phase(), ear.listen.granted) == (ListenPhase.OPEN, BOTH)
    assert ear.wake() == 1_000


@rule("SUB-31")
@pytest.mark.parametrize("failure", END_OF_ALL)
def test_a_refusal_that_is_final_leaves_the_old_stream_alone(failure: Failure) -> None:
    ear = renewing()
    ear.ended(failure)
    assert (ear.phase(), ear.listen.due_at_ms) == (ListenPhase.OPEN, None)
    ear.ended(serial=1)
    assert ear.phase() is ListenPhase.RESTING


@rule("SUB-28")
def test_if_the_old_one_ends_first_nothing_is_covered_until_the_new_one_stands() -> None:
    ear = renewing()
    ear.ended(serial=1)
    assert (ear.phase(), ear.listen.granted) == (ListenPhase.ASKED, frozenset())
    ear.opened(MORE)
    assert (ear.phase(), ear.listen.granted, ear.told) == (ListenPhase.OPEN, MORE, [])


@rule("SUB-14")
def test_while_renewing_other_streams_change_nothing() -> None:
    ear = renewing()
    before = ear.listen
    ear.ended(serial=7)
    ear.opened(MORE, serial=7)
    ear.opened(MORE, serial=1)
    assert ear.listen is before


def test_a_replacement_that_fails_honours_retry_after_and_is_spread() -> None:
    ear = renewing()
    ear.ended(Failure("x", status=429, retry_after_ms=7_000))
    assert ear.wake() == 7_000
    ear = renewing()
    ear.policy = policy(jitter_percent=50)
    ear.ended()
    assert ear.wake() == ear.policy.backoff_ms(1, "listen", 2)


def test_asking_for_something_else_starts_counting_anew() -> None:
    ear = renewing()
    ear.ended()
    ear.hear(i.PushWanted(TOOLS, Carrier.SUBSCRIPTION, ear.now_ms))
    ear.ended()
    assert ear.wake() == 500


def test_a_stream_that_ended_proves_no_other_one_healthy() -> None:
    ear = renewing()
    ear.ended(serial=1)
    assert ear.listen.opened_at_ms is None


@rule("SUB-34")
@pytest.mark.parametrize("begin", [Ear, renewing])
def test_a_request_that_is_out_of_date_before_its_answer_is_replaced(
    begin: Callable[[], Ear],
) -> None:
    ear = begin()
    asked = ear.listen.serial
    ear.hear(i.PushWanted(TOOLS, Carrier.SUBSCRIPTION, ear.now_ms))
    assert ear.told == [CancelListen(asked), OpenListen(asked + 1, TOOLS)]
    ear.hear(i.PushWanted(TOOLS, Carrier.SUBSCRIPTION, ear.now_ms))
    assert ear.told == []


@rule("SUB-30")
@pytest.mark.parametrize("begin", [Ear, renewing])
def test_other_interests_again_and_again_do_not_prolong_the_wait(begin: Callable[[], Ear]) -> None:
    """While the first request waits no list may be asked for."""
    ear = begin()
    for topics in (TOOLS, BOTH, TOOLS):
        ear.now_ms += 1_000
        ear.hear(i.PushWanted(topics, Carrier.SUBSCRIPTION, ear.now_ms))
    assert ear.wake() == ear.policy.ack_limit_ms - 3_000
    assert ear.told == [CancelListen(ear.listen.serial)]
    assert ear.phase() in (ListenPhase.RESTING, ListenPhase.OPEN)


@rule("SUB-26")
def test_another_interest_does_not_break_the_backoff() -> None:
    ear = Ear()
    ear.ended()
    ear.hear(i.PushWanted(TOOLS, Carrier.SUBSCRIPTION, ear.now_ms))
    assert (ear.phase(), ear.told) == (ListenPhase.RESTING, [])
    assert ear.wake() == 500
    assert ear.told == [OpenListen(2, TOOLS)]


@rule("SUB-17")
def test_no_interest_cancels_what_stands_and_what_is_asked_for() -> None:
    nobody: frozenset[Channel] = frozenset()
    for begin, expected in ((renewing, [1, 2]), (Ear, [1])):
        ear = begin()
        ear.hear(i.PushWanted(nobody, Carrier.SUBSCRIPTION, ear.now_ms))
        assert ear.told == [CancelListen(serial) for serial in expected]
        assert ear.phase() is ListenPhase.OFF
    ear = Ear()
    ear.ended()
    ear.hear(i.PushWanted(nobody, Carrier.SUBSCRIPTION, ear.now_ms))
    assert (ear.phase(), ear.told) == (ListenPhase.OFF, [])


@pytest.mark.parametrize("carrier", [Carrier.PIPE, Carrier.STREAM])
def test_what_carries_legacy_notices_is_asked_for_once(carrier: Carrier) -> None:
    ear = Ear(carrier)
    before = ear.listen
    for topics in (TOOLS, frozenset[Channel]()):
        ear.hear(i.PushWanted(topics, carrier, ear.now_ms))
        assert (ear.listen is before, ear.told) == (True, [])
