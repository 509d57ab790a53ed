"""Reference results are complete, checked, and never half there."""

import json

import pytest

from rolewise.errors import DataError
from rolewise.runs import reference
from tests.configs import config

FILES = {
    "tables/cells.csv": "workflow,split\nVoting,train\nVoting,report\n",
    "cells/Voting-IP-0.1M-Math/seed0/summary.json": "{}",
    "cells/Voting-IP-0.1M-Math/seed0/metrics.parquet": "m",
    "data/Math/validation.jsonl": "{}",
    "data/Math/manifest.json": "{}",
}
LEFT_OUT = {"tables/table_1.csv": "", "data/Math/train.jsonl": "", "state/x/seed0/train/lock": ""}


@pytest.fixture
def study(tmp_path):
    for name, text in (FILES | LEFT_OUT).items():
        (tmp_path / "results" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "results" / name).write_text(text)
    return config(tmp_path / "results")


def test_what_is_packed_is_unpacked(study, tmp_path):
    manifest = reference.pack(study, tmp_path / "shipped")
    shipped = {n + ".gz" if n.endswith((".csv", ".jsonl")) else n for n in FILES}
    assert manifest["files"].keys() == shipped
    assert manifest["config"]["preset"] == "test"
    assert reference.unpack(tmp_path / "shipped", tmp_path / "again") == len(FILES)
    for name, text in FILES.items():
        assert (tmp_path / "again" / name).read_text() == text
    assert not (tmp_path / "again/tables/table_1.csv").exists()


def test_the_tidy_table_can_be_packed_alone(study, tmp_path):
    manifest = reference.pack(study, tmp_path / "shipped", tables_only=True)
    assert list(manifest["files"]) == ["tables/cells.csv.gz"]
    reference.unpack(tmp_path / "shipped", tmp_path / "again")
    table = (tmp_path / "again/tables/cells.csv").read_text()
    assert table == "workflow,split\nVoting,report\n", "training steps are left out"


def test_packing_again_replaces_what_was_there(study, tmp_path):
    reference.pack(study, tmp_path / "shipped")
    (tmp_path / "results/cells/Voting-IP-0.1M-Math/seed0/metrics.parquet").unlink()
    reference.pack(study, tmp_path / "shipped")
    assert not list((tmp_path / "shipped").rglob("metrics.parquet"))


def test_an_unfinished_study_cannot_be_packed(study, tmp_path):
    (tmp_path / "results/tables/cells.csv").unlink()
    with pytest.raises(DataError, match="snakemake --cores all"):
        reference.pack(study, tmp_path / "shipped")


@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_a_damaged_file_is_named_before_anything_is_copied(study, tmp_path, damage):
    reference.pack(study, tmp_path / "shipped")
    file = tmp_path / "shipped/tables/cells.csv.gz"
    file.write_text("other") if damage == "altered" else file.unlink()
    with pytest.raises(DataError, match=str(file)):
        reference.unpack(tmp_path / "shipped", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_clone_without_reference_results_says_so(tmp_path):
    with pytest.raises(DataError, match="no readable reference results"):
        reference.unpack(tmp_path / "none", tmp_path / "again")
    (tmp_path / "manifest.json").write_text(json.dumps({}))
    with pytest.raises(DataError, match="no readable reference results"):
        reference.unpack(tmp_path, tmp_path / "again")
