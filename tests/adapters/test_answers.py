"""What a server may answer, over real transports: what a probe proves, and what is tolerated."""

import json
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from attrs import frozen

from relist.policy import Policy
from relist.values import LinkPhase, Wire
from relist_mcp import Catalogs
from relist_mcp.loop import Fed
from support.brain import LEGACY, MODERN, Brain, Frame, tool
from support.live import ERAS, policy
from support.loops import run_really
from support.raw import Answer, raw_server

pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")

LATEST = "2027-01-01"
DISCOVER, INITIALIZE, LISTS = "server/discover", "initialize", "tools/list"
LIMIT_S = 20.0


# --- the verdict on a probe -----------------------------------------------------------------------


def _result(*versions: str) -> Frame:
    return {"result": {"supportedVersions": list(versions), "capabilities": {"tools": {}}}}


def _error(code: Any, *supported: str) -> Frame:
    return {"error": {"code": code, "message": "no", "data": {"supported": list(supported)}}}


def _says(*, status: int = 200, body: Any = b"", **headers: str) -> Answer:
    return Answer(body, status, {key.replace("_", "-"): text for key, text in headers.items()})


ANYWHERE = {
    "a version of ours": (_result(MODERN), f"{LISTS} {MODERN}"),
    "several": (_result(LEGACY, MODERN, LATEST), f"{LISTS} {LATEST}"),
    "only versions of the past": (_result(LEGACY), f"{INITIALIZE} {LEGACY}"),
    "an old version of the past": (_result("2025-03-26"), f"{INITIALIZE} 2025-03-26"),
    "no version of ours": (_result("2099-01-01"), "refused"),
    "unsupported, another modern one": (_error(-32022, MODERN), f"{DISCOVER} {MODERN}"),
    "unsupported, one of the past": (_error(-32022, "2025-06-18"), f"{INITIALIZE} 2025-06-18"),
    "unsupported, none of ours": (_error(-32022, "2099-01-01"), "refused"),
    "unsupported, no list": (_error(-32022), "refused"),
    "header mismatch": (_error(-32020), "refused"),
    "missing capability": (_error(-32021), "refused"),
    **{
        f"error {code}": (_error(code), f"{INITIALIZE} {LEGACY}")
        for code in (-32700, -32600, -32601, -32602, -32603, -32002, -32000, 0, 1)
    },
}
OVER_HTTP = {
    **{
        f"{status} without a body": (_says(status=status), f"{INITIALIZE} {LEGACY}")
        for status in (400, 404, 405, 406, 415)
    },
    "400 with a page": (
        _says(status=400, body=b"<html>", content_type="text/html"),
        f"{INITIALIZE} {LEGACY}",
    ),
    **{f"{status}": (_says(status=status), "parked") for status in (401, 403)},
    **{
        f"{status}": (_says(status=status), f"{DISCOVER} {LATEST}")
        for status in (408, 429, 500, 502, 503, 504)
    },
    "503 with an error of the past": (
        _says(status=503, body=_error(-32601)),
        f"{DISCOVER} {LATEST}",
    ),
    "401 with an error of the past": (_says(status=401, body=_error(-32601)), "parked"),
    "a cut": (Answer(cut=True), f"{DISCOVER} {LATEST}"),
}
ON_A_PIPE = {
    "silence": (None, f"{INITIALIZE} {LEGACY}"),
    "no JSON": (Answer(b"hello"), f"{INITIALIZE} {LEGACY}"),
    "an end": (Answer(cut=True), f"{DISCOVER} {LATEST}"),
}


@frozen
class Probe:
    """What is answered to a probe on a wire, and what then comes of it."""

    name: str
    wire: Wire
    answer: Answer | None
    follows: str

    def __str__(self) -> str:
        return f"{self.wire.value}: {self.name}"


def probes() -> Iterator[Probe]:
    """The table. An error may come with 200 or 400 over HTTP, and means the same."""
    for name, (body, follows) in ANYWHERE.items():
        yield Probe(name, Wire.PIPE, Answer(body), follows)
        yield Probe(name, Wire.HTTP, Answer(body), follows)
        if "error" in body:
            yield Probe(f"400 and {name}", Wire.HTTP, Answer(body, 400), follows)
    for name, (answer, follows) in OVER_HTTP.items():
        yield Probe(name, Wire.HTTP, answer, follows)
    for name, (silence, follows) in ON_A_PIPE.items():
        yield Probe(name, Wire.PIPE, silence, follows)


def _version(frame: Frame) -> str:
    params = frame["params"]
    asked: str = (
        params["protocolVersion"]
        if frame["method"] == INITIALIZE
        else params["_meta"]["io.modelcontextprotocol/protocolVersion"]
    )
    return asked


@pytest.mark.rule("LIFE-24")
@pytest.mark.rule("LIFE-29")
@pytest.mark.rule("LIFE-30")
@pytest.mark.rule("LIFE-31")
@pytest.mark.rule("LIFE-32")
@pytest.mark.rule("LIFE-33")
@pytest.mark.rule("LIFE-34")
@pytest.mark.rule("LIFE-35")
@pytest.mark.parametrize("probe", list(probes()), ids=str)
def test_what_a_client_does_after_the_answer_to_its_probe(probe: Probe) -> None:
    """The next request and its version, or how the link ends; nothing else was sent before."""
    sent: list[str] = []
    done = anyio.Event()

    def answers(frame: Frame) -> Answer | None:
        if "id" in frame:
            sent.append(f"{frame['method']} {_version(frame)}")
        if len(sent) > 1:
            done.set()
        return probe.answer if len(sent) == 1 else None

    def observe(fed: Fed) -> None:
        link = fed.after.link.phase
        if link in (LinkPhase.PARKED, LinkPhase.REFUSED):
            sent.append(link.value)
            done.set()

    async def play() -> None:
        with anyio.fail_after(LIMIT_S):
            async with (
                raw_server(probe.wire, answers) as target,
                Catalogs.connect(target, policy=_hasty(probe)) as catalogs,
            ):
                catalogs.observe(observe)
                await done.wait()

    run_really(play)
    assert sent[:2] == [f"{DISCOVER} {LATEST}", probe.follows]


def _hasty(probe: Probe) -> Policy:
    """Only where nothing is answered is the limit short."""
    limit_ms = 300 if probe.name in ON_A_PIPE else 10_000
    soon = {"backoff_base_ms": 2, "backoff_max_ms": 2, "probe_limit_ms": limit_ms}
    return policy(modern_versions=(LATEST, MODERN), **soon)


# --- what is tolerated ----------------------------------------------------------------------------

BAD: list[object] = [7, None, {"inputSchema": {}}, {"name": "no schema"}, {"name": 1}]
UNKNOWN = {"x-new": {"b": [1, True, None], "a": 1.5}, "_meta": {"x": [{}]}}
EXTRA = {"x-extra": [1], "_meta": {"y": 2}}


@pytest.mark.rule("DISC-25")
@pytest.mark.rule("LIFE-42")
@pytest.mark.rule("LIFE-44")
@pytest.mark.rule("RES-14")
@pytest.mark.parametrize("wire", list(Wire), ids=lambda wire: wire.value)
@ERAS
def test_what_is_tolerated_and_kept(era: str, wire: Wire) -> None:
    """Missing hints, unknown fields everywhere, bad entries; each field counts and is shown."""
    brain = Brain(era)
    brain.push, brain.hints = False, {}
    entry = tool("a", **UNKNOWN)
    brain.capabilities = lambda: {"tools": {"x": 1}, "x-cap": {}}  # type: ignore[method-assign]
    brain.discovery = lambda: {  # type: ignore[method-assign]
        "supportedVersions": [MODERN],
        "capabilities": brain.capabilities(),
        **EXTRA,
    }
    brain.answers[LISTS] = lambda _: {"result": {"tools": [*BAD, entry], **EXTRA}}

    def answers(frame: Frame) -> Answer | None:
        body = brain.take(frame)
        if body is None:
            return Answer(status=202) if wire is Wire.HTTP else None
        return Answer({**body, **EXTRA})

    async def play() -> None:
        nonlocal entry
        with anyio.fail_after(LIMIT_S):
            async with (
                raw_server(wire, answers) as target,
                Catalogs.connect(target, policy=policy()) as catalogs,
            ):
                before = (await catalogs.tools.get()).snapshot
                shown = catalogs.tools.surface()
                assert before is not None
                assert shown is not None
                assert [json.loads(item.canonical_json) for item in shown.items] == [entry]
                async with aclosing(catalogs.tools.changes()) as changes:
                    entry = tool("a", **{**UNKNOWN, "x-new": {"b": [1, 1, None], "a": 1.5}})
                    await catalogs.tools.refresh()
                    change = await anext(changes)
                assert [one.fields for one in change.changed] == [("x-new",)]
                assert change.changed[0].after.digest != before.items[0].digest
                assert catalogs.session.link.version == era

    run_really(play)
