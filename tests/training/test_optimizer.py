"""Schedule, clipping, damping and exact restoration of the optimiser."""

import pytest
import torch

from rolewise.training.optimizer import AdapterOptimizer
from tests.tiny import adapter
from tests.training.helpers import make_config


def optimizer(settings=None):
    return AdapterOptimizer(adapter(), make_config(settings).training)


def direction(one, seed=0):
    return torch.randn(one.adapter.theta.shape, generator=torch.Generator().manual_seed(seed))


def test_warm_up_is_linear_then_constant():
    one = optimizer({"training.optimizer.warmup": 4, "training.optimizer.lr": 1.0})
    seen = []
    for _ in range(6):
        seen.append(one.lr)
        one.ticks += 1
    assert seen == [0.25, 0.5, 0.75, 1, 1, 1]


def test_gradients_are_clipped_to_the_adapter_norm():
    one = optimizer(
        {
            "training.optimizer.kind": "sgd",
            "training.optimizer.lr": 1.0,
            "training.optimizer.warmup": 0,
            "training.optimizer.weight_decay": 0.0,
        }
    )
    gradient = direction(one)
    report = one.step({"generator": gradient})
    assert report.grad_norm == pytest.approx(float(gradient.norm()))
    assert float(report.delta.norm()) == pytest.approx(1.0, rel=1e-5)


def test_restored_optimizer_continues_bit_equal():
    straight, broken = optimizer(), optimizer()
    for seed in range(3):
        for one in (straight, broken):
            one.remember({"generator": direction(one, seed)})
            one.step({"generator": direction(one, seed)})
            one.ticks += 1
    fresh = optimizer()
    fresh.adapter.theta.copy_(broken.adapter.theta)
    fresh.restore({k: v.clone() for k, v in broken.state().items()})
    for seed in range(3, 6):
        for one in (straight, fresh):
            one.remember({"generator": direction(one, seed)})
            one.step({"generator": direction(one, seed)})
            one.ticks += 1
    assert torch.equal(straight.adapter.theta, fresh.adapter.theta)
    assert torch.equal(straight.ema["generator"], fresh.ema["generator"])


def test_damping_shortens_a_persistent_push_but_never_stops_it():
    settings = {"training.damping.strength": 0.3, "training.optimizer.warmup": 0}
    damped, plain = optimizer(settings), optimizer({"training.optimizer.warmup": 0})
    gradient = direction(damped)
    lengths = []
    for _ in range(50):
        for one in (damped, plain):
            one.remember({"generator": gradient})
        lengths.append(
            [float(one.step({"generator": gradient}).delta.norm()) for one in (damped, plain)]
        )
    assert lengths[-1][0] == pytest.approx(0.7 * lengths[-1][1], rel=0.05)
    assert all(d > 0.5 * p for d, p in lengths)


def test_damping_acts_once_on_plain_gradient_descent():
    plain = {"kind": "sgd", "lr": 0.1, "warmup": 0, "clip_norm": 1e9, "weight_decay": 0.0}
    one = optimizer({"training.optimizer": plain, "training.damping.strength": 0.3})
    gradient = direction(one)
    before = one.adapter.theta.clone()
    one.remember({"generator": gradient})
    one.step({"generator": gradient})
    assert torch.allclose(before - one.adapter.theta, 0.07 * gradient, atol=1e-6)


def test_damping_one_of_two_opposed_roles_never_lengthens_a_step():
    one = optimizer({"training.damping.strength": 0.3, "training.optimizer.warmup": 0})
    plain = optimizer({"training.optimizer.warmup": 0})
    gradient = direction(one)
    # The evaluator turns round, so that only the generator is damped; together they get longer.
    for evaluator in (1.0, -1.2):
        roles = {"generator": gradient, "evaluator": evaluator * gradient}
        steps = []
        for optimiser in (one, plain):
            optimiser.remember(roles)
            steps.append(float(optimiser.step(roles).delta.norm()))
    assert steps[0] <= steps[1] * 1.05


def test_a_first_gradient_is_remembered_before_it_is_damped():
    one = optimizer({"training.damping.strength": 0.3})
    assert one.remember({"generator": direction(one)})["generator"] != 0
    assert torch.equal(one.ema["generator"], direction(one))
