"""The publishers' own files are read as they are; without data something of the same shape is made up, and said so."""

import numpy as np
import polars as pl
import pytest

import holdfast as hf
from holdfast.papers import Study
from holdfast.papers.data import ZONES, city, counties, cube, demonstrated


def test_made_up_data_say_so():
    made = city(Study())
    assert len(made.tree.leaves) == sum(ZONES.values()) == 263
    assert made.tree.n == 270
    assert made.source.startswith("made up")
    (state,) = counties(Study(), ("Oregon",))
    assert (len(state.people), state.people.sum()) == (36, 3_831_074)
    assert state.source.startswith("made up")
    assert cube(Study())[0].shape == (14, 24, 20)
    assert demonstrated(Study()) == []


def test_the_trips_of_the_taxi_commission(tmp_path):
    pl.DataFrame({"PULocationID": [1, 2, 2, 264], "tpep_pickup_datetime": [0, 1, 2, 3]}).write_parquet(
        tmp_path / "yellow_tripdata_2022-02.parquet"
    )
    with pytest.raises(hf.Refused, match="taxi_zone_lookup"):
        city(Study(tmp_path))
    (tmp_path / "taxi_zone_lookup.csv").write_text(
        '"LocationID","Borough","Zone","service_zone"\n1,"EWR","Newark Airport","EWR"\n2,"Queens","Jamaica","Boro"\n'
        '3,"Queens","Astoria","Boro"\n264,"Unknown","NV","N/A"\n'
    )
    found = city(Study(tmp_path))
    assert found.truth.tolist() == [3, 1, 2, 1, 2, 0]
    assert "TLC" in found.source


def test_zones_that_were_counted_already(tmp_path):
    (tmp_path / "taxi_yellow_zone_counts.csv").write_text(
        "zone_id,borough,zone,feb2022_paygt0\n1,EWR,a,5\n2,Queens,b,7\n265,Unknown,c,9\n"
    )
    assert city(Study(tmp_path)).truth.tolist() == [12, 5, 7, 5, 7]


def test_counties_of_the_census_bureau(tmp_path):
    (tmp_path / "CenPop2010_Mean_CO.txt").write_text(
        "\ufeffSTATEFP,COUNTYFP,COUNAME,STNAME,POPULATION,LATITUDE,LONGITUDE\n41,001,Baker,Oregon,16134,+44,-117\n"
        "41,003,Benton,Oregon,8,+44,-123\n",
        encoding="utf-8",
    )
    (state,) = counties(Study(tmp_path), ("Oregon", "Texas"))
    assert state.people.tolist() == [8, 16134]
    assert state.protected is None


def test_demonstration_data_of_nhgis(tmp_path):
    (tmp_path / "nhgis_ppdd_20201116_county.csv").write_text(
        "gisjoin,state,name,H7V001_dp,H7V001_sf\nG1700010,17,Adams,70,67\nG1700030,17,Alexander,8,9\n"
    )
    (state,) = counties(Study(tmp_path), ("Illinois",))
    assert state.people.tolist() == [9, 67]
    assert state.protected.tolist() == [8, 70]
    assert [each.name for each in demonstrated(Study(tmp_path))] == ["Illinois"]


def test_a_table_of_demonstration_data(tmp_path):
    (tmp_path / "das_demo_2010_total_pop.csv").write_text(
        "state,level,vintage,geo_id,name,pop_sf1,pop_dp\nKY,county,20200527,G1,a,10,12\nKY,county,20200527,G2,b,20,18\n"
    )
    (state,) = demonstrated(Study(tmp_path))
    assert np.array_equal(state.protected - state.people, [2, -2])
