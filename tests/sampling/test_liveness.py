"""The probe tells the adapter that is served from the base model and from what was served before."""

import numpy as np
import pytest
import torch

from rolewise.errors import TrainingError
from rolewise.policy.policy import Policy
from rolewise.sampling.liveness import (
    PROBE_TOKENS,
    Served,
    check_served,
    make_probe,
    trainer_logprobs,
)
from tests.tiny import adapter, backbone, token_ids

TEXTS = [token_ids(3 + i % 7, i) for i in range(32)]


def served(sampler, trainer, **references):
    return Served(np.asarray(sampler), np.asarray(trainer), references)


@pytest.fixture(scope="module")
def vectors():
    """Log-probs of a probe under the base model, an adapter, and the adapter slightly moved."""
    policy = Policy(backbone(), {"old": adapter(0, 0.05), "new": adapter(0, 0.051)})
    probe = make_probe(policy.backbone, TEXTS)
    return {name: trainer_logprobs(policy, name, probe, 0.7) for name in (None, "old", "new")} | {
        "probe": probe,
        "policy": policy,
    }


def test_a_probe_has_distinct_texts_and_the_tokens_likeliest_under_the_base_model(vectors):
    probe, policy = vectors["probe"], vectors["policy"]
    assert len(set(probe.texts)) == len(probe.texts) and set(probe.texts) == set(TEXTS)
    everything = type(probe)(probe.texts[:1], (tuple(range(policy.backbone.shape.vocab)),))
    logprobs = trainer_logprobs(policy, None, everything, 1.0)
    assert np.exp(logprobs).sum() == pytest.approx(1, abs=1e-5)
    assert set(np.argsort(-logprobs)[:PROBE_TOKENS].tolist()) == set(probe.tokens[0])


def test_the_same_logprobs_up_to_rounding_pass(vectors):
    noise = np.random.default_rng(0).normal(0, 1e-5, vectors["new"].shape)
    spread = check_served(
        "a", served(vectors["new"] + noise, vectors["new"], base=vectors[None]), torch.float32
    )
    assert 0 < spread < 1e-4


def test_the_base_model_instead_of_the_adapter_is_named(vectors):
    with pytest.raises(TrainingError, match=r"adapter 'a'.* but base"):
        check_served("a", served(vectors[None], vectors["new"], base=vectors[None]), torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_old_version_that_differs_less_than_the_tolerance_is_found(vectors, dtype):
    moved = np.abs(vectors["new"] - vectors["old"])
    assert moved.max() < 0.1
    noise = np.random.default_rng(1).normal(0, moved.mean() / 20, moved.shape)
    with pytest.raises(TrainingError, match="but the version before"):
        check_served(
            "a",
            Served(vectors["old"] + noise, vectors["new"], {"the version before": vectors["old"]}),
            dtype,
        )


def test_an_untrained_adapter_equals_the_base_model_and_passes(vectors):
    base = vectors[None]
    assert check_served("a", served(base, base, base=base, before=base), torch.float32) == 0


def test_rounding_of_low_precision_raises_no_false_alarm():
    generator = np.random.default_rng(2)
    for _ in range(300):
        base = generator.normal(-2, 1, 256)
        trainer = base + generator.normal(0, 0.01, 256)
        sampler = trainer + generator.normal(0, 0.03, 256)
        check_served("a", served(sampler, trainer, base=base), torch.bfloat16)


@pytest.mark.parametrize("wrong", [0.01, np.nan])
def test_anything_else_that_is_far_off_is_refused_with_the_distance(vectors, wrong):
    with pytest.raises(TrainingError, match="differ by"):
        check_served("a", served(vectors["new"] + wrong, vectors["new"]), torch.float32)
