"""``frozen``: attrs' decorator for many small classes, at less than half its price at import.

attrs writes and compiles ``__init__``, ``__repr__``, ``__eq__`` and ``__hash__`` for each class.
All but the first can be the same for every class, so they stand here once and attrs leaves them
out. Type checkers see attrs' own decorator.
"""

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

__all__ = ["frozen"]

_T = TypeVar("_T", bound=type[Any])

if TYPE_CHECKING:
    from attrs import frozen
else:

    def frozen(cls: _T | None = None, **options: Any) -> Any:
        """A frozen, slotted attrs class. Values are equal if their classes and all fields are."""
        if cls is None:
            return partial(frozen, **options)
        fields = attrgetter(*cls.__annotations__)

        def equals(self: Any, other: object) -> bool:
            if other.__class__ is not self.__class__:
                return NotImplemented
            return fields(self) == fields(other)

        def hashed(self: Any) -> int:
            return hash((self.__class__, fields(self)))

        cls.__eq__, cls.__hash__, cls.__repr__ = equals, hashed, _shown
        return attrs.frozen(cls, eq=False, repr=False, auto_detect=False, **options)


def _shown(self: Any) -> str:
    fields = ", ".join(f"{a.name}={getattr(self, a.name)!r}" for a in self.__attrs_attrs__)
    return f"{self.__class__.__qualname__}({fields})"
