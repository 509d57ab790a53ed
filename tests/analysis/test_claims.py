import itertools
import json
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

from rolewise.analysis import findings, mechanisms
from rolewise.analysis.claims import finished, judge, write_claims
from rolewise.analysis.evidence import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    Claim,
    Evidence,
    ends_of,
    judge_means,
    judge_share,
    spearman,
)
from rolewise.records import CELLS
from rolewise.report.guidance import guidance
from tests import configs

SCALES = ("0.1M", "0.3M", "0.8M")
SETTINGS = list(itertools.product(("Eval-Opt", "Voting", "Orch-Workers"), SCALES, ("Math", "Code")))


def row(metric, value, **where):
    blank = {
        "workflow": "Voting", "policy": "IP", "scale": "0.3M", "task": "Math", "variant": "",
        "seed": 0, "step": 40, "checkpoint": "terminal", "role": "all", "split": "report",
        "lo": value - 0.05, "hi": value + 0.05, "n": 200,
    }  # fmt: skip
    return blank | {"metric": metric, "value": value} | where


def every(metric, values, policies=("IP", "SP"), **where):
    """A row per setting and policy; `values` maps (index, policy) to a number."""
    return [
        row(metric, float(values(i, policy)), workflow=w, scale=s, task=t, policy=policy, **where)
        for i, (w, s, t) in enumerate(SETTINGS)
        for policy in policies
    ]


def evidence(*rows, seeds=(0,)):
    config = configs.config(scales=SCALES, settings={"seeds": list(seeds)})
    return Evidence(config, pd.DataFrame(list(rows), columns=list(CELLS)))


def thrice(*rows):
    """The same run under three seeds: a cell is judged over no fewer."""
    return [r | {"seed": seed} for r in rows for seed in range(3)]


def verdicts(finding, *rows, **options):
    return {claim.id: claim.verdict for claim in finding(evidence(*rows, **options))}


def gains(metric, value, p):
    return [
        *every(metric, lambda i, _: value, checkpoint="best"),
        *every(f"{metric}_p", lambda i, _: p, checkpoint="best"),
    ]


def test_without_data_no_claim_has_a_verdict():
    claims = judge(evidence())
    assert {claim.finding for claim in claims} == set(range(1, 11))
    assert {claim.verdict for claim in claims} == {UNDECIDED}
    assert all(claim.why.startswith("No data") and claim.n == 0 for claim in claims)


def test_gains_over_base_need_significance_after_correction():
    [claim] = findings.beats_base(evidence(*gains("gain_base", 0.2, 1e-4)))
    assert claim.verdict == SUPPORTED
    assert (claim.value, claim.n) == (1, 36)
    assert "By construction of this preset" in claim.why and "1 seed per cell" in claim.why
    # 0.01 alone is significant, 36 times is not
    assert verdicts(findings.beats_base, *gains("gain_base", 0.2, 0.01)) == {"1a": UNDECIDED}
    assert verdicts(findings.beats_base, *gains("gain_base", -0.2, 1e-4)) == {"1a": CONTRADICTED}


def test_what_holds_by_construction_is_marked_and_advises_nothing():
    claims = judge(evidence(*gains("gain_base", 0.2, 1e-4), *gains("gain_sa", 0.2, 1e-9)))
    assert {claim.id for claim in claims if claim.by_construction} == {"1a"}
    ids = [a.claim["id"] for of in guidance([asdict(c) for c in claims]).values() for a in of]
    assert ids == ["1b"]


def test_matching_sa_needs_the_interval_within_the_margin():
    narrow = {"lo": -0.02, "hi": 0.02}
    rows = [r | narrow for r in gains("gain_sa", 0.0, 1.0)]
    assert verdicts(findings.matches_single_agent, *rows) == {"1b": SUPPORTED}
    wide = {"lo": -0.2, "hi": 0.2}
    rows = [r | wide for r in gains("gain_sa", 0.0, 1.0)]
    assert verdicts(findings.matches_single_agent, *rows) == {"1b": UNDECIDED}
    rows = [r | {"lo": -0.3, "hi": -0.1} for r in gains("gain_sa", -0.2, 1e-5)]
    assert verdicts(findings.matches_single_agent, *rows) == {"1b": CONTRADICTED}


def test_three_seeds_give_a_t_interval_over_seeds():
    rows = [row("gain_base", v, seed=s, checkpoint="best") for s, v in enumerate((0.1, 0.2, 0.3))]
    found = evidence(*rows, seeds=(0, 1, 2)).per_cell("gain_base", "best", "report")
    assert found.value.item() == pytest.approx(0.2)
    # t(0.975, 2) = 4.3027, standard error 0.1 / sqrt(3)
    assert found.lo.item() == pytest.approx(0.2 - 4.30265 * 0.1 / 3**0.5, abs=1e-4)
    two = evidence(*rows[:2], seeds=(0, 1)).per_cell("gain_base", "best", "report")
    assert (two.lo.item(), two.hi.item()) == pytest.approx((0.05, 0.25))


def test_joint_dependence_needs_settings_that_differ_beyond_sampling_error():
    def varied(i, policy):
        return 0.02 * i + 0.001 * (policy == "IP")

    rows = every("gain_base", varied, checkpoint="best")
    assert verdicts(findings.depends_jointly, *rows)["2a"] == SUPPORTED
    rows = every("gain_base", lambda i, p: 0.2 + 1e-3 * (i % 2), checkpoint="best")
    assert verdicts(findings.depends_jointly, *rows)["2a"] == UNDECIDED
    rows = [r | {"lo": r["value"] - 0.01, "hi": r["value"] + 0.01} for r in
            every("gain_base", lambda i, p: 0.3 * (p == "IP") + 0.01 * (i % 5), checkpoint="best")]  # fmt: skip
    assert verdicts(findings.depends_jointly, *rows)["2a"] == CONTRADICTED


def test_rankings_change_only_when_an_order_clearly_reverses():
    def reversed_in_code(i, _):
        workflow, _, task = SETTINGS[i]
        return {"Eval-Opt": 0.1, "Voting": 0.3}.get(workflow, 0.2) * (1 if task == "Math" else -1)

    def judged(rows):
        claims = {claim.id: claim for claim in findings.depends_jointly(evidence(*rows))}
        return claims["2b"].verdict, claims["2b"].value, claims["2b"].lo

    # Eval-Opt and Voting: 0.2 one way, 0.2 the other, with intervals of 0.05 each
    rows = every("gain_base", reversed_in_code, checkpoint="best")
    assert judged(thrice(*rows)) == (SUPPORTED, pytest.approx(0.2), pytest.approx(0.1))
    assert judged(rows)[0] == UNDECIDED
    rows = every("gain_base", lambda i, _: i // 6 * 0.2, checkpoint="best")
    assert judged(thrice(*rows)) == (UNDECIDED, pytest.approx(-0.2), pytest.approx(-0.3))


def peaks_and_ends(peak, end):
    return [
        *every("ip_minus_sp", peak, policies=("IP",), checkpoint="best"),
        *every("ip_minus_sp", end, policies=("IP",), checkpoint="terminal"),
    ]


def test_higher_ip_peaks_that_shrink_support_finding_3():
    rows = thrice(*peaks_and_ends(lambda i, _: 0.1, lambda i, _: -0.01 * (i % 3)))
    assert verdicts(findings.isolated_peaks_higher, *rows) == {
        "3a": SUPPORTED, "3b": SUPPORTED, "3c": SUPPORTED,
    }  # fmt: skip
    rows = thrice(*peaks_and_ends(lambda i, _: -0.1, lambda i, _: 0.01 * (i % 3)))
    assert verdicts(findings.isolated_peaks_higher, *rows) == {
        "3a": CONTRADICTED, "3b": CONTRADICTED, "3c": CONTRADICTED,
    }  # fmt: skip
    rows = peaks_and_ends(lambda i, _: 0.1 * (-1) ** i, lambda i, _: 0.1 * (-1) ** (i // 2))
    assert verdicts(findings.isolated_peaks_higher, *rows)["3a"] == UNDECIDED


def test_cliff_rates_are_compared_on_matched_pairs():
    rows = every("cliff", lambda i, p: p == "IP" and i < 8)
    [claim] = findings.isolated_falls(evidence(*rows))
    assert claim.verdict == SUPPORTED and claim.value == pytest.approx(8 / 18)
    # 3 against 0 discordant pairs: p = 0.25
    rows = every("cliff", lambda i, p: p == "IP" and i < 3)
    assert verdicts(findings.isolated_falls, *rows) == {"4": UNDECIDED}


def test_amplitudes_are_compared_as_ratios_and_corrected_together():
    def amplitude(i, policy):
        return (2 if policy == "IP" else 1) * (1 + 0.01 * i * (policy == "SP"))

    rows = [
        *every("ratio_update_max_max", amplitude, split="train", checkpoint=""),
        *every("grad_norm_max", lambda i, p: 1 + 0.1 * ((i + (p == "IP")) % 2), split="train"),
    ]
    claims = {claim.id: claim for claim in findings.isolated_swings(evidence(*rows))}
    assert claims["5a"].verdict == SUPPORTED
    expected = np.mean([np.log(2 / (1 + 0.01 * i)) for i in range(18)])
    assert claims["5a"].value == pytest.approx(expected)
    assert claims["5b"].verdict == UNDECIDED
    assert claims["5c"].why.startswith("No data")


ORCH_SP = {"workflow": "Orch-Workers", "policy": "SP", "scale": "0.8M"}


@pytest.mark.parametrize(
    ("value", "lo", "hi", "verdict"),
    [
        (0.1, 0.05, 0.15, SUPPORTED),
        (0.1, -0.01, 0.2, UNDECIDED),
        (0.01, -0.02, 0.04, CONTRADICTED),
        (0.02, -0.02, 0.06, UNDECIDED),
    ],
)
def test_a_named_cliff_is_judged_by_its_definition(value, lo, hi, verdict):
    fall = row("cliff_drop", value, lo=lo, hi=hi, **ORCH_SP)
    assert verdicts(mechanisms.shared_fails_elsewhere, *thrice(fall))["6a"] == verdict
    assert verdicts(mechanisms.shared_fails_elsewhere, fall)["6a"] == UNDECIDED


def test_a_claim_on_a_named_cell_says_which_miniature_was_judged_and_what_its_run_shows():
    fall = row("cliff_drop", 0.01, lo=-0.02, hi=0.04, **ORCH_SP)
    claim = next(claim for claim in judge(evidence(fall)) if claim.id == "6a")
    assert claim.statement == "Orch-Workers-SP-4B-Math falls off a late cliff."
    assert claim.judged_on == "Orch-Workers-SP-0.8M-Math (0.8M stands for 4B)"
    assert claim.why.startswith(f"Judged on {claim.judged_on}.")
    assert "speaks against it" in claim.why and claim.verdict == UNDECIDED


def test_the_studys_sentence_does_not_change_with_the_preset():
    rows = peaks_and_ends(lambda i, _: 0.1, lambda i, _: 0.0)
    said = []
    for scale in ("0.6B", "1.7B"):
        found = evidence(*rows)
        paper = found.config.paper.model_copy(update={"dynamics_scale": scale})
        found.config = found.config.model_copy(update={"paper": paper})
        said.append([(claim.statement, claim.judged_on) for claim in judge(found)])
    assert said[0] == said[1]
    assert any(
        words.startswith("1.7B Math") and "0.3M stands for 1.7B" in on for words, on in said[0]
    )


def test_no_interval_no_verdict():
    found = Claim("x", 1, "It is so.", "a count", 3.0, None, None, 3, SUPPORTED, "Three.")
    assert finished(found).verdict == UNDECIDED
    assert finished(replace(found, lo=1.0, hi=5.0)).verdict == SUPPORTED


def test_a_verbose_aggregator_needs_drift_and_held_accuracy():
    voting = {"policy": "SP", "scale": "0.8M"}
    held = row("cliff_drop", 0.0, lo=-0.02, hi=0.02, **voting)
    before = row("terse", 0.9, scale="0.8M", policy="Base", checkpoint="base", role="aggregator",
                 split="all")  # fmt: skip

    def after(value):
        return row("terse", value, role="aggregator", split="all", **voting)

    def judged(*rows):
        return verdicts(mechanisms.shared_fails_elsewhere, *thrice(*rows))["6b"]

    assert judged(held, before, after(0.4)) == SUPPORTED
    assert judged(held, before, after(0.95)) == CONTRADICTED
    fell = row("cliff_drop", 0.2, lo=0.1, hi=0.3, **voting)
    assert judged(fell, before, after(0.4)) == CONTRADICTED
    assert judged(held, before) == UNDECIDED


def course(metric, role, values, **where):
    return [
        row(metric, v, role=role, step=i, split="train", checkpoint="", lo=None, hi=None, **where)
        for i, v in enumerate(values, 1)
    ]


def drift(generator, aggregator=(1.0,) * 8):
    return [
        r
        for role, values in (("generator", generator), ("aggregator", aggregator))
        for metric in ("chi2_update", "perplexity")
        for r in course(metric, role, values)
    ]


def test_amplification_needs_drift_in_the_repeated_role_alone_and_a_cliff():
    climb = [1, 1, 1, 1, 1, 2, 3, 4]
    fell = row("cliff_drop", 0.2, lo=0.1, hi=0.3)

    def runs(rows):
        """Three seeds whose last quarters are 1, 1.1 and 1.2 times as high."""
        late = {"chi2_update", "perplexity"}
        return [
            r | {"value": r["value"] * (1 + r["seed"] / 10 * (r["step"] in (7, 8)))}
            if r["metric"] in late and r["role"] == "generator"
            else r
            for r in thrice(*rows)
        ]

    def judged(*rows):
        return {c.id: c for c in mechanisms.amplification(evidence(*rows))}["7a"]

    found = judged(*runs([*drift(climb), fell]))
    assert found.verdict == SUPPORTED and found.n == 3
    assert found.value == pytest.approx(3.5 * (1.1 * 1.2) ** (1 / 3)) and found.lo < found.value
    assert judged(*runs([*drift(climb, climb), fell])).verdict == UNDECIDED
    held = row("cliff_drop", 0.0, lo=-0.02, hi=0.02)
    assert judged(*runs([*drift(climb), held])).verdict == CONTRADICTED
    assert judged(*runs([*drift([2, 2, 1, 1, 1, 1, 1, 1]), fell])).verdict == CONTRADICTED
    one = judged(*drift(climb), fell)
    assert one.verdict == UNDECIDED and one.lo is None and one.value == pytest.approx(3.5)


def test_a_chi2_estimated_below_zero_has_no_growth_factor():
    rows = [r | {"value": -r["value"]} if r["role"] == "aggregator" and r["step"] > 6
            and r["metric"] == "chi2_update" else r for r in drift([1.0] * 8)]  # fmt: skip
    fell = row("cliff_drop", 0.2, lo=0.1, hi=0.3)
    claim = {c.id: c for c in mechanisms.amplification(evidence(*rows, fell))}["7a"]
    assert "aggregator no factor, x1.00" in claim.why and "x-" not in claim.why


def test_coherence_is_held_against_orthogonal_slots():
    def judged(value, **other):
        metrics = {"slots": [2, 4], "coherence_within": [0.5, 0.3], "coherence_null_hi": [0.4] * 2}
        settings = itertools.product(("Voting", "Orch-Workers"), SCALES)
        rows = [
            r
            for i, (workflow, scale) in enumerate(settings)
            for metric, values in ({"coherence": [value + 0.01 * i] * 2} | metrics | other).items()
            for r in course(metric, "x", values, workflow=workflow, scale=scale)
        ]
        return {c.id: c for c in mechanisms.amplification(evidence(*rows))}["7c"]

    found = judged(0.5)
    units = found.n
    assert found.verdict == SUPPORTED and found.lo > 0
    assert found.value == pytest.approx(0.125 + 0.01 * (units - 1) / 2)
    assert f"in {units} of {2 * units} ledgers" in found.why
    assert judged(0.2).verdict == CONTRADICTED
    assert judged(0.375 - 0.01 * (units - 1) / 2).verdict == UNDECIDED
    older = judged(0.5, coherence_within=[])
    assert older.verdict == SUPPORTED and "in 0 of 0 ledgers" in older.why
    assert judged(0.5, slots=[]).value is None


@pytest.mark.parametrize(
    ("value", "lo", "hi", "verdict"),
    [(0.8, 0.6, 0.9, SUPPORTED), (0.1, 0.0, 0.3, CONTRADICTED), (0.4, 0.1, 0.7, UNDECIDED)],
)
def test_a_named_capture_is_judged_by_its_definition(value, lo, hi, verdict):
    score = row("capture_by_generator", value, lo=lo, hi=hi, workflow="Eval-Opt", policy="SP",
                scale="0.1M", task="Code", role="evaluator", split="all")  # fmt: skip
    assert verdicts(mechanisms.role_capture, *thrice(score))["8a"] == verdict
    assert verdicts(mechanisms.role_capture, score)["8a"] == UNDECIDED


def test_captors_with_more_gradient_mass_show_in_the_rank_correlation():
    rows = []
    for i, (workflow, scale, task) in enumerate(SETTINGS):
        where = {"workflow": workflow, "scale": scale, "task": task, "policy": "SP"}
        mass = 0.5 + 0.02 * i
        rows += course("role_grad_mass", "generator", [mass], **where)
        rows += course("role_grad_mass", "evaluator", [1 - mass], **where)
        score = 0.04 * i + 0.3 * (i % 2)
        rows.append(row("capture_by_generator", score, role="evaluator", split="all", **where))
    assert verdicts(mechanisms.role_capture, *rows)["8f"] == SUPPORTED


def test_narrowing_is_a_mean_over_cells_per_policy():
    def change(i, policy):
        return 0.2 + 0.01 * i if policy == "IP" else 0.1 * (-1) ** i

    rows = every("wrong_agreement_gain", change, role="generator", split="all")
    assert verdicts(mechanisms.slots_narrow, *rows) == {"9a": SUPPORTED, "9b": UNDECIDED}


def test_choice_depends_on_the_cell_when_each_policy_wins_somewhere():
    def rows(values):
        return [
            *every("ip_minus_sp", values, policies=("IP",)),
            *every("ip_minus_sp_p", lambda i, _: 1e-5, policies=("IP",)),
        ]

    split = rows(lambda i, _: 0.1 * (-1) ** i)
    assert verdicts(mechanisms.choose_and_monitor, *thrice(*split))["10a"] == SUPPORTED
    # the policies of one pair differ by their seed, too
    assert verdicts(mechanisms.choose_and_monitor, *split)["10a"] == UNDECIDED
    one = rows(lambda i, _: 0.1)
    assert verdicts(mechanisms.choose_and_monitor, *thrice(*one))["10a"] == CONTRADICTED


def test_most_means_that_the_interval_is_above_a_half():
    assert judge_share(30, 0, 36)[1] == SUPPORTED
    assert judge_share(20, 0, 36)[1] == UNDECIDED
    assert judge_share(2, 30, 36)[1] == CONTRADICTED
    assert judge_share(2, 10, 36)[1] == UNDECIDED


def test_means_are_corrected_over_their_family():
    rng = np.random.default_rng(0)
    clear, none = rng.normal(1, 0.1, 10), rng.normal(0, 1, 10)
    assert judge_means([clear, none, -clear, clear[:2], np.empty(0)]) == [
        SUPPORTED, UNDECIDED, CONTRADICTED, UNDECIDED, UNDECIDED,
    ]  # fmt: skip


def test_equal_values_have_a_mean_but_no_interval():
    assert ends_of(np.zeros(6)) == (0, None, None)
    mean, lo, hi = ends_of(np.array([0.1, 0.2, 0.3]))
    assert lo < mean < hi


def test_rank_correlation_has_a_fisher_interval():
    x = np.arange(20.0)
    found = spearman(x, np.where(x % 7 == 0, -x, x))
    assert found.lo < found.value < found.hi
    assert spearman(x, np.ones(20)).value is None
    assert spearman(x[:2], x[:2]).value is None


def test_the_ledger_is_written_as_a_list_and_as_a_page(study):
    config, _ = study
    paths = write_claims(config)
    claims = json.loads(paths[0].read_text())
    assert [path.name for path in paths] == ["claims.json", "claims.md"]
    assert {claim["finding"] for claim in claims} == set(range(1, 11))
    page = paths[1].read_text()
    assert "miniatures" in page and "80 % power: one exact McNemar test" in page
    assert all(f"**{claim['id']}**" in page for claim in claims)
    captured = next(claim for claim in claims if claim["id"] == "8a")
    assert captured["verdict"] == UNDECIDED and "speaks for the statement" in captured["why"]
    assert all(claim["verdict"] == UNDECIDED for claim in claims if claim["lo"] is None)


def test_a_statistic_that_the_data_leave_undefined_is_published_without_value():
    claim = Claim("2a", 2, "s", "t", float("nan"), None, None, 3, SUPPORTED, "why")
    published = finished(claim)
    assert published.value is None and published.verdict == UNDECIDED
    json.dumps(asdict(published), allow_nan=False)


def test_only_a_decided_claim_holds_by_construction():
    claim = Claim("1a", 1, "s", "t", 0.9, 0.8, 1.0, 9, SUPPORTED, "why", by_construction=True)
    assert finished(claim).by_construction
    assert not finished(replace(claim, verdict=UNDECIDED)).by_construction
