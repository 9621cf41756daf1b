"""Clients that are correct by other choices than ours are blamed for nothing.

They share no code with the reference client, so that their agreement means something: a case that
one of them fails demands what the texts leave open. In memory and in virtual time, but for what
only HTTP has.
"""

from collections.abc import Mapping
from functools import cache, partial

import anyio
import pytest
import trio.testing

from clients.lazy import Deaf, Lazy
from clients.pages import Pages
from clients.told import Told
from mutants.at_once import over_http, played
from relist_conformance.drivers.base import Connection, Target
from relist_conformance.ends.memory import MemoryLink
from relist_conformance.in_process import ClientTests, InProcessDriver
from relist_conformance.play import Played
from relist_conformance.script import REVISIONS, Case, load_cases

CELLS = {
    f"{case.id}-{revision}": (case, revision)
    for case in load_cases()
    for revision in case.revisions
}
BY_ITSELF = "the client does not list by itself after a notice"
ASKS_ONCE = "the client does not ask again what the server offers"
UNASKED = (
    *("the client did not probe", "the client did not ask for", "the client did not begin"),
    *("the client did not try the modern era first", "the client never came to speak 2025-11-25"),
)
MUTE = ("the client has no acknowledged subscription", "the client opened no stream for notices")
CHOICES: Mapping[type[Told], tuple[str, ...]] = {
    # It does nothing before somebody needs a list, and over HTTP never asks for discovery.
    Lazy: (*UNASKED, ASKS_ONCE, BY_ITSELF),
    # Nor does it ask for notices.
    Deaf: (*UNASKED, ASKS_ONCE, *MUTE, "the client asked for no", "the client does not subscribe"),
    # It knows no revision but the two.
    Pages: (ASKS_ONCE, BY_ITSELF, "the client did not go on with 2025-06-18"),
}
"""How the reasons begin for which a case need not be applicable to a client."""

NOT_OFFERED = [f"the driver does not offer '{op}'" for op in ("read", "get_prompt", "subscribe")]
"""They keep lists, and neither read resources nor have prompts rendered."""

HANDED_ON = ("call:arguments-are-checked", "call:header-mismatch", "call:result-is-checked")
"""They make calls as they are told and give results as they come: what the texts only advise
against (SHOULD, or the seed) is found, and true."""

CLIENTS = pytest.mark.parametrize("client", CHOICES, ids=lambda client: client.__name__)


@cache
def _over_http(client: type[Told]) -> Mapping[tuple[str, str], Played]:
    cells = [(case, revision) for case, revision in CELLS.values() if _only_http(case)]
    return anyio.run(over_http, cells, partial(InProcessDriver, client))


def _only_http(case: Case) -> bool:
    return "memory" not in case.transports


def judged(case: Case, revision: str, client: type[Told]) -> Played:
    """Play one case against one client."""
    if _only_http(case):
        return _over_http(client)[case.id, revision]
    options = {"clock": trio.testing.MockClock(autojump_threshold=0)}
    new = partial(InProcessDriver, client)
    return anyio.run(played, case, revision, new, backend="trio", backend_options=options)


@CLIENTS
@pytest.mark.parametrize(("case", "revision"), CELLS.values(), ids=CELLS)
def test_no_case_blames_it(case: Case, revision: str, client: type[Told]) -> None:
    played = judged(case, revision, client)
    if played.outcome.word == "untestable":
        assert played.outcome.reason in NOT_OFFERED
    elif played.outcome.word == "not_applicable":
        assert played.outcome.reason.startswith(CHOICES[client])
    else:
        assert played.verdict is not None, played.outcome
        allowed = ("pass", "warn") if case.id in HANDED_ON else ("pass",)
        assert played.verdict.word in allowed, played.verdict


@CLIENTS
@pytest.mark.parametrize("revision", REVISIONS)
def test_no_story_blames_it(revision: str, client: type[Told]) -> None:
    class Tests(ClientTests):
        def connect(self, target: Target, link: MemoryLink) -> Connection:
            return client(target, link)

    Tests().test_any_story(revision=revision)
