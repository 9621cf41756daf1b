"""Whole plays with a scripted client: who is right passes everywhere, who is wrong is found.

In memory on a virtual clock for all of it; over processes and HTTP for what only they can show.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import pytest
import trio.testing
from anyio.abc import TaskGroup

from conformance.made import made_case
from conformance.scripted_client import Fault, ScriptedDriver
from relist_conformance.play import Played, open_stage, play
from relist_conformance.script import REVISIONS, Case, load_cases

FIRST = (
    *("paging:every-page", "paging:empty-cursor", "notice:next-access", "notice:during-listing"),
    *("failure:keeps-last-good", "late:timed-out-answer", "capability:undeclared"),
    "reconnect:lists-again",
)
"""The scripted client is small: other cases ask for what it does not do, such as lifetimes."""
CASES = {case.id: case for case in load_cases() if case.id in FIRST}
LEGACY, MODERN = REVISIONS

# What each fault is found by. Everything else a client with that fault does is right.
FOUND: dict[Fault, dict[str, str]] = {
    "first-page-only": {
        "paging:every-page": "warn",
        "paging:empty-cursor": "not_applicable",
        "notice:next-access": "warn",
        "notice:during-listing": "not_applicable",
    },
    "empty-cursor-ends": {"paging:empty-cursor": "empty"},
    "deaf": {
        "notice:next-access": "warn",
        "notice:during-listing": "not_applicable",
        "failure:keeps-last-good": "warn",
    },
    "notice-forgotten": {"notice:during-listing": "warn"},
    "emptied-by-failure": {"failure:keeps-last-good": "warn"},
    "late-answer-wins": {"late:timed-out-answer": "warn"},
    "asks-undeclared": {"capability:undeclared": "undeclared"},
    "never-reconnects": {"reconnect:lists-again": "warn"},
    "keeps-list-over-reconnect": {"reconnect:lists-again": "warn"},
    "joins-old-pages": {"notice:next-access": "warn", "notice:during-listing": "not_applicable"},
}
SEVERE = {
    ("empty", LEGACY): "warn",
    ("empty", MODERN): "fail",
    ("undeclared", LEGACY): "fail",
    ("undeclared", MODERN): "warn",
}


def in_virtual_time(run: Callable[[], Awaitable[None]]) -> None:
    """On trio, with a clock that jumps to the next deadline: no test waits for anything."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    anyio.run(run, backend="trio", backend_options={"clock": clock})


def played(case: Case, revision: str, *faults: Fault) -> Played:
    results: list[Played] = []

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            results.append(await play(case, revision, "memory", ScriptedDriver(tasks, *faults)))
            tasks.cancel_scope.cancel()

    in_virtual_time(run)
    return results[0]


def word(result: Played) -> str:
    return result.verdict.word if result.verdict else result.outcome.word


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_correct_client_passes(case: Case, revision: str) -> None:
    result = played(case, revision)
    assert (word(result), result.verdict and result.verdict.unjudged) == ("pass", ())


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("fault", FOUND)
def test_a_fault_is_found_by_its_cases_and_by_no_other(fault: Fault, revision: str) -> None:
    expected = dict.fromkeys(CASES, "pass")
    for case, found in FOUND[fault].items():
        expected[case] = SEVERE.get((found, revision), found)
    assert {id_: word(played(case, revision, fault)) for id_, case in CASES.items()} == expected


def test_a_flood_is_judged_by_what_came_and_cannot_pass() -> None:
    """An endless list, and a client that follows it."""
    endless = {"request": {"method": "tools/list"}, "times": "always"}
    page = {"items": ["a@1"], "next": "c{n}"}
    steps = [{"answer": {**endless, "page": page}}, {"connect": {}},
             {"need": {"kind": "tools", "as": "list"}}]  # fmt: skip
    bounded = {"requested": {"method": "tools/list", "at_most": 2_000}}
    for expect, found in ((bounded, "warn"), ({"requested": {"method": "tools/list"}}, "pass")):
        result = played(made_case(steps=steps, expect=[expect]), LEGACY)
        assert result.verdict is not None
        assert (result.verdict.word, result.outcome.word) == (
            (found, "judged") if found == "warn" else (found, "inconclusive")
        )


class LateDriver(ScriptedDriver):
    """Its need takes no time on the clock that the harness sees, but the harness wakes up late."""

    def __init__(self, tasks: TaskGroup, clock: trio.testing.MockClock) -> None:
        super().__init__(tasks, "deaf")
        self.clock = clock

    async def ask(self, op: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        if op == "believe":
            self.clock.jump(5)
        return await super().ask(op, fields)


def test_a_play_that_was_held_up_is_inconclusive() -> None:
    clock = trio.testing.MockClock(autojump_threshold=0)

    async def run() -> Played:
        async with anyio.create_task_group() as tasks:
            driver = LateDriver(tasks, clock)
            result = await play(CASES["notice:next-access"], LEGACY, "memory", driver)
            tasks.cancel_scope.cancel()
        return result

    result = anyio.run(run, backend="trio", backend_options={"clock": clock})
    assert result.lag_ms > 1_000
    assert result.outcome.word == "inconclusive"
    assert "late" in result.outcome.reason


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_correct_client_passes_on_real_transports(transport: str) -> None:
    """All cases of both eras at once on one stage."""
    results: dict[str, str] = {}

    async def run() -> None:
        async with anyio.create_task_group() as clients, open_stage() as stage:
            driver = ScriptedDriver(clients)

            async def one(case: Case, revision: str) -> None:
                result = await play(case, revision, transport, driver, stage=stage)
                results[f"{case.id} {revision}"] = f"{word(result)} {result.outcome.reason}"

            async with anyio.create_task_group() as plays:
                for case in CASES.values():
                    for revision in REVISIONS:
                        plays.start_soon(one, case, revision)
            clients.cancel_scope.cancel()

    anyio.run(run)
    assert set(results.values()) == {"pass "}, results
