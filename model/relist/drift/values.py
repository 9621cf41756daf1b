"""What drift is about: references, definitions, wishes, decisions, surfaces. Frozen values.

A *reference* says what somebody wants to govern, an *id* which definition is in front of us. They
are kept apart: a changed definition keeps its reference and gets another id. Rule: DRIFT-01.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from hashlib import sha256
from typing import NamedTuple

from attrs import field

from relist.frozen import frozen
from relist.policy import Risk

FORMULA = 1
"""The formula of ids in force: see ``capability_id``."""


class Subject(Enum):
    """What a reference can be to. The instructions of a server are a subject of their own."""

    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"
    TEMPLATE = "template"
    INSTRUCTIONS = "instructions"


class CapabilityRef(NamedTuple):
    """What somebody wants to govern: a server, a subject, and the server's own key for it.

    ``server`` is ``ServerIdentity.id``; ``key`` the name, URI or template as the server spells it,
    never the name under which it is shown. A URI or a name locates, it proves no content.
    Rule: DRIFT-02, DRIFT-10.
    """

    server: str
    subject: Subject
    key: str

    def __str__(self) -> str:
        return f"{self.server}/{self.subject.value}/{self.key}"


def in_order(refs: Iterable[CapabilityRef]) -> list[CapabilityRef]:
    """Sorted by server, subject and key, so that what depends on it is stable."""
    return sorted(refs, key=lambda ref: (ref.server, ref.subject.value, ref.key))


class CapabilityId(NamedTuple):
    """Which definition: a digest and the formula that made it. Rule: DRIFT-03, DRIFT-06."""

    formula: int
    digest: str

    def __str__(self) -> str:
        return f"relist{self.formula}:{self.digest}"


def capability_id(canonical: bytes) -> CapabilityId:
    """The id of an effective definition, whose RFC 8785 canonical JSON this is.

    SHA-256 of a domain, the formula's number and the bytes, so that it is no digest of anything
    else. Rule: DRIFT-07.
    """
    return CapabilityId(FORMULA, sha256(b"relist/capability/1\x00" + canonical).hexdigest())


class Hints(NamedTuple):
    """The annotations that speak of harm; None where the server does not say. Never trusted."""

    read_only: bool | None = None
    destructive: bool | None = None
    open_world: bool | None = None


@frozen
class Definition:
    """One capability as a consumer would see it, after renaming and filtering.

    ``fields`` are its top-level fields by name, each as RFC 8785 canonical JSON. ``id`` is of the
    effective definition, ``upstream`` of what the server sent, and ``body`` of the effective one
    without what it is called, so that it is equal after a mere rename. Rule: DRIFT-03.
    """

    ref: CapabilityRef
    id: CapabilityId
    upstream: CapabilityId
    body: CapabilityId
    fields: Mapping[str, bytes]
    hints: Hints = Hints()


# --- servers --------------------------------------------------------------------------------------


@frozen
class ServerIdentity:
    """Who a server is, by evidence. ``id`` is what the host's configuration calls it.

    ``endpoint`` is the URL or command that reaches it, ``artefact`` the package or image and its
    publisher, ``audience`` whom its tokens are for: None where it is not known. What a server says
    of itself is no evidence, so it has no place here; and neither a registry's name nor a version
    identifies a single capability. Rule: DRIFT-11, DRIFT-12, DRIFT-41.
    """

    id: str
    endpoint: str | None = None
    artefact: str | None = None
    audience: str | None = None

    def evidence(self) -> dict[str, str]:
        """What is known beyond the configured id."""
        known = {"endpoint": self.endpoint, "artefact": self.artefact, "audience": self.audience}
        return {name: value for name, value in known.items() if value is not None}


def continues(known: ServerIdentity, seen: ServerIdentity) -> bool:
    """Whether this is the server that is known: nothing that was known has changed or gone."""
    before, now = known.evidence(), seen.evidence()
    return known.id == seen.id and all(now.get(name) == value for name, value in before.items())


# --- wishes ---------------------------------------------------------------------------------------


class Rule(Enum):
    """What a consumer may do with a capability. Rule: DRIFT-04."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Newcomers(Enum):
    """What becomes of what a wholly selected server offers anew. Rule: DRIFT-38."""

    REVIEW = "review"
    JOIN = "join"


@frozen
class Chosen:
    """What somebody decided about one reference. ``risk`` is the host's judgement of it."""

    rule: Rule
    risk: Risk = Risk.DESTRUCTIVE


@frozen
class ExactSelection:
    """These items and no others, whatever else the server comes to offer. Rule: DRIFT-37."""

    items: Mapping[CapabilityRef, Chosen]


@frozen
class ServerSelection:
    """A whole server: what it offers later is a candidate. Rule: DRIFT-38, DRIFT-39.

    ``rule`` holds for all that ``items`` do not name. Newcomers that ``JOIN`` do so without a
    review; a tool only where its server's annotations are trusted and say that it only reads.
    """

    server: str
    rule: Rule = Rule.ASK
    newcomers: Newcomers = Newcomers.REVIEW
    trust_annotations: bool = False
    items: Mapping[CapabilityRef, Chosen] = field(factory=dict[CapabilityRef, Chosen])
    subjects: frozenset[Subject] = frozenset(Subject)


Selection = ExactSelection | ServerSelection
"""Two intents that cannot be confused: the one has no server, the other no list. Rule: DRIFT-39."""


class ChangeClass(Enum):
    """How one field differs, by what that can do. Rule: DRIFT-26 to DRIFT-28."""

    TEXT = "text"  # description, title, icons: what a model or a person chooses by
    SCHEMA_REORDERED = "schema reordered"  # accepts and says the same
    SCHEMA_TEXT = "schema text"  # accepts the same, says something else
    INPUT_WIDENED = "input widened"
    INPUT_NARROWED = "input narrowed"
    INPUT_CHANGED = "input changed"  # not comparable, or nobody could tell
    OUTPUT_WIDENED = "output widened"
    OUTPUT_NARROWED = "output narrowed"
    OUTPUT_CHANGED = "output changed"
    ARGUMENTS = "arguments"  # of a prompt
    LOCATION = "location"  # URI, MIME type, size: what a resource is
    META = "meta"
    ANNOTATIONS = "annotations"  # others than those of safety
    SAFETY = "safety"  # read-only, destructive, open-world, idempotent
    OTHER = "other"  # a field that this version does not know
    INSTRUCTIONS = "instructions"


UNFOLLOWABLE = frozenset({ChangeClass.SAFETY, ChangeClass.OTHER})
"""What no policy may follow: it is always reviewed. Rule: DRIFT-28."""


@frozen
class FollowPolicy:
    """Which changes are followed without a review, by the risk of what changes. By default none.

    ``reappearing``: a definition that was approved and comes back, equal, at a server whose
    identity rests on evidence, is followed as well. Rule: DRIFT-25, DRIFT-36.
    """

    classes: Mapping[Risk, frozenset[ChangeClass]] = field(
        factory=dict[Risk, frozenset[ChangeClass]]
    )
    reappearing: frozenset[Risk] = frozenset()


@frozen
class Profile:
    """What one consumer (an agent, a host, a person) is meant to see, and what it may follow."""

    consumer: str
    selections: tuple[Selection, ...]
    follow: FollowPolicy = FollowPolicy()


# --- observation ----------------------------------------------------------------------------------


class Presence(Enum):
    """What the last inventory that proves something says of a reference."""

    PRESENT = "present"
    GONE = "gone"  # unresolved: the wish stays, nothing answers to it (DRIFT-35)
    AMBIGUOUS = "ambiguous"  # two definitions under one key (DRIFT-48)


@frozen
class Seen:
    """The version that was observed last, and since when. Rule: DRIFT-05.

    ``definition`` stays when it is gone; None where only ambiguous ones were ever seen.
    """

    definition: Definition | None
    presence: Presence
    since_ms: int


@frozen
class Known:
    """A server: the identity that was confirmed, the one seen last, and whose view is kept."""

    confirmed: ServerIdentity
    seen: ServerIdentity
    partition: str

    @property
    def in_doubt(self) -> bool:
        """Whether the evidence has changed and nobody has confirmed it."""
        return not continues(self.confirmed, self.seen)


# --- what differs ---------------------------------------------------------------------------------


@frozen
class FieldChange:
    """One field, before and after (None: absent), as canonical JSON, and what that can do."""

    name: str
    before: bytes | None
    after: bytes | None
    classes: frozenset[ChangeClass]


@frozen
class Change:
    """From one definition (None: there was none) to another of the same reference."""

    ref: CapabilityRef
    before: Definition | None
    after: Definition
    fields: tuple[FieldChange, ...]

    @property
    def classes(self) -> frozenset[ChangeClass]:
        """All that the change is."""
        return frozenset(one for field in self.fields for one in field.classes)


# --- surfaces -------------------------------------------------------------------------------------


@frozen
class SurfaceManifest:
    """Exactly what one consumer sees: an id for each reference, in stable order. Rule: DRIFT-17."""

    items: Mapping[CapabilityRef, CapabilityId]

    def digest(self) -> str:
        """SHA-256 over references and ids in order, hexadecimal."""
        found = sha256(b"relist/manifest/1\x00")
        for ref in in_order(self.items):
            for part in (ref.server, ref.subject.value, ref.key, str(self.items[ref])):
                text = part.encode("utf-8", "surrogatepass")
                found.update(len(text).to_bytes(8, "big") + text)
        return found.hexdigest()


@frozen
class Publication:
    """One consumer bound to one manifest, in a single step. ``parent`` is the generation before.

    Generations rise by one and never restart; the first is 1 and has no parent. Rule: DRIFT-18.
    """

    consumer: str
    generation: int
    parent: int | None
    manifest: SurfaceManifest


class Why(Enum):
    """Why a selected capability is not on a surface."""

    DENIED = "denied"
    UNREVIEWED = "new, and not reviewed"
    CHANGED = "changed, and not reviewed"
    REJECTED = "rejected"
    GONE = "gone"
    RETURNED = "returned, and not reviewed"
    AMBIGUOUS = "ambiguous"
    SERVER = "the server's identity has changed"


@frozen
class Review:
    """Something a person has to decide: what, for which consumer, why, and what differs.

    ``change`` is from the definition that was approved last. ``candidates`` are references that may
    have been meant before a rename; nothing moves by itself. Rule: DRIFT-29, DRIFT-30.
    """

    consumer: str
    ref: CapabilityRef
    why: Why
    change: Change | None
    candidates: tuple[CapabilityRef, ...] = ()
