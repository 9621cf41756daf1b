"""Whether a notice may be believed, by the subscription it is tagged with. Rule: SUB-10 (D-15)."""

from typing import NamedTuple

from relist.values import Listen


class Fault(NamedTuple):
    """What is wrong with a tag, by rule; and whether the notice may still be a reason for doubt."""

    rule: str
    text: str
    believed: bool


def fault_of_tag(what: str, serial: int | None, listen: Listen) -> Fault | None:
    """What is wrong with the tag of this notice or update (``what``); None if nothing.

    A foreign tag proves nothing; a missing one, or one before its acknowledgement, is at most a
    reason for doubt. Rule: SUB-14 to SUB-16.
    """
    if serial is None:
        return Fault("SUB-15", f"{what} without a subscription id", True)
    if serial == listen.serial != listen.stream and listen.limit_at_ms is not None:
        return Fault("SUB-16", f"{what} before its acknowledgement", True)
    if serial != listen.stream:
        return Fault("SUB-14", f"{what} of a foreign or finished subscription", False)
    return None
