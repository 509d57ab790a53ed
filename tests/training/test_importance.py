"""Correction for a sampler that is not quite the trainer, and the mismatch that is logged of it."""

import copy
import dataclasses

import numpy as np
import pytest

from rolewise.errors import ConfigError
from rolewise.sampling.episodes import Episode
from rolewise.tasks.grade import Grade
from rolewise.tasks.problem import Problem
from rolewise.training.advantages import Groups
from rolewise.training.metrics import _drift_metrics, log_probs_before, step_metrics
from tests.configs import config
from tests.training.helpers import gradient_of, make_policy, make_rows
from tests.training.test_update import relative, run

HUGE = 1e9


def shifted(rows, role="generator", size=0.3):
    """The rows from a sampler that is off by noise of `size` nats on the tokens of a role."""
    noise = np.random.default_rng(3)
    return [
        dataclasses.replace(
            row,
            old_logprobs_T=row.old_logprobs_T
            + noise.normal(0, size, row.tokens).astype(np.float32) * (row.role == role),
        )
        for row in rows
    ]


def gradient(policy, rows, **loss):
    """The whole gradient of an update of the shared adapter by a sampler other than the trainer."""
    settings = {f"training.loss.{key}": value for key, value in loss.items()}
    _, report, ((_, gradients),) = run(
        "SP", settings | {"sampling.backend": "vllm"}, rows, policy=copy.deepcopy(policy)
    )
    return sum(gradients.values()), report


@pytest.fixture(scope="module")
def policy():
    return make_policy("SP")


@pytest.fixture(scope="module")
def rows(policy):
    return make_rows(policy, "SP")


def test_off_takes_ratios_to_the_samplers_own_logprobs(policy, rows):
    wrong = shifted(rows, size=0.03)
    found, _ = gradient(policy, wrong, importance="off")
    assert relative(found, gradient_of(policy, wrong, "shared", len(rows))) < 1e-5
    assert relative(found, gradient_of(policy, rows, "shared", len(rows))) > 0.001


def test_raw_logprobs_are_computed_again_by_the_trainer(policy, rows):
    settings = {"sampling.backend": "vllm", "sampling.logprobs": "raw"}
    _, _, ((_, gradients),) = run("SP", settings, shifted(rows), policy=copy.deepcopy(policy))
    found = sum(gradients.values())
    assert relative(found, gradient_of(policy, rows, "shared", len(rows))) < 1e-5


def test_the_perplexity_of_raw_logprobs_is_that_at_the_sampling_temperature(policy, rows):
    settings = {"sampling.backend": "vllm", "sampling.logprobs": "raw"}
    wrong = shifted(rows)
    _, report, _ = run("SP", settings, wrong, policy=copy.deepcopy(policy))
    episode = Episode(Problem("p", "Math", "?", answer="1"), 0)
    table = step_metrics(
        1, [episode], [Grade(None, "no_answer", 0, 1)], [0.0], wrong, Groups(1, 0), report
    )
    expected = np.mean([np.exp(-np.mean(values)) for values in report.before])
    assert table[0]["perplexity"] == pytest.approx(expected)
    # Log-probabilities of two temperatures say nothing about a mismatch.
    assert np.isnan([table[0]["chi2_mismatch"], table[0]["kl_sampler"]]).all()


@pytest.mark.parametrize("mode", ["truncate", "mask"])
def test_a_correction_needs_logprobs_at_the_sampling_temperature(mode):
    settings = {"training.loss.importance": mode, "sampling.logprobs": "raw"}
    with pytest.raises(ConfigError, match=r"importance.*one temperature.*processed"):
        config(settings=settings)
    assert config(settings=settings | {"sampling.temperature": 1.0}).sampling.at_temperature


def test_truncation_without_a_cap_gives_the_gradient_that_undoes_the_mismatch(policy, rows):
    wrong = shifted(rows)
    found, _ = gradient(policy, wrong, importance="truncate", importance_cap=HUGE)
    assert relative(found, gradient_of(policy, wrong, "shared", len(rows))) < 1e-5
    assert relative(found, gradient_of(policy, rows, "shared", len(rows))) > 0.01


@pytest.mark.parametrize(("mode", "kept"), [("truncate", 1.5), ("mask", 0.0)])
def test_weights_beyond_the_cap_are_cut_or_left_out(policy, rows, mode, kept):
    """All tokens of the generator were half as likely to the sampler as to the trainer: weight 2."""
    wrong = [
        dataclasses.replace(
            row,
            old_logprobs_T=row.old_logprobs_T - np.float32(np.log(2)) * (row.role == "generator"),
        )
        for row in rows
    ]
    found, _ = gradient(policy, wrong, importance=mode, importance_cap=1.5)
    expected = sum(
        gradient_of(policy, [r for r in rows if r.role == role], "shared", len(rows)) * weight
        for role, weight in (("generator", kept), ("aggregator", 1.0))
    )
    assert relative(found, expected) < 1e-5


def test_the_mismatch_is_logged_by_role(policy, rows):
    wrong = shifted(rows)
    _, report = gradient(policy, wrong)
    before = log_probs_before(wrong, report)
    logged = {
        role: _drift_metrics(
            wrong, [i for i, row in enumerate(wrong) if row.role == role], report, before
        )
        for role in ("generator", "aggregator")
    }
    # k3 of noise e is exp(-e) - 1 + e, on average half its variance for small noise.
    assert logged["generator"]["kl_sampler"] == pytest.approx(0.3**2 / 2, rel=0.3)
    assert logged["generator"]["chi2_mismatch"] > 0.05
    assert abs(logged["aggregator"]["kl_sampler"]) < 1e-6
    assert abs(logged["aggregator"]["chi2_mismatch"]) < 1e-5
