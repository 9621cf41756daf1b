"""Any value of a type, as its fields say: for whatever must hold of every input."""

from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import attrs
from hypothesis import strategies as st

from relist.messages import INTEGER_MAX

TEXTS = st.text(st.characters(), max_size=6) | st.characters(categories=["Cs"])
SCALARS: dict[type, st.SearchStrategy[Any]] = {
    NoneType: st.none(),
    bool: st.booleans(),
    int: st.integers(-INTEGER_MAX, INTEGER_MAX),
    str: TEXTS,
    bytes: st.binary(max_size=8) | st.text(max_size=6).map(str.encode),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of this type."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return st.one_of(*map(values_of, get_args(kind)))
    if origin is tuple:
        return st.lists(values_of(get_args(kind)[0]), max_size=3).map(tuple)
    if origin is frozenset:
        return st.frozensets(values_of(get_args(kind)[0]), max_size=3)
    if attrs.has(kind):
        fields = {a.name: values_of(a.type) for a in attrs.fields(kind) if a.init}
        return st.builds(kind, **fields)
    return st.sampled_from(kind) if issubclass(kind, Enum) else SCALARS[kind]
