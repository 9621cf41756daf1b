"""Which items are meant on a command line: by id, which is exact, or by key."""

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from relist.drift.ledger import Ledger, selected
from relist.drift.values import CapabilityId, CapabilityRef, Presence, Profile
from relist_conformance.drift import names
from relist_conformance.errors import ConformanceError, quoted

_ID = re.compile(rf"(?:relist\d+:)?([0-9a-f]{{{names.DIGITS},64}})")

Items = Mapping[CapabilityRef, CapabilityId]


def profile_of(ledger: Ledger, consumer: str) -> Profile:
    """The profile of a consumer. Raises ConformanceError."""
    profile = ledger.profiles.get(consumer)
    if profile is None:
        known = ", ".join(quoted(name) for name in ledger.profiles) or "none"
        raise ConformanceError(f"no consumer {quoted(consumer)}; known: {known}")
    return profile


def there(ledger: Ledger, refs: Iterable[CapabilityRef]) -> Items:
    """Those that are present, with the definitions that they have now."""
    found: dict[CapabilityRef, CapabilityId] = {}
    for ref in refs:
        seen = ledger.version(ref)
        if seen is not None and seen.definition is not None and seen.presence is Presence.PRESENT:
            found[ref] = seen.definition.id
    return found


def of_consumer(ledger: Ledger, consumer: str) -> Items:
    """What a consumer selects and is there."""
    return there(ledger, selected(ledger, profile_of(ledger, consumer)))


def everything(ledger: Ledger) -> Items:
    """All that is there."""
    return there(
        ledger,
        (
            CapabilityRef(server, subject, key)
            for (server, subject), versions in ledger.seen.items()
            for key in versions
        ),
    )


def chosen_of(items: Items, wanted: Iterable[str], *, only_ids: bool = False) -> Items:
    """What these words name, each exactly one. Raises ConformanceError."""
    return dict(one for word in wanted for one in _one(items, word, only_ids=only_ids).items())


def _one(items: Items, word: str, *, only_ids: bool) -> Items:
    by_id = _ID.fullmatch(word)
    if by_id is not None:
        found = {ref: id for ref, id in items.items() if id.digest.startswith(by_id[1])}
    elif only_ids:
        raise ConformanceError(
            f"{quoted(word)} is no id: with --yes, name what is approved by its id, as 'relist"
            f" review' shows it ({names.DIGITS} digits or more); a name may be another thing by now"
        )
    else:
        found = {ref: id for ref, id in items.items() if word in spellings(ref)}
    if not found:
        raise ConformanceError(f"nothing that is there and selected is called {quoted(word)}")
    if len(found) > 1:
        them = "; ".join(names.of(ref) for ref in list(found)[:5])
        raise ConformanceError(f"{quoted(word)} may be each of {len(found)}: {them}")
    return found


def spellings(ref: CapabilityRef) -> tuple[str, ...]:
    """How a reference may be written."""
    return ref.key, f"{ref.subject.value}/{ref.key}", str(ref)


def matching(refs: Iterable[CapabilityRef], patterns: Iterable[str]) -> Iterator[CapabilityRef]:
    """Those whose key, or subject and key, match one of the patterns; all without any."""
    globs = tuple(patterns)
    for ref in refs:
        if not globs or any(fnmatchcase(one, glob) for one in spellings(ref)[:2] for glob in globs):
            yield ref
