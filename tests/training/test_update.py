"""The update: role gradients are exact, sums are sums, switches do what they say."""

import copy
from collections import defaultdict

import pytest
import torch

from rolewise.errors import TrainingError
from rolewise.training import update
from rolewise.training.update import Updater, by_role
from tests.training.helpers import ROLES, gradient_of, make_config, make_policy, make_rows


class Recorder:
    """Keeps every gradient that reaches an optimiser."""

    def __init__(self, updater: Updater):
        self.seen: list[tuple[str, dict[str, torch.Tensor]]] = []
        for name, optimizer in updater.optimizers.items():
            step = optimizer.step

            def record(gradients, name=name, step=step):
                self.seen.append((name, {r: g.clone() for r, g in gradients.items()}))
                return step(gradients)

            optimizer.step = record


def run(routing, settings=None, rows=None, *, ledger=False, step=1, policy=None):
    policy = policy or make_policy(routing)
    rows = make_rows(policy, routing) if rows is None else rows
    updater = Updater(policy, make_config(settings), seed=0)
    recorder = Recorder(updater)
    report = updater.update(step, rows, ledger=ledger, probe=False)
    return policy, report, recorder.seen


def relative(a, b):
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize("routing", ["SP", "IP"])
@pytest.mark.parametrize("tokens", [40, 8192])
@pytest.mark.parametrize("ledger", [False, True])
def test_role_gradients_equal_separate_backward_passes_and_sum_to_the_total(
    routing, tokens, ledger
):
    policy = make_policy(routing)
    rows = make_rows(policy, routing)
    untouched = copy.deepcopy(policy.adapters)
    _, _, seen = run(
        routing, {"training.update.microbatch_tokens": tokens}, rows, ledger=ledger, policy=policy
    )
    policy.adapters.clear()
    policy.adapters.update(untouched)
    for name, gradients in seen:
        own = [row for row in rows if row.adapter == name]
        for role, gradient in gradients.items():
            expected = gradient_of(policy, [r for r in own if r.role == role], name, len(own))
            assert relative(gradient, expected) < 1e-5
        whole = gradient_of(policy, own, name, len(own))
        assert relative(sum(gradients.values()), whole) < 1e-5


def test_shared_policy_with_one_role_is_the_single_agent():
    results = []
    for routing in ("SP", "SA"):
        policy = make_policy(routing, ROLES[:1])
        rows = make_rows(policy, routing, roles=ROLES[:1], slots=1)
        policy, report, _ = run(routing, rows=rows, policy=policy)
        (own,) = policy.adapters.values()
        results.append((own.theta, report.after))
    assert torch.equal(results[0][0], results[1][0])
    assert all((a == b).all() for a, b in zip(results[0][1], results[1][1], strict=True))


@pytest.mark.parametrize(("routing", "ticks"), [("SA", 1), ("SP", 2), ("IP", 2)])
def test_the_released_schedule_ticks_once_for_every_role_that_was_updated(routing, ticks):
    roles = ROLES[:1] if routing == "SA" else ROLES[:2]
    policy = make_policy(routing, roles)
    settings = {"training.optimizer.tick": "role_update", "training.update.minibatch": 4}
    updater = Updater(policy, make_config(settings), seed=0)
    rows = make_rows(policy, routing, roles=roles)
    updater.update(1, rows, ledger=False, probe=False)
    assert {optimizer.ticks for optimizer in updater.optimizers.values()} == {ticks}


def test_isolated_roles_update_only_their_own_adapter():
    policy = make_policy("IP")
    rows = [row for row in make_rows(policy, "IP") if row.role == "generator"]
    before = policy.adapters["aggregator"].theta.clone()
    policy, _, _ = run("IP", rows=rows, policy=policy)
    assert torch.equal(policy.adapters["aggregator"].theta, before)


def test_the_order_of_rows_does_not_matter():
    thetas = []
    for order in (1, -1):
        policy = make_policy("SP")
        rows = make_rows(policy, "SP")[::order]
        policy, _, _ = run("SP", {"training.optimizer.kind": "sgd"}, rows, policy=policy)
        thetas.append(policy.adapters["shared"].theta)
    assert torch.allclose(*thetas, atol=1e-7)


def test_rows_without_signal_change_nothing_but_the_denominator():
    policy = make_policy("SP")
    rows = make_rows(policy, "SP")
    for row in rows[: len(rows) // 2]:
        row.advantage = 0.0
    _, _, seen = run("SP", rows=rows, policy=policy)
    fresh = make_policy("SP")
    expected = gradient_of(fresh, rows[len(rows) // 2 :], "shared", len(rows))
    assert relative(sum(seen[0][1].values()), expected) < 1e-5


def test_no_signal_means_no_step_and_no_decay():
    policy = make_policy("SP")
    rows = make_rows(policy, "SP")
    for row in rows:
        row.advantage = 0.0
    before = policy.adapters["shared"].theta.clone()
    _, report, seen = run("SP", rows=rows, policy=policy)
    assert seen == [] and report.skipped_steps == 1
    assert torch.equal(policy.adapters["shared"].theta, before)


def test_rows_without_signal_still_carry_an_anchor():
    policy = make_policy("SP")
    rows = make_rows(policy, "SP")
    for row in rows:
        row.advantage = 0.0
    _, _, seen = run("SP", {"training.loss.kl_anchor": {"generator": 0.1}}, rows, policy=policy)
    ((_, gradients),) = seen
    assert set(gradients) == {"generator"} and float(gradients["generator"].norm()) > 0


@pytest.mark.parametrize(("denominator", "factor"), [("rows", 1.0), ("episodes", 3.0)])
def test_equal_slots_add_up_only_under_the_episode_denominator(denominator, factor):
    norms = []
    for slots in (1, 3):
        policy = make_policy("SA", ROLES[:1])
        one = make_rows(policy, "SA", roles=ROLES[:1], slots=1)
        rows = []
        for slot in range(slots):
            rows += [copy.copy(row) for row in one]
            for row in rows[-len(one) :]:
                row.slot = slot
        settings = {"training.loss.denominator": denominator}
        _, _, seen = run("SA", settings, rows, policy=policy)
        norms.append(float(sum(seen[0][1].values()).norm()))
    assert norms[1] / norms[0] == pytest.approx(factor, rel=1e-4)


def test_norm_weights_give_every_role_the_same_gradient_mass():
    _, report, seen = run("SP", {"training.loss.role_weights": "norm"})
    norms = [float(g.norm()) for g in seen[0][1].values()]
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)
    assert report.roles["generator"].share.mass == pytest.approx(0.5, rel=1e-4)


def test_token_weights_give_every_role_the_same_number_of_tokens():
    policy = make_policy("SP")
    rows = make_rows(policy, "SP")
    _, _, seen = run("SP", {"training.loss.role_weights": "token"}, rows, policy=policy)
    fresh = make_policy("SP")
    tokens = {role: sum(r.tokens for r in rows if r.role == role) for role in ROLES}
    for role, gradient in seen[0][1].items():
        own = [r for r in rows if r.role == role]
        expected = gradient_of(fresh, own, "shared", len(rows))
        expected = expected * (sum(tokens.values()) / 2 / tokens[role])
        assert relative(gradient, expected) < 1e-5


def test_one_per_adapter_is_one_step_and_natural_is_one_per_minibatch():
    for steps, expected in (("one_per_adapter", 1), ("natural", 4)):
        settings = {"training.update.steps": steps, "training.update.minibatch": 8}
        _, report, seen = run("SP", settings)
        assert len(seen) == expected
        assert report.roles["generator"].optimizer_steps == expected


def test_frozen_roles_send_no_gradient():
    _, report, seen = run("SP", {"training.train_roles": ["aggregator"]})
    assert all(set(gradients) == {"aggregator"} for _, gradients in seen)
    assert report.roles["generator"].optimizer_steps == 0


def test_slots_and_turns_of_a_ledger_step_sum_to_their_role():
    _, report, _ = run("SP", ledger=True)
    values = {(r["level"], r["a"], r["quantity"]): r["value"] for r in report.gradients}
    shares = [v for (level, _, q), v in values.items() if (level, q) == ("role", "share")]
    assert sum(shares) == pytest.approx(1, abs=1e-5)
    slots = [v for (level, _, q), v in values.items() if (level, q) == ("slot", "share")]
    assert len(slots) == 3 and sum(slots) == pytest.approx(1, abs=1e-5)
    found = report.roles["generator"].coherence
    assert found.slots == 3 and 0 < found.value <= 1 and 0 < found.within <= 1


def test_a_ledger_step_trains_like_any_other_step():
    thetas = [run("SP", ledger=ledger)[0].adapters["shared"].theta for ledger in (False, True)]
    assert torch.allclose(*thetas, atol=1e-5)


def test_a_gradient_that_is_not_finite_stops_the_run():
    policy = make_policy("SP")
    rows = make_rows(policy, "SP")
    rows[0].advantage = float("inf")
    with pytest.raises(TrainingError, match="not finite"):
        run("SP", rows=rows, policy=policy)


def test_rows_with_unknown_reward_are_left_out():
    policy = make_policy("SP")
    rows = make_rows(policy, "SP")
    for row in rows[4:]:
        row.reward = float("nan")
    _, _, seen = run("SP", rows=rows, policy=policy)
    fresh = make_policy("SP")
    assert relative(sum(seen[0][1].values()), gradient_of(fresh, rows[:4], "shared", 4)) < 1e-5


def test_update_lowers_the_loss_it_differentiates():
    policy = make_policy("SP")
    rows = make_rows(policy, "SP")
    _, report, _ = run("SP", {"training.optimizer.warmup": 0}, rows, policy=policy)
    gain = sum(
        row.advantage * float((after - row.old_logprobs_T).mean())
        for row, after in zip(rows, report.after, strict=True)
    )
    assert gain > 0


def test_off_switches_leave_training_bit_identical():
    plain = run("SP")[0].adapters["shared"].theta
    off = {
        "training.loss.kl_anchor": {"generator": 0.0},
        "training.damping.strength": 0.0,
        "training.loss.role_weights": "none",
        "training.loss.importance": "off",
        "training.train_roles": list(ROLES),
    }
    assert torch.equal(run("SP", off)[0].adapters["shared"].theta, plain)


def test_by_role_sums_parts():
    parts = {
        ("a", 0, 0, 0): torch.ones(2),
        ("a", 1, 0, 0): torch.ones(2),
        ("b", 0, 0, 0): torch.ones(2),
    }
    assert {k: v.tolist() for k, v in by_role(parts).items()} == {"a": [2, 2], "b": [1, 1]}


def test_clip_counts_and_ratios_cover_every_process(monkeypatch):
    roles = defaultdict(update.RoleUpdate)
    roles["generator"].clipped, roles["generator"].loss_tokens = 2, 10
    other = {"generator": (1, 30, 1.5), "aggregator": (0, 5, float("nan"))}
    monkeypatch.setattr(update.parallel, "collect", lambda own: [*own, other])
    update._merge_processes(roles)
    found = roles["generator"]
    assert (found.clipped, found.loss_tokens, found.ratio_max) == (3, 40, 1.5)
    assert roles["aggregator"].loss_tokens == 5
