"""``relist new-driver``: what it writes speaks the contract and says what is still missing."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from relist_conformance.driver import Driver, Hello
from relist_conformance.errors import DriverReplyError
from relist_conformance.new_driver import SKELETONS

RELIST = (sys.executable, "-m", "relist_conformance.cli", "new-driver")
RUNS = {"python": (sys.executable, "driver.py"), "typescript": ("node", "driver.mjs")}
STDIO = {"transport": "stdio", "command": ["/no/such/server"], "env": {}}


def new_driver(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run((*RELIST, *args), capture_output=True, text=True, check=False)


def argv(language: str, folder: Path) -> tuple[str, ...]:
    program, file = RUNS[language]
    return (program, str(folder / file))


async def use(command: tuple[str, ...]) -> Hello:
    async with Driver.start(command) as driver:
        await driver.ask("connect", {"connection": "c", "target": STDIO, "revision": "2026-07-28"})
        believed = await driver.ask("believe", {"connection": "c", "kind": "tools"})
        assert believed == {"items": None, "state": "unknown"}
        assert await driver.ask("idle", {"connection": "c"}) == {"idle": None}
        for op, more in (("need", {"kind": "tools"}), ("call", {"name": "a", "arguments": {}})):
            with pytest.raises(DriverReplyError, match=f"{op} is not written yet"):
                await driver.ask(op, {"connection": "c", **more})
        with pytest.raises(DriverReplyError) as caught:
            await driver.ask("fly", {})
        assert caught.value.code == "unsupported"
        await driver.ask("stop", {"connection": "c"})
        with pytest.raises(DriverReplyError, match="unknown connection"):
            await driver.ask("believe", {"connection": "c", "kind": "tools"})
        return driver.hello


@pytest.mark.parametrize("language", SKELETONS)
def test_the_skeleton_passes_hello_and_says_what_is_missing(language: str, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "for it"
    done = new_driver("--lang", language, str(folder))
    assert done.returncode == 0, done.stderr
    assert {line.split(maxsplit=1)[0] for line in done.stdout.splitlines()} == {"wrote", "next:"}
    hello = anyio.run(use, argv(language, folder))
    assert (hello.name, hello.level, len(hello.kinds)) == ("my client", "full", 4)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "contract.mjs").write_text("mine")
    done = new_driver("--lang", "typescript", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("contract.mjs' exists already\n")
    assert [file.name for file in tmp_path.iterdir()] == ["contract.mjs"]


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (("--lang", "cobol"), "--lang 'cobol' is not one of python, typescript"),
        (("/dev/null/x",), "folder '/dev/null/x': Not a directory"),
    ],
)
def test_one_line_says_what_is_wrong(args: tuple[str, ...], line: str) -> None:
    done = new_driver(*args)
    assert (done.returncode, done.stderr) == (2, f"relist: {line}\n")


def test_a_stopped_need_of_a_node_driver_gets_an_error(tmp_path: Path) -> None:
    """The skeleton with a client that never answers."""
    assert new_driver("--lang", "typescript", str(tmp_path)).returncode == 0
    file = tmp_path / "driver.mjs"
    text = file.read_text()
    never = text.replace("throw new Error(`need", "await new Promise(() => {});\n`x`; (`need")
    assert never != text
    file.write_text(never)

    async def run() -> str | None:
        async with Driver.start(argv("typescript", tmp_path)) as driver:
            fields = {"connection": "c", "target": STDIO, "revision": "2026-07-28"}
            await driver.ask("connect", fields)
            codes: list[str | None] = []

            async def need() -> None:
                with pytest.raises(DriverReplyError) as caught:
                    await driver.ask("need", {"connection": "c", "kind": "tools"})
                codes.append(caught.value.code)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(need)
                await anyio.wait_all_tasks_blocked()
                await driver.ask("stop", {"connection": "c"})
            return codes[0]

    assert anyio.run(run) == "stopped"
