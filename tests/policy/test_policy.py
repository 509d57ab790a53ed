"""The backbone, adapters and scoring against the libraries they stand in for."""

import json

import pytest
import torch
from peft import PeftModel
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from rolewise.errors import DataError
from rolewise.policy import scoring
from rolewise.policy.adapters import Adapter
from rolewise.policy.backbone import GROUPS, Backbone
from rolewise.policy.lora import AdapterLinear, Targets
from rolewise.policy.routing import adapter_of, adapters_of
from rolewise.policy.scoring import Packing, score
from tests.tiny import SHAPE, adapter, backbone, tensors, token_ids

CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": SHAPE.hidden,
    "num_hidden_layers": SHAPE.layers,
    "num_attention_heads": SHAPE.heads,
    "num_key_value_heads": SHAPE.kv_heads,
    "head_dim": SHAPE.head_dim,
    "intermediate_size": SHAPE.intermediate,
    "vocab_size": SHAPE.vocab,
    "rms_norm_eps": SHAPE.norm_eps,
    "rope_parameters": {"rope_type": "default", "rope_theta": SHAPE.rope_theta},
    "tie_word_embeddings": True,
    "max_position_embeddings": 128,
}
PROMPTS = [token_ids(9, 1), token_ids(5, 2)]
ROWS = [
    (PROMPTS[0], token_ids(4, 3)),
    (PROMPTS[1], token_ids(7, 4)),
    (PROMPTS[0], token_ids(1, 5)),
    (PROMPTS[0], token_ids(6, 6)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    (path / "config.json").write_text(json.dumps(CONFIG))
    save_file(tensors(), path / "model.safetensors", {"format": "pt"})
    return path


def reference_logprobs(model, rows, temperature=0.7):
    parts = []
    for prompt, completion in rows:
        logits = model(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
        log_p = (logits / temperature).log_softmax(-1)
        parts.append(log_p[range(len(completion)), list(completion)])
    return torch.cat(parts)


def test_shared_prompts_and_packing_give_the_logprobs_and_gradients_of_peft(folder, tmp_path):
    own = adapter()
    own.save(tmp_path / "adapter", str(folder))
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    peft = PeftModel.from_pretrained(base, tmp_path / "adapter", is_trainable=True)
    weights = torch.randn(18, generator=torch.Generator().manual_seed(0))
    expected = reference_logprobs(peft, ROWS)
    (expected * weights).sum().backward()

    loaded = Backbone.load(folder)
    linear = AdapterLinear(loaded, own)
    linear.targets = Targets.whole(torch.zeros_like(own.theta))
    scores = score(loaded, linear, Packing(ROWS, loaded.device), 0.7)
    (scores.logprobs_T * weights).sum().backward()

    assert torch.allclose(scores.logprobs_T, expected, atol=1e-5)
    gradients = {n: p.grad for n, p in peft.named_parameters() if p.grad is not None}
    for site in own.sites.values():
        a, bs = own.factors(linear.targets.flats_PS[0], site)
        for member, part, b in zip(GROUPS[site.group], a.split(own.rank), bs, strict=True):
            stem = f"base_model.model.model.layers.{site.layer}.{member}"
            for name, mine in (("A", part), ("B", b)):
                theirs = gradients[f"{stem}.lora_{name}.default.weight"]
                assert torch.allclose(mine, theirs, atol=1e-4 * theirs.abs().max()), (stem, name)


def test_one_row_at_a_time_equals_all_rows_together():
    model, own = backbone(), adapter()
    together, apart = torch.zeros_like(own.theta), torch.zeros_like(own.theta)
    linear = AdapterLinear(model, own)
    linear.targets = Targets.whole(together)
    whole = score(model, linear, Packing(ROWS, model.device), 1.0)
    whole.logprobs_T.sum().backward()
    linear.targets = Targets.whole(apart)
    parts = []
    for row in ROWS:
        scores = score(model, linear, Packing([row], model.device), 1.0)
        scores.logprobs_T.sum().backward()
        parts.append(scores.logprobs_T.detach())
    assert torch.allclose(whole.logprobs_T, torch.cat(parts), atol=1e-5)
    assert torch.allclose(together, apart, rtol=1e-4, atol=1e-5 * together.abs().max())


def test_chunked_output_layer_and_recomputation_change_nothing(monkeypatch):
    model, own = backbone(), adapter()
    gradients, logprobs, at_once = [], [], []
    output_layer = model.logits

    def logits(hidden):
        at_once.append(len(hidden))
        return output_layer(hidden)

    monkeypatch.setattr(model, "logits", logits)
    whole, tokens = scoring.LOGITS, sum(len(completion) for _, completion in ROWS)
    for bound, largest, options in (
        (whole, tokens, {}),
        (5 * model.shape.vocab, 5, {}),
        (1, 1, {}),
        (whole, tokens, {"recompute": True}),
    ):
        monkeypatch.setattr(scoring, "LOGITS", bound)
        at_once.clear()
        linear = AdapterLinear(model, own)
        linear.targets = Targets.whole(torch.zeros_like(own.theta))
        scores = score(model, linear, Packing(ROWS, model.device), 0.7, **options)
        scores.logprobs_T.sum().backward()
        assert max(at_once) == largest
        gradients.append(linear.targets.flats_PS[0])
        logprobs.append(scores.logprobs_T.detach())
    for gradient, values in zip(gradients[1:], logprobs[1:], strict=True):
        assert torch.allclose(values, logprobs[0], atol=1e-6)
        assert torch.allclose(gradient, gradients[0], atol=1e-5 * gradients[0].abs().max())


def test_unmerged_low_precision_path_follows_the_merged_one():
    model, own = backbone(), adapter()
    low = backbone(dtype=torch.bfloat16)
    gradients = []
    for one in (model, low):
        linear = AdapterLinear(one, own)
        linear.targets = Targets.whole(torch.zeros_like(own.theta))
        score(one, linear, Packing(ROWS, one.device), 1.0).logprobs_T.sum().backward()
        gradients.append(linear.targets.flats_PS[0])
    assert gradients[1].dtype == torch.float32
    assert torch.cosine_similarity(*gradients, dim=0) > 0.99


def test_entropy_and_top_probability_describe_the_whole_distribution():
    model = backbone()
    packing = Packing(ROWS, model.device)
    with torch.no_grad():
        scores = score(model, model.plain_linear, packing, 0.7, distribution=True)
        hidden = model.forward(
            packing.ids_N, packing.positions_N, packing.attend, model.plain_linear
        )
        p = (model.logits(hidden[packing.predict_T]) / 0.7).softmax(-1)
    assert torch.allclose(
        scores.entropies_T, torch.distributions.Categorical(p).entropy(), atol=1e-5
    )
    assert torch.allclose(scores.top_probs_T, p.max(-1).values)


def test_a_fresh_adapter_is_the_base_model():
    model = backbone()
    own = Adapter.fresh(SHAPE, rank=4, alpha=8, seed=1)
    packing = Packing(ROWS, model.device)
    with torch.no_grad():
        base = score(model, model.plain_linear, packing, 1.0).logprobs_T
        adapted = score(model, AdapterLinear(model, own), packing, 1.0).logprobs_T
    assert torch.equal(base, adapted)


def test_the_merged_weights_follow_the_adapter():
    model, own = backbone(), adapter()
    linear = AdapterLinear(model, own)
    packing = Packing(ROWS, model.device)
    with torch.no_grad():
        before = score(model, linear, packing, 1.0).logprobs_T
        own.theta.mul_(1.5)
        own.version += 1
        after = score(model, linear, packing, 1.0).logprobs_T
    assert not torch.allclose(before, after)


def test_saved_adapters_come_back_bit_equal(tmp_path):
    adapters = {name: adapter(seed) for seed, name in enumerate(("solver", "judge", "aggregator"))}
    for name, own in adapters.items():
        own.save(tmp_path / name, "base")
    for name, own in adapters.items():
        assert torch.equal(Adapter.load(tmp_path / name, SHAPE).theta, own.theta)


def test_training_leaves_the_base_weights_alone():
    model, own = backbone(), adapter()
    before = [layer.linear[g].clone() for layer in model.layers for g in GROUPS]
    linear = AdapterLinear(model, own)
    linear.targets = Targets.whole(torch.zeros_like(own.theta))
    score(model, linear, Packing(ROWS, model.device), 1.0).logprobs_T.sum().backward()
    own.theta.add_(linear.targets.flats_PS[0], alpha=-1e-3)
    own.version += 1
    with torch.no_grad():
        score(model, linear, Packing(ROWS, model.device), 1.0)
    after = [layer.linear[g] for layer in model.layers for g in GROUPS]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "architecture GPT2LMHeadModel"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope type yarn"),
        ({"attention_bias": True}, "biases"),
    ],
)
def test_an_unsupported_model_is_refused(tmp_path, change, message):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | change))
    with pytest.raises(DataError, match=message):
        Backbone.load(tmp_path)


def test_a_missing_or_broken_model_names_its_folder(tmp_path):
    with pytest.raises(DataError, match="no model here"):
        Backbone.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "model.safetensors").write_bytes(b"rubbish")
    with pytest.raises(DataError, match="unreadable"):
        Backbone.load(tmp_path)


def test_an_adapter_of_another_shape_is_refused(tmp_path):
    adapter().save(tmp_path, "base")
    file = tmp_path / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes())
    other = SHAPE.__class__(**{**vars(SHAPE), "hidden": 16})
    with pytest.raises(DataError, match="does not fit"):
        Adapter.load(tmp_path, other)


def test_routing_is_the_difference_between_policies():
    roles = ("orchestrator", "worker", "synthesizer")
    assert adapters_of("SP", roles) == ["shared"]
    assert adapters_of("IP", roles) == list(roles)
    assert adapters_of("SA", ("generator",)) == ["generator"]
    assert adapters_of("Base", roles) == []
    assert adapter_of("Base", "worker") is None


def test_parts_of_one_pass_have_the_gradients_of_passes_of_their_own():
    model, own = backbone(), adapter()
    rows = [ROWS[0], ROWS[2], ROWS[1], ROWS[3]]
    labels = ["a", "a", "b", "b"]
    linear = AdapterLinear(model, own)
    flats = own.theta.new_zeros(2, len(own.theta))
    sums = dict(zip("ab", flats, strict=True))
    packing = Packing(rows, model.device, labels)
    linear.targets = Targets(
        flats, [("ab".index(label), segment) for label, segment in packing.segments]
    )
    score(model, linear, packing, 0.7).logprobs_T.sum().backward()
    for label, own_rows in (("a", rows[:2]), ("b", rows[2:])):
        alone = torch.zeros_like(own.theta)
        linear.targets = Targets.whole(alone)
        score(model, linear, Packing(own_rows, model.device), 0.7).logprobs_T.sum().backward()
        assert torch.allclose(sums[label], alone, atol=1e-5 * alone.abs().max())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("adapter_config.json", b"{}"),
        ("adapter_config.json", b"[]"),
        ("adapter_config.json", b'{"r": "many", "lora_alpha": 1}'),
        ("adapter_config.json", b"{"),
        ("adapter_model.safetensors", b""),
        ("adapter_model.safetensors", b"\x10" * 100),
    ],
)
def test_a_damaged_adapter_is_named(tmp_path, name, content):
    Adapter.fresh(SHAPE, 4, 8.0, 0).save(tmp_path, "base")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="the adapter is damaged"):
        Adapter.load(tmp_path, SHAPE)
