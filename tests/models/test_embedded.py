import hashlib
import itertools
import json

import pytest
import torch

from rolewise.errors import ConfigError, DataError
from rolewise.models.embedded import build, encode
from rolewise.models.player import Noise
from rolewise.models.transcripts import transcripts
from rolewise.models.vocabulary import train_vocabulary
from rolewise.policy.tokenizer import ChatTokenizer
from rolewise.runs.provenance import content_hash
from rolewise.tasks.datasets.prepare import prepare
from rolewise.tasks.problem import read_problems, write_problems
from tests.configs import config

SPEC = {
    "kind": "embedded", "hidden_size": 32, "layers": 1, "heads": 2, "kv_heads": 1, "head_dim": 16,
    "intermediate_size": 64, "vocab_size": 560, "warm_start_steps": 40, "warm_start_batch": 16,
    "warm_start_lr": 5e-3,
}  # fmt: skip


def study(root, **changes):
    settings = {"models.0.1M": SPEC | changes}
    raw = config(root).model_dump()
    raw["models"]["0.1M"] = settings["models.0.1M"]
    return type(config(root)).model_validate(raw)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    root = tmp_path_factory.mktemp("embedded")
    own = study(root)
    for task in own.tasks:
        prepare(own, task, root / "data" / task)
    manifest = build(own, "0.1M", root / "data", root / "models" / "0.1M")
    return own, root, manifest


def sample(own, root, count=80):
    problems = {task: read_problems(root / "data" / task / "train.jsonl") for task in own.tasks}
    return list(itertools.islice(transcripts(own, problems, Noise(), 3), count))


def test_the_folder_loads_as_a_causal_model_and_its_tokenizer(built):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _, root, manifest = built
    folder = root / "models" / "0.1M"
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert type(model).__name__ == "Qwen3ForCausalLM"
    assert sum(p.numel() for p in model.parameters()) == manifest["parameters"]
    assert len(tokenizer) == model.config.vocab_size == manifest["vocabulary"] <= 560
    assert tokenizer.eos_token_id == model.config.eos_token_id == 1
    assert tokenizer.pad_token_id == model.config.pad_token_id == 0
    assert model.generation_config.top_k == 0
    text = "anything: ünï 漢字 \t\x00 12+3 <tag>"
    assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_transcripts_are_encoded_as_the_chat_template_renders_them(built):
    from transformers import AutoTokenizer

    own, root, _ = built
    folder = root / "models" / "0.1M"
    library, ours = AutoTokenizer.from_pretrained(folder), ChatTokenizer(folder)
    for transcript in sample(own, root):
        row = encode(ours._tokenizer, transcript)
        chat = [{"role": m.role, "content": m.content} for m in transcript.messages]
        for thinking in (True, False):
            rendered = library.apply_chat_template(
                chat, tokenize=True, return_dict=False, enable_thinking=thinking
            )
            assert tuple(rendered) == row.ids
        prompt = library.apply_chat_template(
            chat[:-1], tokenize=True, return_dict=False, add_generation_prompt=True
        )
        assert ours.encode(ours.render(transcript.messages[:-1])) == tuple(prompt)
        assert row.ids[: len(prompt)] == tuple(prompt)
        assert row.weights[len(prompt) - 1] == 0 < min(row.weights[len(prompt) :])


def test_only_assistant_turns_are_learned_and_each_weighs_the_same(built):
    own, root, _ = built
    vocabulary = ChatTokenizer(root / "models" / "0.1M")._tokenizer
    for transcript in sample(own, root):
        row = encode(vocabulary, transcript)
        turns = sum(m.role == "assistant" for m in transcript.messages)
        assert sum(row.weights) == pytest.approx(turns)
        spoken = [i for i, w in zip(row.ids, row.weights, strict=True) if w > 0]
        assert vocabulary.decode(spoken) == "".join(
            m.content for m in transcript.messages if m.role == "assistant"
        )


def test_digits_and_signs_stay_single_tokens_and_prompts_are_short(built):
    own, root, _ = built
    vocabulary = ChatTokenizer(root / "models" / "0.1M")._tokenizer
    merged = [t for t in vocabulary.get_vocab() if len(t) > 1 and set(t) & set("0123456789+*-")]
    assert merged == []
    lengths = [
        len(encode(vocabulary, t).ids) for t in sample(own, root, 400) if len(t.messages) == 2
    ]
    assert sum(lengths) / len(lengths) < 45


def test_the_warm_start_learns(built):
    _, _, manifest = built
    assert manifest["loss"] < 0.6 * torch.log(torch.tensor(float(manifest["vocabulary"])))


def test_the_manifest_vouches_for_every_file_and_names_data_and_spec(built):
    own, root, manifest = built
    folder = root / "models" / "0.1M"
    assert manifest == json.loads((folder / "manifest.json").read_text())
    assert set(manifest["files"]) == {p.name for p in folder.iterdir()} - {"manifest.json"}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert manifest["spec"] == own.model_dump()["models"]["0.1M"]
    assert set(manifest["data"]) == {"Math", "Code"}
    assert len(content_hash(folder / "manifest.json")) == 12


def test_the_same_configuration_gives_the_same_weights(built):
    own, root, manifest = built
    again = build(own, "0.1M", root / "data", root / "again")
    assert again["files"] == manifest["files"]


def test_scales_share_one_vocabulary_whatever_their_noise(built):
    _, root, manifest = built
    other = study(root, hidden_size=16, head_dim=8, warm_start_steps=2, noise={"earnest": 0.9})
    small = build(other, "0.1M", root / "data", root / "other")
    assert small["files"]["tokenizer.json"] == manifest["files"]["tokenizer.json"]
    assert small["files"]["model.safetensors"] != manifest["files"]["model.safetensors"]


def test_problems_without_solution_and_mistakes_are_refused_by_line(built, tmp_path):
    own, root, _ = built
    for task in own.tasks:
        problems = read_problems(root / "data" / task / "train.jsonl")
        problems[1].meta.clear()
        (tmp_path / task).mkdir()
        (tmp_path / task / "train.jsonl").write_text(write_problems(problems))
    with pytest.raises(DataError, match=r"train\.jsonl:2"):
        build(own, "0.1M", tmp_path, tmp_path / "out")


def test_a_vocabulary_that_cannot_hold_all_bytes_is_refused(built, tmp_path):
    _, root, _ = built
    with pytest.raises(ConfigError, match=r"models\.0\.1M\.vocab_size: 200"):
        build(study(root, vocab_size=200), "0.1M", root / "data", tmp_path)


def test_a_vocabulary_never_exceeds_its_bound():
    texts = ["add 3 to 4", "take 3 from 4"] * 50
    assert train_vocabulary(texts, 262).get_vocab_size() == 262
