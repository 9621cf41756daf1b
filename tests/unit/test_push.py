"""The channel for notices: asked for, granted, ended, asked for again."""

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
        self.now_ms = 1_000
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
    assert [told.rule for told in ear.told if isinstance(told, Note)] == ["SUB-40"]


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


def test_with_the_link_goes_the_channel() -> None:
    for prepare in (lambda ear: None, Ear.opened, Ear.ended):
        ear = Ear()
        prepare(ear)
        ear.hear(i.PushReleased(ear.now_ms))
        assert (ear.phase(), ear.told) == (ListenPhase.OFF, [])
        assert (ear.listen.limit_at_ms, ear.listen.due_at_ms) == (None, None)
        ear.hear(i.PushWanted(TOOLS, Carrier.SUBSCRIPTION, ear.now_ms))
        assert ear.told == [OpenListen(2, TOOLS)]
