"""The base class for clients in this process, with a right client and with wrong ones."""

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest

from conformance.scripted_client import Fault, ScriptedClient, ScriptedDriver
from relist_conformance.drivers.base import Answer, Connection, Target
from relist_conformance.ends.memory import MemoryLink
from relist_conformance.in_process import ClientTests, InProcessDriver
from relist_conformance.pytest_cases import RelistWarning
from relist_conformance.script import REVISIONS, Case, load_cases

CASES = {case.id: case for case in load_cases()}


FIRST = (
    *("paging:every-page", "paging:empty-cursor", "notice:next-access", "notice:during-listing"),
    *("failure:keeps-last-good", "late:timed-out-answer", "capability:undeclared"),
    "reconnect:lists-again",
)


class Scripted(Connection):
    """The scripted client as a connection."""

    def __init__(self, target: Target, link: MemoryLink, *faults: Fault) -> None:
        super().__init__(target)
        self.link, self.faults = link, faults

    async def run(self, usable: Callable[[], None]) -> None:
        async with anyio.create_task_group() as tasks:
            self.driver = ScriptedDriver(tasks, *self.faults)
            client = self.driver.clients["c"] = ScriptedClient(frozenset(self.faults))
            usable()
            await client.run(
                {"transport": "memory", "link": self.link}, self.target.request_timeout_s or 5
            )

    async def ask(self, op: str, **fields: Any) -> Answer:
        return await self.driver.ask(op, {"connection": "c", **fields})

    async def need(self, kind: str) -> Answer:
        return await self.ask("need", kind=kind)

    def believe(self, kind: str) -> Answer:
        held = self.driver.clients["c"].held.get(kind)
        items = held and [{key: one[key] for key in ("name", "description")} for one in held]
        return {"items": items, "state": "unknown"}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        return await self.ask("call", name=name)


class TestRight(ClientTests):
    """The tests of the base class, as somebody has them whose client does what these cases ask."""

    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize("case", [CASES[name] for name in FIRST], ids=FIRST)
    def test_case(self, case: Case, revision: str) -> None:
        super().test_case(case, revision)

    def connect(self, target: Target, link: MemoryLink) -> Connection:
        return Scripted(target, link)


def wrong(*faults: Fault) -> ClientTests:
    class Wrong(ClientTests):
        def connect(self, target: Target, link: MemoryLink) -> Connection:
            return Scripted(target, link, *faults)

    return Wrong()


@pytest.mark.parametrize("fault", ["first-page-only", "deaf", "never-reconnects"])
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_story_is_found_that_a_wrong_client_does_not_survive(fault: Fault, revision: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="fail: story:any on memory"):
        wrong(fault).test_any_story(revision=revision)


def test_a_wrong_client_is_found_by_the_cases() -> None:
    """What only warns is a warning; what did not apply is skipped with the reason."""
    client = wrong("first-page-only")
    with pytest.warns(RelistWarning, match="paging:every-page on memory"):
        client.check(CASES["paging:every-page"], REVISIONS[1])
    with pytest.raises(pytest.skip.Exception, match="never asked for a second page"):
        client.check(CASES["paging:empty-cursor"], REVISIONS[1])
    with pytest.raises(pytest.fail.Exception, match="CAP-01: the client sent prompts/list"):
        wrong("asks-undeclared").check(CASES["capability:undeclared"], REVISIONS[0])


def test_real_time_on_asyncio() -> None:
    class Real(TestRight):
        backend = "asyncio"

    Real().check(CASES["paging:every-page"], REVISIONS[0])


@pytest.mark.anyio
async def test_a_client_that_gives_up_answers_with_errors() -> None:
    class Lost(Scripted):
        async def run(self, usable: Callable[[], None]) -> None:
            raise OSError("no server here")

    class Tests(ClientTests):
        def connect(self, target: Target, link: MemoryLink) -> Connection:
            return Lost(target, link)

    async with anyio.create_task_group() as tasks:
        driver = InProcessDriver(Tests().connect, tasks)
        fields = {"connection": "c", "revision": REVISIONS[0], "target": {"link": None}}
        assert await driver.ask("connect", fields) == {}
        with pytest.raises(Exception, match="AttributeError"):
            await driver.ask("need", {"connection": "c", "kind": "tools"})
        with pytest.raises(Exception, match="unknown op"):
            await driver.ask("fly", {"connection": "c"})
