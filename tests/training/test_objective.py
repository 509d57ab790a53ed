"""The objective against values worked out by hand."""

import math

import pytest
import torch

from rolewise.config import Loss
from rolewise.training.objective import chi2, clipped_loss, importance_weights, k3


def loss_of(ratio, advantage, **settings):
    new = torch.tensor([math.log(ratio)], requires_grad=True)
    got = clipped_loss(new, torch.zeros(1), torch.tensor([advantage]), Loss(**settings))
    got.loss_T.sum().backward()
    return float(got.loss_T.detach()), float(new.grad), bool(got.clipped_T)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "clipped"),
    [
        (1.0, 2.0, -2.0, False),
        (1.2, 1.0, -1.2, False),
        (1.5, 1.0, -1.28, True),
        (0.5, 1.0, -0.5, False),
        (0.5, -1.0, 0.8, True),
        (2.0, -1.0, 2.0, False),
        (5.0, -1.0, 3.0, True),
    ],
)
def test_clipping_is_asymmetric_and_dual(ratio, advantage, loss, clipped):
    value, gradient, was_clipped = loss_of(ratio, advantage)
    assert value == pytest.approx(loss, rel=1e-5)
    assert was_clipped is clipped
    assert gradient == pytest.approx(0 if clipped else -ratio * advantage, rel=1e-5, abs=1e-9)


def test_dual_clip_can_be_off():
    assert loss_of(5.0, -1.0, dual_clip=None)[0] == pytest.approx(5)


def test_two_token_policy_gradient():
    # One softmax over two tokens, token 0 drawn, advantage 1: d loss / d logit = p - onehot.
    logits = torch.tensor([0.3, -0.2], requires_grad=True)
    log_p = logits.log_softmax(0)
    got = clipped_loss(log_p[:1], log_p[:1].detach(), torch.ones(1), Loss())
    got.loss_T.sum().backward()
    p0 = 1 / (1 + math.exp(-0.5))
    assert logits.grad.tolist() == pytest.approx([p0 - 1, 1 - p0])


def test_huge_ratios_stay_finite():
    value, gradient, _ = loss_of(math.exp(15), -1.0, dual_clip=None)
    assert math.isfinite(value) and math.isfinite(gradient)
    assert torch.isfinite(chi2(torch.tensor([0.0]), torch.tensor([-500.0]))).all()


def test_importance_weights():
    trainer, sampler = torch.tensor([0.0, 0.0]), torch.tensor([-math.log(4), math.log(2)])
    for mode, expected in (("off", [1, 1]), ("truncate", [2, 0.5]), ("mask", [0, 0.5])):
        got = importance_weights(trainer, sampler, Loss(importance=mode))
        assert got.tolist() == pytest.approx(expected)


def test_k3_and_chi2():
    pi, reference = torch.tensor([math.log(0.5)]), torch.tensor([math.log(0.25)])
    assert float(k3(pi, reference)) == pytest.approx(0.5 - math.log(0.5) - 1)
    assert float(k3(pi, pi)) == 0
    assert float(chi2(pi, reference)) == pytest.approx(3)
