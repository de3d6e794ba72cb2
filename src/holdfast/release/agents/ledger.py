"""What the ledger keeps of releases that agents make: which secret made which release, and whether a slice is the same.

Two releases with one noise differ by their exact truths. So a secret belongs to one release for ever, and a slice is
made again only with the same true values and noise: of the secret a one-way fingerprint is kept, of these a keyed hash.
"""

from __future__ import annotations

import sqlalchemy as sa

from holdfast.arguments import Refused
from holdfast.release.ledger.ledger import Ledger, now
from holdfast.release.ledger.ledger_file import add_table

_tables = sa.MetaData()
_secrets = sa.Table(
    "secrets",
    _tables,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
    sa.Column("release", sa.Text, nullable=False, unique=True),
)
_slices = sa.Table(
    "slices",
    _tables,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("release", sa.Text, nullable=False),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("commitment", sa.Text, nullable=False),
)


def claim(ledger: Ledger, fingerprint: str, release: str) -> None:
    """Keep that a secret makes a release; refuse a secret that made another one. Durable when this returns."""
    with ledger.writing() as connection:
        _prepare(connection, _secrets)
        wanted = sa.select(_secrets.c.release).where(_secrets.c.fingerprint == fingerprint)
        found = connection.execute(wanted).scalar_one_or_none()
        if found is None:
            connection.execute(_secrets.insert().values(at=now(), fingerprint=fingerprint, release=release))
    if found not in (None, release):
        raise Refused(
            "this secret made another release, and two releases with one noise differ by their exact truths: make a "
            "new one with holdfast secret FILE for every release"
        )


def commit(ledger: Ledger, release: str, agent: str, commitment: str) -> None:
    """Keep what an agent's slice is made from; refuse other values than before. Durable when this returns."""
    with ledger.writing() as connection:
        _prepare(connection, _slices)
        wanted = sa.select(_slices.c.commitment).where(_slices.c.release == release, _slices.c.agent == agent)
        found = connection.execute(wanted).scalar_one_or_none()
        if found is None:
            values = {"at": now(), "release": release, "agent": agent, "commitment": commitment}
            connection.execute(_slices.insert().values(**values))
    if found not in (None, commitment):
        raise Refused(
            f"agent {agent!r} made its slice of this release from other records before, or with other noise on another "
            "machine, and both slices together would show more than one: restore what was, or begin a new release with "
            "a new secret"
        )


def has_figures(ledger: Ledger, release: str) -> bool:
    """Say whether the exact figures of a release are kept already."""
    with ledger.writing() as connection:
        if not sa.inspect(connection).has_table("figures"):
            return False
        query = sa.text("SELECT count(*) FROM figures WHERE release = :release")
        return bool(connection.execute(query, {"release": release}).scalar_one())


def _prepare(connection: sa.Connection, table: sa.Table) -> None:
    if not sa.inspect(connection).has_table(table.name):
        add_table(connection, table)
