"""What a policy lets through without a person, and what it never does."""

from relist.drift.values import (
    UNFOLLOWABLE,
    CapabilityRef,
    Change,
    Chosen,
    Definition,
    ExactSelection,
    Newcomers,
    Profile,
    Rule,
    ServerSelection,
    Subject,
)
from relist.errors import PolicyError
from relist.policy import Risk

_ORDER = (Risk.READ_ONLY, Risk.SIDE_EFFECTS, Risk.DESTRUCTIVE)


def check(profile: Profile) -> None:
    """Raises PolicyError for a profile that says what cannot be, naming the field and the value."""
    if not profile.consumer:
        raise PolicyError("profile.consumer must not be empty")
    servers = [one.server for one in profile.selections if isinstance(one, ServerSelection)]
    for server in servers:
        if servers.count(server) > 1:
            raise PolicyError(f"profile.selections name the server {server!r} as a whole twice")
    for selection in profile.selections:
        if not isinstance(selection, ServerSelection):
            if foreign := [ref for ref in selection.items if ref.server in servers]:
                raise PolicyError(
                    f"profile.selections name {str(foreign[0])!r} exactly, and its server as a"
                    " whole: which of the two is meant?"
                )
        elif foreign := [ref for ref in selection.items if ref.server != selection.server]:
            raise PolicyError(
                f"profile.selections: {str(foreign[0])!r} is not of the server {selection.server!r}"
            )
    for risk, classes in profile.follow.classes.items():
        if never := classes & UNFOLLOWABLE:
            named = ", ".join(sorted(one.value for one in never))
            raise PolicyError(f"profile.follow.classes of {risk.value!r} may not hold: {named}")


def chosen(profile: Profile, ref: CapabilityRef) -> Chosen | None:
    """What the profile decided about this reference; None if it does not select it."""
    for selection in profile.selections:
        if isinstance(selection, ExactSelection):
            if (found := selection.items.get(ref)) is not None:
                return found
        elif ref.server == selection.server and ref.subject in selection.subjects:
            return selection.items.get(ref, Chosen(selection.rule))
    return None


def risk_of(choice: Chosen, definition: Definition) -> Risk:
    """The host's judgement; what the server says can make it worse, never better.

    Rule: DRIFT-47.
    """
    hints = definition.hints
    says = Risk.READ_ONLY
    if hints.destructive or hints.open_world:
        says = Risk.DESTRUCTIVE
    elif hints.read_only is False:
        says = Risk.SIDE_EFFECTS
    return max(choice.risk, says, key=_ORDER.index)


def joins(profile: Profile, definition: Definition) -> bool:
    """Whether a newcomer joins by the policy of its server. Rule: DRIFT-38, DRIFT-46, DRIFT-47."""
    ref = definition.ref
    for selection in profile.selections:
        if not isinstance(selection, ServerSelection) or selection.server != ref.server:
            continue
        if selection.newcomers is not Newcomers.JOIN or ref in selection.items:
            return False
        hints = definition.hints
        harmless = hints.read_only is True and not hints.destructive and hints.open_world is False
        return ref.subject is not Subject.TOOL or (selection.trust_annotations and harmless)
    return False


def follows(profile: Profile, choice: Chosen, change: Change) -> bool:
    """Whether this change of an approved definition is followed, at the worse risk of the two.

    Rule: DRIFT-25.
    """
    if change.before is None:
        return False
    risk = max(risk_of(choice, change.after), risk_of(choice, change.before), key=_ORDER.index)
    allowed = profile.follow.classes.get(risk, frozenset())
    return bool(change.classes) and change.classes <= allowed - UNFOLLOWABLE


def resumes(profile: Profile, choice: Chosen, definition: Definition) -> bool:
    """Whether what was approved, and came back equal, is followed. Rule: DRIFT-36."""
    return risk_of(choice, definition) in profile.follow.reappearing


def exposable(choice: Chosen | None) -> bool:
    """Whether it may be on a surface at all: selected, and not denied."""
    return choice is not None and choice.rule is not Rule.DENY
