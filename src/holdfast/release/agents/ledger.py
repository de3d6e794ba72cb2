"""What the ledger keeps of releases that agents make: which secret made which release, and whether a slice is the same.

Two releases with one noise differ by their exact truths. So a secret belongs to one release for ever, and a slice is
made again only with the same true values and noise: of the secret a one-way fingerprint is kept, of these a keyed hash.
Beside it stands the hash of what the agent published, so that nobody can join a slice that was changed.
"""

from __future__ import annotations

from holdfast.arguments import Refused
from holdfast.release.ledger.entries import content_of
from holdfast.release.ledger.ledger import Ledger


def claim(ledger: Ledger, fingerprint: str, release: str) -> None:
    """Keep that a secret makes a release; refuse a secret that made another one. Durable when this returns."""
    with ledger.writing() as (seen, add):
        row = seen.find("secret", fingerprint)
        found = None if row is None else content_of(row)
        if found is None:
            add("secret", {"release": release}, key=fingerprint)
    if found is not None and found.get("release") != release:
        raise Refused(
            "this secret made another release, and two releases with one noise differ by their exact truths: make a "
            "new one with holdfast secret FILE for every release"
        )


def commit(ledger: Ledger, release: str, agent: str, commitment: str, published: str) -> None:
    """Keep what an agent's slice is made from, and the hash of what it publishes; refuse other values than before.

    Durable when this returns.
    """
    with ledger.writing() as (seen, add):
        row = seen.find("slice", f"{release} {agent}")
        found = None if row is None else content_of(row)
        if found is None:
            add("slice", {"commitment": commitment, "published": published}, key=f"{release} {agent}")
    if found is not None and found.get("commitment") != commitment:
        raise Refused(
            f"agent {agent!r} made its slice of this release from other records before, or with other noise on another "
            "machine, and both slices together would show more than one: restore what was, or begin a new release with "
            "a new secret"
        )


def published(ledger: Ledger, release: str) -> dict[str, str | None]:
    """Return the hash of what every agent published, None where it was not kept yet when the slice was made."""
    slices = (row for row in ledger.rows() if row.kind == "slice" and row.key.startswith(f"{release} "))
    return {row.key.removeprefix(f"{release} "): content_of(row).get("published") for row in slices}
