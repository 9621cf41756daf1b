"""The gate at call time: present, unchanged, valid, and verified where the list is in doubt."""

import pytest
from attrs import evolve

from relist.admission import (
    Admission,
    Call,
    Refusal,
    Verdict,
    admit,
    after_rejection,
    arguments_checked,
    proves_staleness,
)
from relist.policy import Risk
from relist.values import Failure, Kind, Phase
from support.one import (
    METHOD_NOT_FOUND,
    REFUSED,
    TRANSIENT,
    UNAUTHORIZED,
    One,
    fresh,
    item,
    policy,
    walking,
)

rule = pytest.mark.rule
HEADER_MISMATCH = Failure("error answer", code=-32020, status=400)


def plan(one: One, name: str = "a", risk: Risk = Risk.SIDE_EFFECTS) -> Call:
    """A call as it is planned on the list that is published now."""
    planned = next(entry for entry in one.snapshot.items if entry.key == name)
    return Call(name, one.snapshot.generation, planned, risk)


def ask(one: One, call: Call) -> Admission:
    """The verdict; where a check is asked for, the arguments fit."""
    verdict = admit(one.catalog, call, one.now_ms, one.policy)
    if verdict.verdict is Verdict.CHECK:
        assert verdict.item is not None
        checked = arguments_checked(verdict.call, verdict.item, valid=True)
        verdict = admit(one.catalog, checked, one.now_ms, one.policy)
    return verdict


def refused(verdict: Admission) -> Refusal | None:
    assert (verdict.verdict is Verdict.REFUSE) is (verdict.refusal is not None)
    return verdict.refusal


@rule("TTL-30")
@rule("CALL-01")
@rule("CALL-22")
def test_a_call_on_the_list_as_it_is_is_admitted_with_the_item_that_was_checked() -> None:
    one = fresh()
    first = admit(one.catalog, plan(one), one.now_ms, one.policy)
    assert (first.verdict, first.item) == (Verdict.CHECK, item("a"))
    admitted = ask(one, plan(one))
    assert (admitted.verdict, admitted.item) == (Verdict.ADMIT, item("a"))


@rule("CAP-11")
@rule("CALL-01")
@rule("CALL-19")
def test_what_is_not_listed_any_more_is_not_called() -> None:
    one = fresh()
    call = plan(one)
    one.refresh()
    one.page("b")
    assert refused(ask(one, call)) is Refusal.REMOVED


@rule("CALL-02")
def test_a_changed_definition_refuses_the_old_arguments() -> None:
    one = fresh()
    call = plan(one)
    one.refresh()
    one.page("a@2", "b")
    assert refused(ask(one, call)) is Refusal.CHANGED
    assert ask(one, plan(one)).verdict is Verdict.ADMIT


@rule("CALL-02")
def test_a_change_of_another_entry_is_no_obstacle() -> None:
    one = fresh()
    call = plan(one)
    one.refresh()
    one.page("a", "b@2")
    assert ask(one, call).verdict is Verdict.ADMIT


@rule("CALL-21")
@rule("CALL-02")
def test_who_does_not_say_what_was_planned_needs_the_very_generation() -> None:
    one = fresh()
    call = Call("a", one.snapshot.generation)
    assert ask(one, call).verdict is Verdict.ADMIT
    one.refresh()
    one.page("a", "b@2")
    assert refused(ask(one, call)) is Refusal.CHANGED


@rule("CALL-03")
def test_arguments_are_checked_against_the_present_schema() -> None:
    one = fresh()
    checked = arguments_checked(plan(one), item("a"), valid=False)
    assert refused(admit(one.catalog, checked, one.now_ms, one.policy)) is Refusal.INVALID
    elsewhere = arguments_checked(plan(one), item("a@0"), valid=True)
    again = admit(one.catalog, elsewhere, one.now_ms, one.policy)
    assert again.verdict is Verdict.CHECK


@rule("DISC-20")
def test_an_ambiguous_key_is_not_callable_its_neighbours_are() -> None:
    one = walking(policy(spoiled_in_row_max=1))
    one.page("a@1", "a@2", "b")
    assert refused(ask(one, plan(one, "a"))) is Refusal.AMBIGUOUS
    assert ask(one, plan(one, "b")).verdict is Verdict.ADMIT


def test_of_an_unsupported_kind_nothing_is_called() -> None:
    one = fresh()
    call = plan(one)
    one.refresh()
    one.fail(METHOD_NOT_FOUND)
    assert refused(ask(one, call)) is Refusal.UNSUPPORTED


# --- verification ---------------------------------------------------------------------------------


@rule("CALL-05")
def test_with_a_doubt_the_list_is_walked_first() -> None:
    one = fresh()
    call = plan(one)
    one.notice()
    verdict = ask(one, call)
    assert verdict.verdict is Verdict.VERIFY
    one.refresh()
    assert ask(one, verdict.call).verdict is Verdict.VERIFY
    one.page("a", "b")
    assert ask(one, verdict.call).verdict is Verdict.ADMIT


@rule("CALL-05")
def test_a_walk_begun_before_the_question_does_not_answer_it() -> None:
    one = fresh()
    call = plan(one)
    one.refresh()
    one.notice()
    verdict = ask(one, call)
    one.page("a", "b")
    assert ask(one, verdict.call).verdict is Verdict.VERIFY


@rule("CALL-05")
def test_a_chattering_server_does_not_starve_calls() -> None:
    """A complete walk is enough, spoiled or not, published or held back."""
    one = fresh()
    call = plan(one)
    one.notice()
    verdict = ask(one, call)
    one.refresh()
    one.notice()
    one.page("a", "c")
    assert one.publications() == []
    assert ask(one, verdict.call).verdict is Verdict.ADMIT
    gone = ask(one, Call("b", call.generation, item("b"), asked=verdict.call.asked))
    assert refused(gone) is Refusal.REMOVED


@rule("CALL-05")
def test_of_several_complete_lists_the_newest_answers() -> None:
    one = fresh()
    call = plan(one)
    one.notice()
    verdict = ask(one, call)
    one.refresh()
    one.page("a", "b")
    one.refresh()
    one.notice()
    one.page("b")
    assert one.names == ["a", "b"]
    assert refused(ask(one, verdict.call)) is Refusal.REMOVED


@rule("CALL-05")
def test_a_failure_before_the_question_does_not_answer_it() -> None:
    one = fresh()
    call = plan(one)
    one.refresh()
    one.fail(TRANSIENT)
    verdict = ask(one, call)
    assert ask(one, verdict.call).verdict is Verdict.VERIFY
    one.refresh()
    one.fail(TRANSIENT)
    assert refused(ask(one, verdict.call)) is Refusal.UNVERIFIABLE


@rule("CALL-06")
@pytest.mark.parametrize("risk", list(Risk))
def test_if_verification_fails_policy_says_what_may_go_on(risk: Risk) -> None:
    one = fresh()
    call = plan(one, risk=risk)
    one.notice()
    verdict = ask(one, call)
    one.refresh()
    one.fail(TRANSIENT)
    answer = ask(one, verdict.call)
    if risk in one.policy.risks_on_doubt:
        assert answer.verdict is Verdict.ADMIT
    else:
        assert refused(answer) is Refusal.UNVERIFIABLE
    assert (risk is Risk.READ_ONLY) is (risk in one.policy.risks_on_doubt)


def test_a_parked_list_cannot_be_verified() -> None:
    one = fresh()
    call = plan(one)
    one.refresh()
    one.fail(UNAUTHORIZED)
    assert refused(ask(one, call)) is Refusal.UNAUTHORIZED


@rule("CALL-06")
@rule("FAIL-19")
@pytest.mark.parametrize("risk", list(Risk))
@pytest.mark.parametrize("waits", [False, True])
def test_a_list_that_is_refused_as_such_keeps_no_call_waiting(risk: Risk, waits: bool) -> None:
    """It is not walked again by itself, so policy says at once what may go on."""
    one = fresh()
    call = plan(one, risk=risk)
    one.refresh()
    one.fail(REFUSED)
    if waits:
        call = evolve(call, asked=one.catalog.serial, failures=one.catalog.pacing.failures)
    answer = ask(one, call)
    if risk in one.policy.risks_on_doubt:
        assert answer.verdict in (Verdict.CHECK, Verdict.ADMIT)
    else:
        assert refused(answer) is Refusal.UNVERIFIABLE
    one.refresh()  # the one try that an explicit refresh is
    assert ask(one, call).verdict is Verdict.VERIFY


def test_without_any_list_a_call_waits_for_one_and_is_refused_if_that_fails() -> None:
    one = walking()
    verdict = ask(one, Call("a", 1, item("a"), Risk.READ_ONLY))
    assert verdict.verdict is Verdict.VERIFY
    one.fail(TRANSIENT)
    assert refused(ask(one, verdict.call)) is Refusal.UNVERIFIABLE


@pytest.mark.parametrize(
    ("covered", "age_ms", "verdict"),
    [
        (True, 0, Verdict.ADMIT),
        (True, 1, Verdict.ADMIT),
        (False, 0, Verdict.ADMIT),
        (False, 1, Verdict.VERIFY),
    ],
)
def test_merely_uncovered_needs_verification_when_old(
    covered: bool, age_ms: int, verdict: Verdict
) -> None:
    one = fresh(policy(verify_after_ms=2_000, unvouched_lifetime_ms=None), covered=covered)
    one.now_ms = one.snapshot.listed_at_ms + 2_000 + age_ms
    assert ask(one, plan(one)).verdict is verdict


def test_merely_expired_needs_verification_when_old() -> None:
    one = fresh(policy(verify_after_ms=2_000), ttl_ms=1)
    assert ask(one, plan(one)).verdict is Verdict.ADMIT
    one.later(2_000)
    assert ask(one, plan(one)).verdict is Verdict.VERIFY


# --- rejection ------------------------------------------------------------------------------------


@rule("CALL-10")
def test_a_header_mismatch_gives_one_walk_and_one_more_try() -> None:
    one = fresh()
    again = after_rejection(one.catalog, plan(one), HEADER_MISMATCH)
    assert again.verdict is Verdict.VERIFY
    one.prove(one.snapshot.generation)
    assert ask(one, again.call).verdict is Verdict.VERIFY
    one.wake()
    one.page("a", "b")
    retry = ask(one, again.call)
    assert retry.verdict is Verdict.ADMIT
    assert refused(after_rejection(one.catalog, retry.call, HEADER_MISMATCH)) is Refusal.REJECTED


@rule("CALL-10")
def test_a_rejected_call_waits_for_a_walk_begun_afterwards_and_is_checked_anew() -> None:
    one = fresh()
    one.refresh()
    one.fail(TRANSIENT)
    sent = arguments_checked(plan(one), item("a"), valid=True)
    again = after_rejection(one.catalog, sent, HEADER_MISMATCH)
    failures = one.catalog.pacing.failures
    assert failures == 1
    assert again.call == evolve(
        sent, retried=True, asked=one.catalog.serial, failures=failures, checked=None
    )


@rule("CALL-08")
@rule("FAIL-08")
@pytest.mark.parametrize("code", [-32601, -32602, -32603, None])
def test_no_other_rejection_repeats_a_call(code: int | None) -> None:
    one = fresh()
    verdict = after_rejection(one.catalog, plan(one), Failure("x", code=code))
    assert refused(verdict) is Refusal.REJECTED


@rule("TTL-12")
@rule("CALL-08")
@rule("CALL-09")
@rule("RES-11")
@rule("RES-12")
@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        (Kind.TOOLS, {-32601, -32602, -32020}),
        (Kind.PROMPTS, {-32602}),
        (Kind.RESOURCES, {-32602, -32002}),
        (Kind.TEMPLATES, {-32602, -32002}),
    ],
)
def test_what_hints_at_a_stale_list(kind: Kind, codes: set[int]) -> None:
    every = (-32601, -32602, -32020, -32002, -32603, None)
    hints = {code for code in every if proves_staleness(Failure("x", code=code), kind)}
    assert hints == codes


@rule("CALL-24")
@rule("RES-13")
@pytest.mark.parametrize("kind", [Kind.RESOURCES, Kind.TEMPLATES])
def test_a_resource_need_not_be_listed_to_be_read(kind: Kind) -> None:
    one = fresh()
    one.notice()
    listed = evolve(one.catalog, kind=kind)
    for key, found in (("a", listed.snapshot and listed.snapshot.items[0]), ("elsewhere", None)):
        admission = admit(listed, Call(key, 1), one.now_ms, one.policy)
        assert (admission.verdict, admission.item) == (Verdict.ADMIT, found)
    never = evolve(listed, snapshot=None)
    assert admit(never, Call("a", 1), one.now_ms, one.policy).verdict is Verdict.ADMIT
    absent = evolve(listed, phase=Phase.UNSUPPORTED)
    assert refused(admit(absent, Call("a", 1), one.now_ms, one.policy)) is Refusal.UNSUPPORTED


@rule("CALL-02")
@rule("CALL-10")
def test_the_second_try_does_not_send_old_arguments_to_a_new_definition() -> None:
    one = fresh()
    again = after_rejection(one.catalog, plan(one), HEADER_MISMATCH)
    one.refresh()
    one.page("a@2", "b")
    assert refused(ask(one, again.call)) is Refusal.CHANGED
