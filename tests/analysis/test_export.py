"""What leaves the project loads elsewhere: PEFT folders, merged models, trajectories."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from datasets import load_dataset
from peft import PeftModel
from transformers import AutoModelForCausalLM
from typer.testing import CliRunner

from rolewise.analysis.export import export
from rolewise.analysis.summarise import summarise
from rolewise.cli import app
from rolewise.errors import DataError, RolewiseError
from rolewise.evaluation.evaluate import evaluate
from rolewise.grid import parse_cell
from rolewise.policy.backbone import Backbone
from rolewise.policy.policy import saved_policy
from rolewise.policy.scoring import Packing, score
from rolewise.records import TRAJECTORIES
from rolewise.runs.layout import layout
from rolewise.training.loop import train
from tests.study import tiny_study

NAME = "Voting-IP-0.1M-Math"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study with one trained, evaluated and summarised cell."""
    config = tiny_study(tmp_path_factory.mktemp("study"), {"training.steps": 2})
    cell = parse_cell(config, NAME)
    train(config, cell, 0)
    for one in (cell, parse_cell(config, "Voting-Base-0.1M-Math")):
        evaluate(config, one, 0)
    summarise(config, cell, 0)
    return config, cell


def logprobs(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].log_softmax(-1)


@pytest.mark.parametrize("merge", [False, True])
def test_an_export_gives_the_logprobs_of_the_checkpoint(finished, tmp_path, merge):
    config, cell = finished
    folders = export(config, cell, 0, "2", tmp_path / "out", merge)
    assert [f.name for f in folders] == ["aggregator", "generator"]
    base = layout(config).model(cell.scale)
    state = layout(config).training_state(config, cell, 0)
    checkpoint = next(state.glob("**/adapters/generator")).parent
    policy = saved_policy(cell, ("generator", "aggregator"), checkpoint, Backbone.load(base))
    ids = (5, 9, 12, 7, 30, 41)
    for folder in folders:
        model = AutoModelForCausalLM.from_pretrained(folder if merge else base)
        if not merge:
            model = PeftModel.from_pretrained(model, folder)
        packing = Packing([(ids[:1], ids[1:])], torch.device("cpu"))
        own = score(policy.backbone, policy.linear(folder.name), packing, 1.0).logprobs_T
        found = logprobs(model, ids)[range(5), list(ids[1:])]
        assert (own - found).abs().max() < 1e-5
    assert (tmp_path / "out/generator/tokenizer.json").is_file() == merge


def test_named_checkpoints_and_refusals(finished, tmp_path):
    config, cell = finished
    export(config, cell, 0, "best", tmp_path / "out", False)
    with pytest.raises(RolewiseError, match="exists already"):
        export(config, cell, 0, "terminal", tmp_path / "out", False)
    with pytest.raises(RolewiseError, match="early, best, terminal and the steps 2"):
        export(config, cell, 0, "17", tmp_path / "other", False)
    with pytest.raises(RolewiseError, match="not trained"):
        export(config, cell.base, 0, "best", tmp_path / "other", False)
    assert not (tmp_path / "other").exists()


def test_a_failed_export_leaves_nothing(finished, tmp_path, monkeypatch):
    config, cell = finished

    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", fail)
    with pytest.raises(OSError, match="no space"):
        export(config, cell, 0, "best", tmp_path / "out", True)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.fixture
def copied(finished, tmp_path):
    """The finished study in a folder that a test may damage."""
    config, cell = finished
    root = shutil.copytree(config.results_dir, tmp_path / "study")
    places = layout(config := config.model_copy(update={"results_dir": str(root)}))
    file = places.cell(cell, 0) / "manifest.json"
    content = json.loads(file.read_text())
    checkpoints = content["checkpoints"].items()
    old = str(Path(finished[0].results_dir))
    moved = {step: folder.replace(old, str(root)) for step, folder in checkpoints}
    file.write_text(json.dumps(content | {"checkpoints": moved}))
    return config, cell, Path(moved["2"]) / "adapters/generator", places.model(cell.scale)


def truncate(file):
    file.write_bytes(file.read_bytes()[:100])


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda adapter, model: truncate(adapter / "adapter_model.safetensors"),
        lambda adapter, model: (adapter / "adapter_model.safetensors").unlink(),
        lambda adapter, model: (adapter / "adapter_config.json").write_text("{}"),
        lambda adapter, model: shutil.rmtree(adapter),
    ],
)
def test_a_damaged_checkpoint_is_not_exported(copied, tmp_path, spoil, merge):
    config, cell, adapter, model = copied
    spoil(adapter, model)
    with pytest.raises(DataError, match="damaged"):
        export(config, cell, 0, "2", tmp_path / "out", merge)
    assert not (tmp_path / "out").exists()


def test_another_base_model_is_not_exported_with(copied, tmp_path):
    config, cell, _, model = copied
    content = json.loads((model / "manifest.json").read_text())
    content["files"]["model.safetensors"] = "0" * 64
    (model / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"not the model that .* was trained on"):
        export(config, cell, 0, "2", tmp_path / "out", False)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_changed_files_of_the_base_model_are_not_merged(copied, tmp_path, name):
    config, cell, _, model = copied
    truncate(model / name)
    with pytest.raises(DataError, match=f"{name}: changed"):
        export(config, cell, 0, "2", tmp_path / "out", True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", ["{}", "[]", '{"checkpoints": 3}'])
def test_a_training_manifest_without_checkpoints_is_named(copied, tmp_path, content):
    config, cell, *_ = copied
    (layout(config).cell(cell, 0) / "manifest.json").write_text(content)
    with pytest.raises(DataError, match=r"manifest\.json: says nothing about its checkpoints"):
        export(config, cell, 0, "2", tmp_path / "out", False)


def test_the_target_has_to_be_a_folder(finished, tmp_path):
    config, cell = finished
    (tmp_path / "out").write_text("")
    with pytest.raises(RolewiseError, match="is a file"):
        export(config, cell, 0, "2", tmp_path / "out", False)


def test_the_command_names_what_it_wrote(finished, tmp_path, monkeypatch):
    config, _ = finished
    monkeypatch.setattr("rolewise.cli.paper_scale.read_config", lambda files: config)
    done = CliRunner().invoke(app, ["export", NAME, "--to", str(tmp_path / "out")])
    assert done.exit_code == 0 and str(tmp_path / "out" / "generator") in done.stdout


def test_trajectories_load_with_datasets(finished, tmp_path):
    config, cell = finished
    file = layout(config).cell(cell, 0) / "trajectories.parquet"
    rows = load_dataset("parquet", data_files=str(file), split="train", cache_dir=str(tmp_path))
    assert set(rows.column_names) == set(TRAJECTORIES)
    assert set(rows.unique("role")) == {"generator", "aggregator"} and len(rows) > 0
