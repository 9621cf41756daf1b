"""What is played, how often, and what it means."""

import anyio
import pytest

from conformance.made import made_case, made_hello, made_result
from relist_conformance.drivers.base import OPTIONAL
from relist_conformance.errors import ConformanceError, DriverError
from relist_conformance.runner import (
    Cell,
    Observed,
    Result,
    Word,
    exit_code,
    play_cells,
    select_cells,
    untestable,
)

pytestmark = pytest.mark.anyio

REVISIONS = ("2025-11-25", "2026-07-28")
CASES = (
    made_case(id="tools:pages:all"),
    made_case(id="tools:pages:empty-cursor", profile="relist"),
    made_case(id="prompts:undeclared", transports=["stdio"], revisions=["2026-07-28"]),
)


def chosen(*patterns: str, profile: str = "relist") -> list[str]:
    cells = select_cells(
        CASES,
        patterns=patterns,
        revisions=REVISIONS,
        transports=("stdio", "http"),
        profile=profile,
    )
    return [f"{cell.case.id} {cell.where}" for cell in cells]


def test_all_is_played_where_the_case_applies() -> None:
    assert len(chosen()) == 4 + 4 + 1
    assert chosen("prompts:*") == ["prompts:undeclared stdio 2026-07-28"]


def test_the_profile_mcp_leaves_out_what_mcp_does_not_say() -> None:
    assert chosen("tools:*", profile="mcp") == chosen("tools:pages:all")


def test_a_pattern_without_a_case_is_named() -> None:
    with pytest.raises(ConformanceError, match=r"no case matches 'tools:pgaes'; see"):
        chosen("tools:pages:*", "tools:pgaes")


def test_nothing_to_play_is_an_error() -> None:
    with pytest.raises(ConformanceError, match="no case is left"):
        chosen("tools:pages:empty-cursor", profile="mcp")


def cell(**changed: object) -> Cell:
    return Cell(made_case(**changed), "stdio", "2026-07-28")


def test_what_a_driver_does_not_offer_is_untestable() -> None:
    assert untestable(cell(), made_hello()) is None
    assert untestable(cell(level="wire"), made_hello(level="wire")) is None
    assert untestable(cell(level="full"), made_hello(level="observing")) == (
        "needs a driver of level full, this one is observing"
    )
    assert untestable(cell(), made_hello(transports=("http",))) == "the driver does not offer stdio"
    assert untestable(cell(), made_hello(revisions=())) == "the driver does not offer 2026-07-28"


class Player:
    """Plays by handing out the words it was given for a cell, one per play."""

    def __init__(self, *words: Word) -> None:
        self.words = list(words)
        self.running = self.most = 0

    async def __call__(self, cell: Cell) -> Observed:
        self.running += 1
        self.most = max(self.most, self.running)
        await anyio.lowlevel.checkpoint()
        self.running -= 1
        return Observed(self.words.pop(0) if self.words else "pass")


@pytest.mark.parametrize(
    ("words", "last", "plays"),
    [
        (["pass"], "pass", 1),
        (["fail"], "fail", 1),
        (["inconclusive", "pass"], "pass", 2),
        (["inconclusive", "inconclusive", "pass"], "inconclusive", 2),
    ],
)
async def test_only_an_inconclusive_play_is_repeated_once(
    words: list[Word], last: Word, plays: int
) -> None:
    (result,) = await play_cells([cell()], made_hello(), Player(*words))
    assert (result.word, result.plays) == (last, plays)


async def test_results_keep_the_order_of_the_cells_and_few_are_played_at_once() -> None:
    cells = select_cells(CASES, revisions=REVISIONS, transports=("stdio", "http"))
    player, told = Player(), list[Result]()
    results = await play_cells(cells, made_hello(), player, at_once=2, finished=told.append)
    assert [result.cell for result in results] == list(cells)
    assert player.most == 2
    assert len(told) == len(cells)


async def test_what_was_inconclusive_is_repeated_after_all_others_with_few_beside_it() -> None:
    cells = select_cells(CASES, revisions=REVISIONS, transports=("stdio", "http"))
    first: list[Word] = ["inconclusive"] * len(cells)
    player, told = Player(*first), list[Result]()
    results = await play_cells(cells, made_hello(), player, at_once=4, finished=told.append)
    assert player.most == 4
    assert {(result.word, result.plays) for result in results} == {("pass", 2)}
    assert len(told) == len(cells)
    again, ended = Player(), list[str]()

    async def play(cell: Cell) -> Observed:
        ended.append(cell.where)
        if len(ended) > len(cells):
            return await again(cell)
        return Observed("inconclusive" if len(ended) > 1 else "pass")

    await play_cells(cells, made_hello(), play, at_once=4)
    assert again.most == 2


async def test_an_untestable_cell_is_not_played() -> None:
    async def never(_: Cell) -> Observed:
        raise AssertionError

    (result,) = await play_cells([cell()], made_hello(level="wire"), never)
    assert (result.word, result.plays) == ("untestable", 0)


async def test_a_driver_that_breaks_down_ends_the_run() -> None:
    async def breaks(cell: Cell) -> Observed:
        if cell.transport == "http":
            await anyio.sleep_forever()
        raise DriverError("driver 'x' exited with code 1")

    cells = select_cells(CASES, revisions=REVISIONS, transports=("stdio", "http"))
    with pytest.raises(DriverError, match="exited with code 1"):
        await play_cells(cells, made_hello(), breaks)


@pytest.mark.parametrize(
    ("words", "code", "strict"),
    [
        (["pass", "warn", "not_applicable", "untestable"], 0, 1),
        (["pass", "not_applicable"], 0, 0),
        (["pass", "fail"], 1, 1),
        (["pass", "inconclusive"], 3, 3),
        (["fail", "inconclusive"], 1, 1),
        (["warn", "inconclusive"], 3, 1),
        (["fail", "inconclusive", "harness"], 2, 2),
    ],
)
def test_exit_codes(words: list[Word], code: int, strict: int) -> None:
    results = [made_result(word) for word in words]
    assert exit_code(results) == code
    assert exit_code(results, strict=True) == strict


@pytest.mark.parametrize(
    ("step", "lacks"),
    [
        ({"need": {"kind": "prompts"}}, "prompts"),
        ({"believe": {"kind": "resources"}}, "resources"),
        ({"refresh": {"kind": "tools"}}, "'refresh'"),
        ({"credentials": {"of": "bob"}}, "'credentials'"),
        ({"read": {"uri": "relist://r"}}, "'read'"),
        ({"get_prompt": {"prompt": "p"}}, "'get_prompt'"),
        ({"subscribe": {"uri": "relist://r"}}, "'subscribe'"),
        ({"unsubscribe": {"uri": "relist://r"}}, "'unsubscribe'"),
        ({"call": {"tool": "a", "planned": "a@1"}}, "'call' with what was planned"),
        ({"advance": {"ms": 5_001}}, "'advance', and nobody waits for 5001 ms"),
        ({"advance": {"ms": 5_000}}, None),
        ({"call": {"tool": "a"}}, None),
    ],
)
def test_a_case_that_needs_what_a_driver_lacks_is_untestable(
    step: dict[str, object], lacks: str | None
) -> None:
    one = cell(steps=[{"connect": {}}, {"need": {"kind": "tools", "as": "list"}}, step])
    told = untestable(one, made_hello())
    assert told == (None if lacks is None else f"the driver does not offer {lacks}")
    able = (*OPTIONAL, "planned")
    kinds = ("tools", "prompts", "resources")
    assert untestable(one, made_hello(ops=able, kinds=kinds)) is None
    elsewhere = {**step, "when": {"transports": ["http"]}}
    assert untestable(cell(steps=[{"need": {"kind": "tools", "as": "list"}}, elsewhere]),
                      made_hello()) is None  # fmt: skip
