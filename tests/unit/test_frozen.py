"""The shared ``frozen`` makes what attrs would have made."""

import pickle
from inspect import isclass
from typing import Any

import attrs
import pytest

from relist import effects, inputs, session, values
from relist.values import Item

CLASSES = sorted(
    {
        found
        for module in (values, inputs, effects, session)
        for found in vars(module).values()
        if isclass(found) and attrs.has(found) and found.__module__ == module.__name__
    },
    key=lambda found: found.__name__,
)
EVERY = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def _fields(cls: Any) -> list[str]:
    """Those that are given, not computed."""
    return [field.name for field in attrs.fields(cls) if field.init]


def _made(cls: Any, **changes: Any) -> Any:
    """One with another text in each field; lists of items are looked into."""
    given = {name: () if name == "items" else name for name in _fields(cls)}
    return cls(**given | changes)


def _twin(cls: Any) -> Any:
    """The same, made by attrs alone."""
    one = _made(cls)
    values = {field.name: getattr(one, field.name) for field in attrs.fields(cls)}
    return attrs.make_class(cls.__name__, list(values), frozen=True, slots=True)(**values)


@EVERY
def test_it_prints_as_attrs_prints(cls: Any) -> None:
    assert repr(_made(cls)) == repr(_twin(cls))


@EVERY
def test_equal_means_the_same_class_and_all_fields(cls: Any) -> None:
    assert _made(cls) == _made(cls)
    assert hash(_made(cls)) == hash(_made(cls))
    for name in _fields(cls):
        other = (Item("another", b""),) if name == "items" else "another"
        assert _made(cls) != _made(cls, **{name: other})
    assert _made(cls) != _twin(cls)
    assert _made(cls) != "another"


@EVERY
def test_it_is_frozen_slotted_and_picklable(cls: Any) -> None:
    one = _made(cls)
    name = attrs.fields(cls)[0].name
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(one, name, "another")
    assert not hasattr(one, "__dict__")
    assert pickle.loads(pickle.dumps(one)) == one
    assert attrs.evolve(one, **{name: "another"}) == _made(cls, **{name: "another"})


def test_equal_fields_of_two_classes_do_not_collide() -> None:
    """In one set lie values of all classes."""
    assert len({inputs.LinkLost(1), inputs.CoverageLost(1), inputs.TimePassed(1)}) == 3
    assert hash(inputs.LinkLost(1)) != hash(inputs.CoverageLost(1))
