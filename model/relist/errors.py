"""Errors that are the embedding program's own. A misbehaving peer never raises."""


class RelistError(Exception):
    """Base of all errors of this package."""


class PolicyError(RelistError, ValueError):
    """A policy value is out of range, or two of them exclude each other; both are named."""


class ImpossibleAct(RelistError):
    """The caller did something that cannot be done now; nothing was changed."""
