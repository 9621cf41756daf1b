"""Defects between a client that does everything right and the application that uses it."""

from typing import Any

from mutants.kit import Defect, Patch
from relist_conformance.drivers.base import Answer
from relist_conformance.drivers.reference import ReferenceConnection


def shows_the_first_list(patch: Patch) -> None:
    """Lists again after a notice, and goes on handing out what it was given first."""
    first: dict[str, Any] = {}
    real = ReferenceConnection._told

    def told(self: ReferenceConnection, kind: str, reading: Any) -> Answer:
        answer = real(self, kind, reading)
        if answer["items"] is None:
            return answer
        return {**answer, "items": first.setdefault(f"{id(self)} {kind}", answer["items"])}

    patch.setattr(ReferenceConnection, "_told", told)


DEFECTS = (Defect("shows-the-first-list", "notice:next-access", shows_the_first_list),)
