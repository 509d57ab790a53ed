"""Builds an embedded model: vocabulary, random weights, warm start, Hugging Face folder."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

from rolewise.config import Config, EmbeddedModel
from rolewise.errors import ConfigError, DataError
from rolewise.models.folder import finish_folder, start_folder
from rolewise.models.player import FAULTLESS, Noise, read_noise
from rolewise.models.transcripts import Transcript, transcripts
from rolewise.models.vocabulary import (
    ASSISTANT,
    END,
    PAD,
    SMALLEST_VOCABULARY,
    USER,
    save_vocabulary,
    train_vocabulary,
)
from rolewise.models.warm_start import Row, train
from rolewise.tasks.problem import Problem, read_problems
from rolewise.tasks.prompts import ROOT

SEED = 0
VOCABULARY_TRANSCRIPTS = 6000
# Facts, copying and picking are learned faster from faultless players; the noise comes after.
FAULTLESS_SHARE = 0.6
# Every transcript is seen this often: noise must stay a matter of chance, not of memory.
EPOCHS = 2


def build(
    config: Config, scale: str, data_root: Path, out_folder: Path, prompt_root: Path = ROOT
) -> dict:
    """Write the model of `scale` to `out_folder` and give back its manifest.

    Reads training problems from `data_root/<task>/train.jsonl`. Deterministic for a given
    configuration, data, prompt set and number of threads. The vocabulary depends on data, prompts
    and its size only, so that scales of one size share it.
    """
    spec = config.models[scale]
    if not isinstance(spec, EmbeddedModel):
        raise DataError(f"models.{scale}: kind '{spec.kind}' is fetched, not built")
    if spec.vocab_size < SMALLEST_VOCABULARY:
        raise ConfigError(
            [
                f"models.{scale}.vocab_size: {spec.vocab_size} is too small; bytes and special tokens "
                f"alone take {SMALLEST_VOCABULARY}"
            ]
        )
    started = time.process_time()
    noise = read_noise(spec.noise, scale)
    threads = torch.get_num_threads()
    torch.set_num_threads(config.resources.threads)
    try:
        problems = {task: _training_problems(data_root / task) for task in sorted(config.tasks)}
        start_folder(out_folder)
        vocabulary = _vocabulary(config, problems, spec.vocab_size, prompt_root)
        save_vocabulary(vocabulary, out_folder)
        model = _model(spec, vocabulary)
        lessons = round(spec.warm_start_steps * FAULTLESS_SHARE)
        alone = transcripts(config, problems, FAULTLESS, SEED, prompt_root)
        _learn(model, vocabulary, alone, spec, lessons)
        played = transcripts(config, problems, noise, SEED, prompt_root)
        loss = _learn(model, vocabulary, played, spec, spec.warm_start_steps - lessons)
        model.save_pretrained(out_folder)
    finally:
        torch.set_num_threads(threads)
    return finish_folder(
        out_folder,
        {
            "scale": scale,
            "spec": spec.model_dump(),
            "parameters": sum(p.numel() for p in model.parameters()),
            "vocabulary": vocabulary.get_vocab_size(),
            "data": {task: _sha256(data_root / task / "train.jsonl") for task in problems},
            "loss": loss,
            "cpu_s": round(time.process_time() - started, 1),
        },
    )


def _learn(
    model: Qwen3ForCausalLM,
    vocabulary: Tokenizer,
    stream: Iterator[Transcript],
    spec: EmbeddedModel,
    steps: int,
) -> float:
    count = -(-steps * spec.warm_start_batch // EPOCHS)
    rows = [encode(vocabulary, transcript) for transcript in itertools.islice(stream, count)]
    return train(model, rows, steps, spec.warm_start_batch, spec.warm_start_lr, SEED)


def encode(vocabulary: Tokenizer, transcript: Transcript) -> Row:
    """A conversation as the chat template renders it; assistant turns with their end are learned.

    Every turn weighs the same, or verdicts and selections would drown in the tokens of programs.
    """
    ids: list[int] = []
    weights: list[float] = []
    for message in transcript.messages:
        spoken = message.role == "assistant"
        content = vocabulary.encode(message.content, add_special_tokens=False).ids
        content += [vocabulary.token_to_id(END)] * spoken
        ids += [vocabulary.token_to_id(ASSISTANT if spoken else USER), *content]
        weights += [0.0, *[spoken / len(content)] * len(content)]
    return Row(tuple(ids), tuple(weights))


def _vocabulary(
    config: Config, problems: dict[str, list[Problem]], size: int, prompt_root: Path
) -> Tokenizer:
    # Default noise, whatever the scale's: scales share one vocabulary.
    stream = transcripts(config, problems, Noise(), SEED, prompt_root)
    return train_vocabulary(_texts(itertools.islice(stream, VOCABULARY_TRANSCRIPTS)), size)


def _texts(stream: Iterator[Transcript]) -> Iterator[str]:
    return (message.content for transcript in stream for message in transcript.messages)


def _model(spec: EmbeddedModel, vocabulary: Tokenizer) -> Qwen3ForCausalLM:
    """A randomly initialised model of the wanted shape."""
    ids = {"pad_token_id": vocabulary.token_to_id(PAD), "eos_token_id": vocabulary.token_to_id(END)}
    torch.manual_seed(SEED)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=vocabulary.get_vocab_size(),
            hidden_size=spec.hidden_size,
            num_hidden_layers=spec.layers,
            num_attention_heads=spec.heads,
            num_key_value_heads=spec.kv_heads,
            head_dim=spec.head_dim,
            intermediate_size=spec.intermediate_size,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            initializer_range=0.1,
            bos_token_id=None,
            **ids,
        )
    )
    model.generation_config = GenerationConfig(do_sample=True, top_k=0, **ids)
    return model


def _training_problems(folder: Path) -> list[Problem]:
    path = folder / "train.jsonl"
    problems = read_problems(path)
    for number, problem in enumerate(problems, 1):
        if not problem.meta.get("solution") or not problem.meta.get("mistakes"):
            raise DataError(
                f"{path}:{number}: embedded models learn from problems whose `meta` has a solution "
                "and mistakes; take a procedural generator that gives them, or a pretrained model"
            )
    if not problems:
        raise DataError(f"{path}: no problems; run `snakemake --cores 1 data` again")
    return problems


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
