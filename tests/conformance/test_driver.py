"""The driver host, and the loop that Python drivers share."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from relist_conformance.driver import Driver, Limits, parse_command
from relist_conformance.errors import ConformanceError, DriverError, DriverReplyError, quoted

pytestmark = pytest.mark.anyio

CLIENTS = Path(__file__).parent.parent / "clients"
CONTRACT = Path(__file__).parents[2] / "specs" / "driver-contract.md"
TOY = (sys.executable, str(CLIENTS / "toy.py"))
STDIO = {"transport": "stdio", "command": ["server"], "env": {}}


def broken(how: str) -> tuple[str, ...]:
    return (sys.executable, str(CLIENTS / "broken.py"), how)


async def ask_once(argv: tuple[str, ...], limits: Limits, op: str = "need") -> Mapping[str, Any]:
    async with Driver.start(argv, limits) as driver:
        return await driver.ask(op, {"connection": "c1", "kind": "tools"})


def failure(argv: tuple[str, ...], limits: Limits | None = None) -> str:
    with pytest.raises(DriverError) as caught:
        anyio.run(partial(ask_once, argv, limits or Limits()))
    message = str(caught.value)
    assert "\n" not in message
    assert message.isprintable()
    assert len(message) < 500
    return message


def connect_fields(name: str = "c1", **target: object) -> dict[str, object]:
    return {"connection": name, "target": {**STDIO, **target}, "revision": "2025-11-25"}


def test_the_example_of_the_contract_page_replays() -> None:
    block = re.search(r"```dialogue\n(.*?)```", CONTRACT.read_text(), re.DOTALL)
    assert block
    with subprocess.Popen(
        TOY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as toy:
        assert toy.stdin
        assert toy.stdout
        for line in block[1].splitlines():
            if line.startswith("> "):
                toy.stdin.write(line[2:] + "\n")
            else:
                assert json.loads(toy.stdout.readline()) == json.loads(line[2:])
        toy.stdin.close()
        assert toy.wait() == 0


async def test_hello_is_kept() -> None:
    async with Driver.start(TOY) as driver:
        assert (driver.hello.name, driver.hello.version, driver.hello.level) == ("toy", "1", "full")
        assert driver.hello.transports == ("stdio", "http")


async def test_commands_overlap_and_a_stop_ends_those_pending() -> None:
    async with Driver.start(TOY) as driver:
        await driver.ask("connect", connect_fields())
        errors: list[str | None] = []

        async def wait_for_ever() -> None:
            with pytest.raises(DriverReplyError) as caught:
                await driver.ask("need", {"connection": "c1", "kind": "prompts"})
            errors.append(caught.value.code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_for_ever)
            answer = await driver.ask("need", {"connection": "c1", "kind": "tools"})
            assert answer["state"] == "fresh"
            await driver.ask("stop", {"connection": "c1"})
        assert errors == ["stopped"]


async def test_a_late_reply_to_an_abandoned_command_is_ignored() -> None:
    async with Driver.start(TOY) as driver:
        await driver.ask("connect", connect_fields())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(driver.ask, "need", {"connection": "c1", "kind": "prompts"})
            await driver.ask("need", {"connection": "c1", "kind": "tools"})
            tasks.cancel_scope.cancel()
        await driver.ask("stop", {"connection": "c1"})
        await driver.ask("hello", {"contract": 1})
        assert driver.broken is None


async def test_an_error_reply_leaves_the_driver_usable() -> None:
    async with Driver.start(TOY) as driver:
        await driver.ask("connect", connect_fields())
        with pytest.raises(DriverReplyError, match="driver bug"):
            await driver.ask("call", {"connection": "c1", "name": "broken"})
        with pytest.raises(DriverReplyError, match="unknown op") as caught:
            await driver.ask("fly", {})
        assert caught.value.code == "unsupported"
        assert driver.broken is None


async def test_optional_commands_reach_the_connection_or_are_unsupported() -> None:
    optional: dict[str, dict[str, object]] = {
        "credentials": {"token": "t"},
        "advance": {"ms": 5},
        "refresh": {"kind": "tools"},
        "subscribe": {"uri": "relist://r"},
        "unsubscribe": {"uri": "relist://q"},
        "read": {"uri": "relist://r"},
        "get_prompt": {"name": "p", "arguments": {"x": "y"}},
    }
    async with Driver.start((*TOY, "able")) as driver:
        assert {*optional, "planned"} <= set(driver.hello.ops)
        await driver.ask("connect", connect_fields())
        said = {
            op: await driver.ask(op, {"connection": "c1", **fields})
            for op, fields in optional.items()
        }
        assert said["refresh"] == {"items": [{"name": "tools for t at 5", "description": ""}]}
        assert said["read"]["text"] == "relist://r, of ['relist://r']"
        assert said["get_prompt"]["text"] == "p {'x': 'y'}"
        outcomes = [
            (await driver.ask("call", {"connection": "c1", "name": "a", "planned": planned}))
            for planned in ({"name": "a", "description": "a@1"}, {"name": "a", "description": "x"})
        ]
        assert [one["outcome"] for one in outcomes] == ["result", "refused"]
    async with Driver.start(TOY) as driver:
        await driver.ask("connect", connect_fields())
        for op, fields in optional.items():
            with pytest.raises(DriverReplyError) as caught:
                await driver.ask(op, {"connection": "c1", **fields})
            assert caught.value.code == "unsupported"


async def test_connect_answers_when_the_client_gives_up() -> None:
    async with Driver.start(TOY) as driver:
        assert await driver.ask("connect", connect_fields(command=["gives up"])) == {}


def test_a_driver_that_does_not_start() -> None:
    assert failure(("/no/such/driver", "-x")) == (
        "driver '/no/such/driver -x' does not start: No such file or directory"
    )


def test_a_driver_that_prints_garbage() -> None:
    message = failure(broken("garbage"))
    assert "printed a line that is no reply: '\\x1b[31m[bold]Hello! xxx" in message
    assert message.endswith("x…'")


def test_a_driver_that_prints_an_endless_line() -> None:
    assert "printed a line longer than 4194304 bytes" in failure(broken("endless"))


def test_a_driver_that_answers_what_nobody_asked() -> None:
    assert 'no reply: \'{"id": 99, "ok": {}}\'' in failure(broken("foreign id"))


def test_a_driver_that_exits_early() -> None:
    message = failure(broken("exits"))
    assert "exited with code 3; its last line on stderr: 'no such module: [bold]client'" in message


def test_a_driver_that_exits_later() -> None:
    message = failure(broken("exits later"))
    assert "exited with code 4; its last line on stderr: 'KeyError: \\'kind\\''" in message


def test_a_driver_of_another_contract() -> None:
    assert "speaks contract '2', this suite speaks 1" in failure(broken("contract"))


def test_a_driver_with_a_wrong_hello() -> None:
    message = failure(broken("hello field"))
    assert "said a wrong hello: field 'level' is '\\'[red]godlike\\''" in message


def test_a_driver_that_does_not_say_hello() -> None:
    message = failure(broken("hangs"), Limits(hello_s=0.1, stop_s=0.1))
    assert "does not answer 'hello' within 0.1 s" in message


def test_a_driver_that_hangs_names_the_command() -> None:
    message = failure(broken("stays"), Limits(op_s=0.1))
    assert "does not answer 'need' within 0.1 s" in message


def test_a_reply_that_is_neither_ok_nor_error() -> None:
    assert "answered 'need' without an 'ok' object" in failure(broken("neither"))


async def test_a_broken_driver_fails_each_further_command_at_once() -> None:
    async with Driver.start(broken("exits later")) as driver:
        for _ in range(2):
            with pytest.raises(DriverError, match="exited with code 4"):
                await driver.ask("need", {})
        assert driver.broken


async def test_a_driver_that_outlives_its_stdin_is_ended() -> None:
    async with Driver.start(broken("stays"), Limits(stop_s=0.1)) as driver:
        process = driver._process
    assert process.returncode == -signal.SIGKILL


async def test_cancellation_leaves_no_process() -> None:
    with anyio.CancelScope() as scope:
        async with Driver.start(broken("stays"), Limits(stop_s=0.1)) as driver:
            process = driver._process
            scope.cancel()
            await anyio.sleep_forever()
    assert process.returncode is not None


async def test_an_exception_of_the_body_comes_through_unwrapped() -> None:
    with pytest.raises(ConformanceError, match="port"):
        async with Driver.start(TOY):
            raise ConformanceError("port in use")


@pytest.mark.parametrize("command", ["", "   ", "python 'x"])
def test_a_command_that_is_none(command: str) -> None:
    with pytest.raises(ConformanceError, match="driver command"):
        parse_command(command)


def test_quoted_is_one_safe_line() -> None:
    assert quoted("a\nb\x1b[1m'\\") == r"'a\nb\x1b[1m\'\\'"
    assert quoted("x" * 10, 3) == "'xxx…'"
