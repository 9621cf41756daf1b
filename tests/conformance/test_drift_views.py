"""What differs is never unseen, however large it is."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from relist_conformance.drift.difference import LINE_MAX, LINES_MAX, difference
from relist_conformance.drift.names import named
from relist_mcp.drift.canonical import canonical

LINES = st.text(st.sampled_from("ab\n\\[]1\u202e"), max_size=30)
LONG = st.builds(
    lambda head, odd, tail: "x" * head + odd + "y" * tail,
    *[st.integers(0, 900)] * 1,
    st.text(max_size=3),
    st.integers(0, 900),
)
MANY = st.builds(
    lambda count, at: "\n".join(["line"] * count + [at]), st.integers(0, 400), st.text(max_size=3)
)
VALUES = LINES | LONG | MANY | st.dictionaries(LINES, LINES | st.integers(-9, 9), max_size=4)


def shown(before: Any, after: Any) -> list[str]:
    return list(difference(canonical(before), canonical(after)))


@given(VALUES, VALUES)
def test_whatever_differs_is_marked_and_all_is_bounded_and_printable(
    before: Any, after: Any
) -> None:
    lines = shown(before, after)
    marked = [line[2:] for line in lines if line[0] in "+-"]
    assert bool(marked) == (canonical(before) != canonical(after))
    removed = [line[2:] for line in lines if line[0] == "-"]
    added = [line[2:] for line in lines if line[0] == "+"]
    assert not marked or removed != added  # they can be told apart, as they are shown
    assert all(line.isprintable() for line in lines)
    assert len(lines) <= 3 * LINES_MAX
    assert max(map(len, lines), default=0) < 12 * LINE_MAX


def test_a_text_is_compared_line_by_line() -> None:
    old = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine"
    assert shown(old, old.replace("five", "5")) == [
        "  (2 lines are the same)",
        "  three",
        "  four",
        "- five",
        "+ 5",
        "  six",
        "  seven",
        "  (2 lines are the same)",
    ]


def test_what_only_looks_alike_differs() -> None:
    assert shown("[]", []) == ['- "[]"', "+ []"]
    assert shown("\u202e", r"\u202e") == [r"- \u202e", r"+ \\u202e"]


def test_what_is_left_out_has_a_digest() -> None:
    many = "\n".join(str(number) for number in range(1000))
    *_, last = difference(None, canonical(many))
    assert last.startswith("+ (880 more lines, sha256 ")
    *_, other = difference(None, canonical(f"{many}!"))
    assert last != other


def test_json_without_a_canonical_form_is_shown_as_it_is() -> None:
    assert next(difference(None, b"[" * 300 + b"]" * 300)).startswith("+ [[[")
    deep = b"[" * 10_000
    (line,) = difference(None, deep)
    assert line.startswith("+ [[[")
    assert "(10000 characters, sha256 " in line
    assert list(difference(b'{"a', json.dumps("a").encode())) == ['- {"a', "+ a"]


def test_names_that_only_look_alike_are_spelled_out() -> None:
    assert named("paypal") == "'paypal'"
    assert named("p\u0430ypal") == "'p\u0430ypal' (not only ASCII: U+0430 CYRILLIC SMALL LETTER A)"
    assert named("a\u200bb") == r"'a\u200bb' (not only ASCII: U+200B ZERO WIDTH SPACE)"
    assert named("".join(map(chr, range(0x430, 0x450)))).endswith(" and 24 more)")
    assert named("\ud800") == r"'\ud800' (not only ASCII: U+D800)"
