"""What people have to decide, and what they are shown for it. Nothing here decides. Rule: DRIFT-29.

A new name is a new reference; what it may have been called before is only proposed. Rule: DRIFT-30.
"""

from collections.abc import Collection, Iterator, Mapping

from relist.drift.classify import Relate, classify, unproved
from relist.drift.ledger import Ledger, selected, standing
from relist.drift.values import (
    CapabilityRef,
    Definition,
    Presence,
    Review,
    Why,
    in_order,
)

Aliases = Mapping[CapabilityRef, Collection[CapabilityRef]]
"""By old reference the new ones that somebody trusted declares: a hint only. Rule: DRIFT-14."""

_OPEN = (Why.UNREVIEWED, Why.CHANGED, Why.RETURNED, Why.GONE, Why.AMBIGUOUS, Why.SERVER)


def reviews(
    ledger: Ledger, relate: Relate = unproved, aliases: Aliases | None = None
) -> Iterator[Review]:
    """What is open, by consumer and reference in order. Rule: DRIFT-29, DRIFT-44."""
    for consumer in sorted(ledger.profiles):
        for ref in in_order(selected(ledger, ledger.profiles[consumer])):
            review = review_of(ledger, consumer, ref, relate, aliases)
            if review is not None:
                yield review


def review_of(
    ledger: Ledger,
    consumer: str,
    ref: CapabilityRef,
    relate: Relate = unproved,
    aliases: Aliases | None = None,
) -> Review | None:
    """What is open about one reference; None if nothing is. Only this one is compared."""
    why = standing(ledger, consumer, ref)
    if not (isinstance(why, Why) and why in _OPEN):
        return None
    seen, granted = ledger.version(ref), ledger.grants(consumer, ref)
    now = None if seen is None or seen.presence is not Presence.PRESENT else seen.definition
    change = None if now is None else classify(granted.newest(), now, relate)
    if why is not Why.GONE:
        return Review(consumer, ref, why, change)
    old = granted.newest() or (None if seen is None else seen.definition)
    return Review(consumer, ref, why, None, tuple(candidates(ledger, ref, old, aliases or {})))


def candidates(
    ledger: Ledger, ref: CapabilityRef, old: Definition | None, aliases: Aliases
) -> Iterator[CapabilityRef]:
    """What a reference that is gone may be called now: declared aliases, then equal bodies.

    Of another server only where both identities rest on evidence. Rule: DRIFT-09, DRIFT-13 to
    DRIFT-16.
    """
    declared = [one for one in in_order(aliases.get(ref, ())) if _is_present(ledger, one)]
    equal = (
        CapabilityRef(server, subject, key)
        for (server, subject), versions in ledger.seen.items()
        if subject is ref.subject
        and (server == ref.server or _are_known(ledger, server, ref.server))
        for key, seen in versions.items()
        if seen.presence is Presence.PRESENT
        and old is not None
        and seen.definition is not None
        and seen.definition.body == old.body
    )
    yield from declared
    yield from (one for one in in_order(equal) if one not in declared and one != ref)


def _is_present(ledger: Ledger, ref: CapabilityRef) -> bool:
    seen = ledger.version(ref)
    return seen is not None and seen.presence is Presence.PRESENT


def _are_known(ledger: Ledger, *servers: str) -> bool:
    return all(
        server in ledger.servers
        and ledger.servers[server].confirmed.evidence()
        and not ledger.servers[server].in_doubt
        for server in servers
    )
