"""The verb `mend` of the command: its options, its folder, its exit codes."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from holdfast.cli.command import app

TABLE = "region;sex;value\nTotal;Total;100\nTotal;M;52\nTotal;F;50\nNorth;Total;40\nNorth;M;19\nNorth;F;22\n"
TABLE += "South;Total;61\nSouth;M;30\nSouth;F;x\n"


def test_the_command_writes_a_folder_and_says_what_it_found(tmp_path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    wanted = ["mend", str(tmp_path / "t.csv"), "--errors", "uniform=3", "--exact", "region=Total", "--json"]
    ended = CliRunner().invoke(app, wanted)
    assert ended.exit_code == 3  # 100 = 52 + 50 cannot be exact
    assert "cannot hold together" in ended.output
    wanted[wanted.index("region=Total")] = "region=North"
    (tmp_path / "t.csv").write_text(TABLE.replace("North;F;22", "North;F;21"))
    ended = CliRunner().invoke(app, wanted)
    assert ended.exit_code == 0, ended.output
    found = json.loads(ended.stdout)
    assert found["exact"] == 3
    assert found["filled"] == 1
    assert (tmp_path / "t-mended" / "report.html").exists()
    assert CliRunner().invoke(app, wanted).exit_code == 3  # the folder is there


def test_hierarchies_come_from_files_by_column(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("area,value\nTotal,30\nNr,21\nGr,8\nFr,12\nOs,11\n")
    (tmp_path / "a.hrc").write_text("Nr\n@Gr\n@Fr\nOs\n")
    (tmp_path / "a.csv").write_text("province,part\nGr,Nr\nFr,Nr\nOs,Os east\n")
    for domain in (f"area={tmp_path / 'a.hrc'}", str(tmp_path / "a.hrc")):
        folder = tmp_path / f"out{len(domain)}"
        ended = CliRunner().invoke(app, ["mend", str(tmp_path / "t.csv"), "--domain", domain, "-o", str(folder)])
        assert ended.exit_code == 0, ended.output
        assert "carries no privacy statement" in ended.output
        assert (folder / "datapackage.json").exists()


def test_rules_and_weights_come_from_files(tmp_path) -> None:
    """An advertising reach report: nothing reaches more than its own impressions, all together less than the sum."""
    (tmp_path / "t.csv").write_text(
        "medium,what,value,w\nTV,reach,60,1\nTV,views,55,4\nweb,reach,40,1\nweb,views,90,4\nall,reach,120,1\nall,views,140,9\n"
    )
    (tmp_path / "rules.csv").write_text(
        "rule,medium,what,factor,relation,value\nreach at most views,TV,views,,>=,\nreach at most views,TV,reach,-1,,\n"
        "views add up,all,views,1,=,0\nviews add up,TV,views,-1,,\nviews add up,web,views,-1,,\n"
        "overlap,all,reach,2,<=,201\n"
    )
    wanted = ["mend", str(tmp_path / "t.csv"), "--rules", str(tmp_path / "rules.csv"), "--errors", "weights=w"]
    ended = CliRunner().invoke(app, [*wanted, "--hold", "nonnegative", "--value", "value", "--json"])
    assert ended.exit_code == 0, ended.output
    found = json.loads(ended.stdout)
    assert found["nearest"]
    assert [each["broken"] for each in found["rules"]] == [1, 2, 0]
    rows = [line.split(",") for line in (tmp_path / "t-mended" / "table.csv").read_text().splitlines()[1:]]
    value = {(row[0], row[1]): int(row[2]) for row in rows}
    assert value["all", "views"] == value["TV", "views"] + value["web", "views"]
    assert value["TV", "reach"] <= value["TV", "views"]
    assert value["all", "reach"] == 100
    for wrong in ("nobody,reach,1,<=,50", "all,,1,<=,50", "all,reach,1/2,=,9", "all,reach,1,<,50"):
        (tmp_path / "rules.csv").write_text(f"rule,medium,what,factor,relation,value\noverlap,{wrong}\n")
        ended = CliRunner().invoke(app, [*wanted, "-o", str(tmp_path / "again")])
        assert ended.exit_code == 3
        assert "\n" not in ended.output.strip()
