"""``model/`` cannot block, look at a clock or draw a number.

A statement about our own code: imports are followed from module to module of ``relist`` and stop at
attrs and python-statemachine. Then the whole core runs with everything forbidden patched to raise.
"""

import ast
import builtins
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from relist import Capabilities, Channel, Hit, Item, Kind, Policy, Relist, Scope, Wire, inputs
from relist.effects import RequestPage
from relist.values import CHANNELS, KINDS

MODEL = Path(__file__).parents[2] / "model"
FILES = sorted((MODEL / "relist").rglob("*.py"))
ALLOWED = {
    *("collections", "collections.abc", "enum", "functools", "hashlib", "itertools", "math"),
    *("operator", "types", "typing", "gc", "json", "re", "string", "html", "xml", "bisect"),
    *("contextlib", "textwrap", "xml.sax.saxutils", "xml.etree.ElementTree"),
    "attrs",
}
ALLOWED_IN = {"charts.py": {"statemachine"}, "machine.py": {"statemachine"}}
FORBIDDEN = {
    *("asyncio", "anyio", "trio", "threading", "multiprocessing", "concurrent", "logging"),
    *("time", "datetime", "random", "secrets", "uuid", "socket", "ssl", "subprocess", "select"),
    *("os", "io", "pathlib", "shutil", "tempfile", "urllib", "http", "mcp", "mcp_types"),
    *("relist_mcp", "relist_conformance", "relist_specs"),
}


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that they can be followed"
            yield node.module or ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(MODEL)))
def test_a_module_imports_only_values_and_ours(path: Path) -> None:
    allowed = ALLOWED | ALLOWED_IN.get(path.name, set())
    for name in _imports(path):
        if name.split(".")[0] == "relist":
            found = MODEL / name.replace(".", "/")
            assert found.with_suffix(".py") in FILES or found / "__init__.py" in FILES
        else:
            assert name in allowed, f"{path.name} imports {name}"
            assert name.split(".")[0] not in FORBIDDEN


def test_nothing_of_ours_is_reached_by_name_only() -> None:
    """No import hides from the one above."""
    for path in FILES:
        text = path.read_text()
        assert "__import__" not in text, path
        assert "importlib" not in text, path


class Impure(Exception):
    """The core touched the world."""


def _raise(*_: object, **__: object) -> Any:
    raise Impure


FUNCTIONS: tuple[tuple[ModuleType, str], ...] = (
    *((time, name) for name in ("time", "monotonic", "perf_counter", "sleep", "time_ns")),
    *((random, name) for name in ("random", "randint", "choice", "getrandbits")),
    *((os, name) for name in ("urandom", "getenv", "listdir", "stat")),
    *((socket, name) for name in ("socket", "create_connection", "getaddrinfo")),
    *((builtins, name) for name in ("open", "input", "print")),
)


def _pages(core: Relist, now_ms: int) -> None:
    """Answer every page request that is open with one page."""
    for effect in core.effects():
        if isinstance(effect, RequestPage):
            item = Item("a", b'{"name":"a"}')
            core.receive(
                inputs.PageArrived(
                    effect.kind, effect.serial, (item,), None, 1_000, Scope.PUBLIC, now_ms
                )
            )


def _live(modern: tuple[str, ...], legacy: tuple[str, ...]) -> list[Hit]:
    policy = Policy(seed=b"seed", poll_ms=500, modern_versions=modern, legacy_versions=legacy)
    core = Relist(Wire.PIPE, policy)
    declared = Capabilities(frozenset(KINDS), frozenset(CHANNELS))
    core.receive(inputs.ConnectWanted(0))
    core.receive(inputs.TransportOpened(1, 1))
    if modern:
        core.receive(inputs.DiscoverAnswered(1, modern, declared, 2))
        core.receive(inputs.PushOpened(1, frozenset(CHANNELS), 3))
    else:
        core.receive(inputs.InitializeAnswered(1, legacy[0], declared, 2))
    _pages(core, 4)
    fresh = [core.read(kind, 5).hit for kind in KINDS]
    core.receive(inputs.NoticeHeard(Channel.TOOLS, None, 6))
    core.receive(inputs.RefreshWanted(Kind.PROMPTS, 7))
    core.receive(inputs.TimePassed(core.deadline_ms() or 0))
    _pages(core, 2_000)
    core.receive(inputs.CredentialsChanged("other", 2_001))
    core.receive(inputs.TransportLost(core.session.link.epoch, 2_002))
    core.receive(inputs.TimePassed(60_000))
    return fresh


@pytest.mark.parametrize(
    ("modern", "legacy"),
    [(("2026-07-28",), ()), ((), ("2025-11-25",))],
    ids=["modern", "legacy"],
)
def test_the_core_runs_with_the_world_taken_away(
    modern: tuple[str, ...], legacy: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        for module, name in FUNCTIONS:
            patch.setattr(module, name, _raise)
        seen = _live(modern, legacy)
    assert seen == [Hit.HIT] * 4


PLAYED = """
import sys
from support.play import Play
from support.stage import SETTINGS

settings = list(SETTINGS)
touched = []
sys.addaudithook(lambda event, _: touched.append(event))
for setting in settings:
    play = Play(setting)
    for choice in bytes(range(0, 250, 3)):
        play.act(choice)
    play.settle()
print(*sorted(set(touched)))
"""
HARMLESS = {"object.__getattr__", "sys._getframe", "builtins.id"}  # no way out of the process


def test_whole_plays_touch_nothing_that_the_interpreter_watches() -> None:
    """Files, sockets, processes, imports: in every setting, after all modules were loaded."""
    result = subprocess.run(
        [sys.executable, "-c", PLAYED],
        cwd=MODEL.parent / "tests",
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(result.stdout.split()) <= HARMLESS


def test_the_core_loads_no_sdk_and_no_adapter() -> None:
    """In a process of its own, since this one has loaded everything."""
    program = "import relist, sys; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in result.stdout.split()}
    assert not loaded & {"mcp", "mcp_types", "anyio", "pydantic", "relist_mcp", "starlette"}
