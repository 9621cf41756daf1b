"""Strategies for what a peer may send: any JSON, and JSON that is nearly what the protocol says."""

from typing import Any

from hypothesis import strategies as st

from relist.messages import FILTERS, NAMES
from relist.values import KINDS, Kind

Any_ = st.SearchStrategy[Any]
PADDING = st.sampled_from([0, 10, 10**4, 10**5])
FLAGS: Any_ = st.booleans() | st.sampled_from([None, 1, "true", {}])

WORDS = st.sampled_from(
    [
        *(name for names in NAMES.values() for name in names),
        *FILTERS.values(),
        *("nextCursor", "ttlMs", "cacheScope", "resultType", "listChanged", "notifications"),
        *("inputSchema", "protocolVersion", "supportedVersions", "capabilities", "supported"),
        *("code", "data", "public", "complete", "__class__", ""),
    ]
)
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer())
SCALARS = st.none() | st.booleans() | st.integers() | FRACTIONS | st.text(max_size=8) | WORDS
"""What all readers of JSON agree on: 1.0 is an integer to some."""


def _json(scalars: Any_, leaves: int) -> Any_:
    names = WORDS | st.text(max_size=4)
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=5),
        max_leaves=leaves,
    )


JSON = _json(SCALARS, 25)


def _deep(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"x": [value]}
    return value


LONG = st.sampled_from([10**6, 30_000, 1_000, 10]).map(lambda size: "x" * size)
WILD = _json(
    SCALARS
    | st.floats()
    | st.sampled_from([16, 20, 400, 4_000]).map(lambda digits: 10**digits)
    | st.characters(categories=["Cs"])
    | LONG
    | st.integers(1, 200).map(_deep),
    6,
)
"""The same, and what not all readers take: NaN, half surrogate pairs, thousands of digits,
hundreds of levels, texts of a megabyte."""


def pages(kind: Kind, any_: Any_ = JSON) -> Any_:
    """Results of a list request that are nearly right."""
    names = NAMES[kind]
    keys = st.sampled_from(["a", "A", "b", "a "]) | any_
    right: Any_ = st.fixed_dictionaries({names.key: keys, "inputSchema": st.just({})})
    entry = right | st.fixed_dictionaries({names.key: keys}, optional={"inputSchema": any_}) | any_
    many = st.builds(_entries, st.just(kind), st.integers(0, 30), PADDING)
    none = st.integers(0, 30).map(lambda count: [None] * count)
    return st.fixed_dictionaries(
        {names.field: many | none | st.lists(entry, max_size=4)},
        optional={
            "nextCursor": LONG | st.text(max_size=3) | any_,
            "ttlMs": st.integers(-1, 10**6) | any_,
            "cacheScope": st.sampled_from(["public", "private"]) | any_,
            "resultType": st.just("complete"),
        },
    )


def _entries(kind: Kind, count: int, padding: int) -> Any:
    key, text = NAMES[kind].key, "x" * padding
    return [{key: f"n{number}", "inputSchema": {}, "x": text} for number in range(count)]


def capabilities(any_: Any_ = JSON) -> Any_:
    """Capabilities that are nearly right."""
    flagged = st.fixed_dictionaries({}, optional={"listChanged": FLAGS, "subscribe": FLAGS})
    names = dict.fromkeys(NAMES[kind].capability for kind in KINDS)
    return st.fixed_dictionaries({}, optional=dict.fromkeys([*names, "logging"], flagged | any_))


def discoveries(version: str, any_: Any_ = JSON) -> Any_:
    """Results of a discovery that are nearly right."""
    versions = st.lists(st.just(version) | any_, max_size=3) | any_
    return st.fixed_dictionaries(
        {},
        optional={
            "supportedVersions": versions,
            "capabilities": capabilities(any_) | any_,
            "resultType": st.just("complete") | any_,
            "ttlMs": st.integers(-1, 10**6) | any_,
        },
    )


def greetings(version: str, any_: Any_ = JSON) -> Any_:
    """Results of initialize that are nearly right."""
    return st.fixed_dictionaries(
        {"protocolVersion": st.just(version) | any_, "capabilities": capabilities(any_) | any_}
    )


def acknowledgements(any_: Any_ = JSON) -> Any_:
    """Params of an acknowledgement that are nearly right."""
    flags = dict.fromkeys(FILTERS.values(), FLAGS | any_)
    uris = st.lists(st.sampled_from(["a:1", "a:2"]) | any_, max_size=3) | any_
    grants = st.fixed_dictionaries({}, optional={**flags, "resourceSubscriptions": uris})
    return st.fixed_dictionaries({}, optional={"notifications": grants | any_})


def errors(any_: Any_ = JSON) -> Any_:
    """Error objects that are nearly right."""
    codes = st.sampled_from([-32601, -32602, -32603, -32020, -32022]) | any_
    versions = st.lists(st.sampled_from(["2026-07-28", "2025-11-25"]) | any_, max_size=3)
    data = st.fixed_dictionaries({}, optional={"supported": versions | any_}) | any_
    return st.fixed_dictionaries({"code": codes}, optional={"message": any_, "data": data})
