"""Policies: refused with both names, delays that grow, cap and spread."""

from typing import Any

import pytest
from attrs import field, frozen

from relist.errors import PolicyError, RelistError
from relist.policy import Policy, Risk, _a, _all, _at_least
from relist.presets import preset
from support.one import SEED, policy

rule = pytest.mark.rule


def test_there_is_no_default_seed() -> None:
    with pytest.raises(TypeError):
        Policy()  # type: ignore[call-arg]
    with pytest.raises(PolicyError, match=r"^policy\.seed must not be empty: .* randomness$"):
        Policy(seed=b"")
    with pytest.raises(PolicyError, match=r"^policy\.seed"):
        Policy(seed="text")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("gather_ms", "gap_max_ms"),
        ("gap_base_ms", "gap_max_ms"),
        ("backoff_base_ms", "backoff_max_ms"),
        ("request_limit_ms", "walk_limit_ms"),
    ],
)
def test_values_that_exclude_each_other_are_both_named(low: str, high: str) -> None:
    values = {"gather_ms": 1, "gap_base_ms": 1, low: 11, high: 10}
    with pytest.raises(PolicyError) as refused:
        policy(**values)
    assert f"policy.{low} (11)" in str(refused.value)
    assert f"policy.{high} (10)" in str(refused.value)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"lazy": True, "poll_ms": 5}, ("lazy", "poll_ms")),
        ({"jitter_percent": 100, "poll_ms": 5}, ("jitter_percent", "poll_ms")),
        ({"modern_versions": ("x",), "legacy_versions": ("x",)}, ("modern_v", "legacy_v")),
        ({"modern_versions": (), "legacy_versions": ()}, ("modern_v", "legacy_v")),
    ],
)
def test_impossible_combinations_name_both(values: dict[str, Any], named: tuple[str, str]) -> None:
    with pytest.raises(PolicyError) as refused:
        policy(**values)
    assert all(f"policy.{name}" in str(refused.value) for name in named)


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"])
def test_a_preset_speaks_its_revision_first_and_nothing_newer(revision: str) -> None:
    found = preset(revision, SEED, gather_ms=7)
    spoken = found.modern_versions + found.legacy_versions
    assert spoken[0] == revision == max(spoken)
    assert (found.seed, found.gather_ms) == (SEED, 7)
    assert not (found.modern_versions and found.legacy_versions)


def test_an_unknown_revision_is_named_with_those_that_there_are() -> None:
    with pytest.raises(PolicyError, match=r"2024-11-05.*2025-03-26"):
        preset("2024-11-05", SEED)


def test_a_preset_may_not_be_made_impossible() -> None:
    with pytest.raises(PolicyError, match=r"policy\.lazy"):
        preset("2026-07-28", SEED, lazy=True, poll_ms=5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gather_ms", -1),
        ("gap_base_ms", 0),
        ("request_limit_ms", 0),
        ("spoiled_in_row_max", 0),
        ("pages_max", 0),
        ("items_max", True),
        ("bytes_max", 0),
        ("poll_ms", 0),
        ("poll_ms", 1.5),
        ("unvouched_lifetime_ms", -1),
        ("backoff_base_ms", "500"),
        ("jitter_percent", 101),
        ("jitter_percent", -1),
        ("modern_versions", "2026-07-28"),
        ("legacy_versions", (20251125,)),
        ("lazy", 1),
        ("remember_process_era", None),
        ("risks_on_doubt", {Risk.READ_ONLY}),
    ],
)
def test_a_value_out_of_range_is_named_with_its_value(name: str, value: Any) -> None:
    with pytest.raises(PolicyError, match=f"policy.{name}") as refused:
        policy(**{name: value})
    assert repr(value) in str(refused.value)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"number": 2}, "policy.number must be an integer >= 3: 2"),
        ({"number": True}, "policy.number must be an integer >= 3: True"),
        ({"number": "5"}, "policy.number must be an integer >= 3: '5'"),
        ({"flag": 1}, "policy.flag must be of type bool: 1"),
        ({"names": ["a"]}, "policy.names must be a tuple of str: ['a']"),
        ({"names": ("a", 1)}, "policy.names must be a tuple of str: ('a', 1)"),
    ],
)
def test_a_refusal_says_what_would_have_been_right(values: dict[str, Any], text: str) -> None:
    @frozen
    class Some:
        number: int = field(default=3, validator=_at_least(3))
        flag: bool = field(default=True, validator=_a(bool))
        names: tuple[str, ...] = field(default=("a", "b"), validator=_all(tuple, str))

    assert Some().number == 3
    with pytest.raises(PolicyError) as refused:
        Some(**values)
    assert str(refused.value) == text


def test_no_version_at_all_is_refused_with_both_names() -> None:
    both = r"^policy\.modern_versions and policy\.legacy_versions are both empty$"
    with pytest.raises(PolicyError, match=both):
        policy(modern_versions=(), legacy_versions=())


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (
            {"modern_versions": ("a", "b"), "legacy_versions": ("b", "c")},
            "policy.modern_versions and policy.legacy_versions both name ['b']:"
            " each version is of one era",
        ),
        (
            {"poll_ms": 7, "lazy": True},
            "policy.poll_ms (7) lists by itself, policy.lazy only when asked",
        ),
        (
            {"poll_ms": 7, "jitter_percent": 100},
            "policy.poll_ms (7) must be spread by less than all of it:"
            " policy.jitter_percent is 100",
        ),
    ],
)
def test_what_contradicts_itself_is_told_so(values: dict[str, Any], text: str) -> None:
    with pytest.raises(PolicyError) as refused:
        policy(**values)
    assert str(refused.value) == text


def test_a_policy_error_is_a_value_error_and_ours() -> None:
    assert issubclass(PolicyError, ValueError)
    assert issubclass(PolicyError, RelistError)


@rule("FAIL-02")
def test_backoff_doubles_up_to_its_cap() -> None:
    rules = policy(backoff_base_ms=500, backoff_max_ms=3_000)
    delays = [rules.backoff_ms(failures, "tools", 1) for failures in (1, 2, 3, 4, 5, 10_000)]
    assert delays == [500, 1_000, 2_000, 3_000, 3_000, 3_000]


@rule("FAIL-02")
def test_however_long_it_fails_the_delay_is_a_number_that_can_be_kept() -> None:
    rules = policy(backoff_base_ms=1, backoff_max_ms=2**40)
    assert rules.backoff_ms(10_000, "tools", 1) == 2**32


@rule("FAIL-02")
@pytest.mark.parametrize(("percent", "least"), [(0, 10), (50, 5), (100, 0)])
def test_jitter_takes_every_value_of_its_spread(percent: int, least: int) -> None:
    rules = policy(backoff_base_ms=10, jitter_percent=percent)
    delays = {rules.backoff_ms(1, "tools", serial) for serial in range(200)}
    assert delays == set(range(least, 11))


@rule("TTL-11")
def test_polls_take_every_value_of_their_spread() -> None:
    rules = policy(poll_ms=10, jitter_percent=50)
    times = {rules.next_poll_ms(1_000, "tools", serial) for serial in range(200)}
    assert times == set(range(1_005, 1_011))


@rule("FAIL-02")
def test_jitter_is_data_and_only_shortens() -> None:
    rules = Policy(seed=SEED, backoff_base_ms=1_000, jitter_percent=50)
    delays = {rules.backoff_ms(1, "tools", serial) for serial in range(60)}
    assert all(500 <= delay <= 1_000 for delay in delays)
    assert len(delays) > 30
    assert rules.backoff_ms(1, "tools", 7) == rules.backoff_ms(1, "tools", 7)
    other = Policy(seed=b"other", backoff_base_ms=1_000)
    assert any(rules.backoff_ms(1, "tools", n) != other.backoff_ms(1, "tools", n) for n in range(9))
    assert any(
        rules.backoff_ms(1, "tools", n) != rules.backoff_ms(1, "prompts", n) for n in range(9)
    )


def test_the_gap_saturates() -> None:
    rules = policy(gap_base_ms=100, gap_max_ms=500, gather_ms=0)
    assert [rules.gap_ms(exponent) for exponent in range(6)] == [0, 100, 200, 400, 500, 500]
    assert rules.gap_exponent_max() == 4
    assert policy(gap_base_ms=500, gap_max_ms=500).gap_exponent_max() == 1
