"""What the ledger says of the periods of a series: from which records each is drawn, and with which noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.arguments import Refused
from holdfast.release.ledger.entries import OF_PERIODS, content_of
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.ledger.store import Row

#: What the ledger says of a series, by kind and period.
Told = Mapping[tuple[str, str], Any]


def periods_of(ledger: Ledger, series: str) -> Told:
    """What the rows of a series say, by kind and period: marks, noise, and the seals of what was published."""
    return _told([row for row in ledger.rows() if row.key.split(" ")[0] == series])


def begin_period(ledger: Ledger, series: str, period: str, position: int, mark: str, when: str, ordered: bool) -> Told:
    """Say, before anything of it is drawn, from which records a period is; durable on return, and said once.

    Returns what all say. A late period is drawn as it was left out; refused if persons' first ones count (`ordered`).
    """
    with ledger.writing() as (mine, add):
        told = _told(mine.about(series))
        known = told.get(("period", period))
        if known is None:
            late = any(kind == "period" and each["position"] > position for (kind, _), each in told.items())
            if late and ordered:
                raise Refused(f"{period} comes after later periods, and persons count in their first: nothing is drawn")
            known = {"position": position, "data": mark, "late": late}
            add("period", known, at=when, key=f"{series} {period}")
        elif known["data"] != mark:
            raise Refused(
                f"the records of {period} are not those from which it was drawn before, and nothing is drawn twice: "
                "put those back, or leave the period out"
            )
        return {**told, ("period", period): known}


def keep_noise(ledger: Ledger, series: str, noise: Mapping[str, str], when: str) -> None:
    """Keep keyed hashes of the noise of periods, or compare; refused where a period was drawn otherwise before."""
    with ledger.writing() as (mine, add):
        told = _told(mine.about(series))
        for period, mark in noise.items():
            before = told.get(("noise", period))
            if before is None:
                add("noise", {"noise": mark}, at=when, key=f"{series} {period}")
            elif before["noise"] != mark:
                raise Refused(
                    f"this version of holdfast or numpy draws {period} otherwise than the one that drew it: go on with "
                    "that version"
                )


def _told(rows: Sequence[Row]) -> Told:
    found = {(row.kind, row.key.partition(" ")[2]): content_of(row) for row in rows if row.kind in OF_PERIODS}
    seals = [content_of(row) for row in rows if row.kind == "seal"]
    return found | {("seal", Path(str(each["folder"])).name): each["certificate"] for each in seals}
