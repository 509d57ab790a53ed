"""Written-out backward passes against automatic ones, and both kinds of attention against each other."""

import pytest
import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from rolewise.policy import attention
from rolewise.policy.backbone import Backbone
from rolewise.policy.kernels import rms_norm, split_heads, swiglu, take
from rolewise.policy.lora import AdapterLinear, Targets
from rolewise.policy.scoring import Packing, score
from tests.tiny import SHAPE, adapter, backbone, tensors, token_ids

EPS = 1e-6


def random(*size, seed=0):
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


def assert_same(ours, reference, *inputs):
    """Equal values, and equal gradients of the inputs for a random direction."""
    gradients, values = [], []
    for function in (ours, reference):
        leaves = [x.clone().requires_grad_() for x in inputs]
        parts = function(*leaves)
        parts = parts if isinstance(parts, tuple) else (parts,)
        sum((p * random(*p.shape, seed=i)).sum() for i, p in enumerate(parts)).backward()
        values.append(parts)
        gradients.append([leaf.grad for leaf in leaves])
    for mine, theirs in zip((*values[0], *gradients[0]), (*values[1], *gradients[1]), strict=True):
        assert torch.allclose(mine, theirs, atol=2e-6)


def test_rms_norm():
    weight = random(16, seed=1)
    assert_same(
        lambda x: rms_norm(x, weight, EPS),
        lambda x: F.rms_norm(x, (16,), weight, EPS),
        random(5, 16),
    )


@pytest.mark.parametrize("normed", [True, False])
def test_heads_are_normalised_and_rotated(normed):
    heads, kv, size = 4, 2, 8
    norm = random(heads + kv, size, seed=1) if normed else None
    angle = random(5, 1, size // 2, seed=2)
    cos, sin = angle.cos(), angle.sin()
    rope = torch.stack([torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)])

    def reference(qkv):
        q, k, v = qkv.view(5, -1, size).split([heads, kv, kv], dim=1)
        if normed:
            q = F.rms_norm(q, (size,), eps=EPS) * norm[:heads]
            k = F.rms_norm(k, (size,), eps=EPS) * norm[heads:]

        def turn(x):
            first, second = x.chunk(2, dim=-1)
            return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

        return turn(q), turn(k), v

    assert_same(
        lambda qkv: split_heads(qkv, (heads, kv, size), norm, EPS, rope),
        reference,
        random(5, (heads + 2 * kv) * size),
    )


def test_swiglu():
    def reference(x):
        gate, up = x.chunk(2, dim=-1)
        return F.silu(gate) * up

    assert_same(swiglu, reference, random(5, 12))


def test_take():
    index = torch.tensor([3, 0])
    assert_same(lambda x: take(x, index), lambda x: x[index], random(5, 4))


def test_both_kinds_of_attention_give_the_same_log_probs_and_gradients(monkeypatch):
    rows = [(token_ids(9, 1), token_ids(4, 3)), (token_ids(5, 2), token_ids(7, 4))]
    rows += [(rows[0][0], token_ids(1, 5)), (rows[0][0], token_ids(6, 6))]
    model, own = backbone(), adapter()
    found = []
    for limit in (1000, 0):
        monkeypatch.setattr(attention, "KEPT_SCORES", limit)
        linear = AdapterLinear(model, own)
        linear.targets = Targets.whole(torch.zeros_like(own.theta))
        scores = score(model, linear, Packing(rows, model.device), 0.7)
        (scores.logprobs_T * random(*scores.logprobs_T.shape)).sum().backward()
        found.append((scores.logprobs_T.detach(), linear.targets.flats_PS[0]))
    (kept, kept_gradient), (fused, fused_gradient) = found
    assert torch.allclose(kept, fused, atol=1e-5)
    assert torch.allclose(kept_gradient, fused_gradient, atol=1e-5 * kept_gradient.abs().max())


def test_a_model_without_head_norms_scores_as_its_library_does():
    weights = {k: v for k, v in tensors().items() if "q_norm" not in k and "k_norm" not in k}
    library = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=SHAPE.vocab,
            hidden_size=SHAPE.hidden,
            intermediate_size=SHAPE.intermediate,
            num_hidden_layers=SHAPE.layers,
            num_attention_heads=SHAPE.heads,
            num_key_value_heads=SHAPE.kv_heads,
            head_dim=SHAPE.head_dim,
            rms_norm_eps=SHAPE.norm_eps,
            tie_word_embeddings=True,
        )
    )
    library.load_state_dict(weights, strict=False)
    model = Backbone._assemble(SHAPE, weights)
    prompt, completion = token_ids(4, 1), token_ids(3, 2)
    with torch.no_grad():
        logits = library(torch.tensor([prompt + completion])).logits[0, 3:6]
        scores = score(
            model, model.plain_linear, Packing([(prompt, completion)], model.device), 1.0
        )
    expected = logits.log_softmax(-1)[range(3), list(completion)]
    assert torch.allclose(scores.logprobs_T, expected, atol=1e-5)
