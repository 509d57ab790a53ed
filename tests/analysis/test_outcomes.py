import numpy as np
import pandas as pd
import pytest

from rolewise.analysis.outcomes import (
    choose_checkpoints,
    format_part,
    gain,
    mark_steps,
    outcomes,
)
from rolewise.analysis.statistics import Interval
from rolewise.analysis.summarise import collapses, share
from rolewise.errors import DataError


def evaluations(curve: dict[int, list[int]], parsable: dict[int, list[int]] | None = None):
    """Rows of four problems, `select` and `report` alternating; `curve` maps step to outcomes."""
    rows = []
    for step, solved in curve.items():
        for i, correct in enumerate(solved):
            ok = (parsable or {}).get(step, [1] * len(solved))[i]
            rows.append((step, f"p{i}", ("select", "report")[i % 2], 0, bool(correct), bool(ok)))
    columns = ["step", "problem", "split", "sample", "correct", "format_ok"]
    return pd.DataFrame(rows, columns=columns).assign(reward=1.0)


def test_the_best_checkpoint_is_chosen_on_select_alone_and_never_untrained():
    found = outcomes(
        evaluations(
            {
                0: [1, 1, 1, 1],
                10: [0, 1, 0, 1],
                20: [1, 0, 0, 0],
                30: [1, 0, 0, 0],
                40: [0, 1, 0, 1],
            }
        )
    )
    assert choose_checkpoints(found) == {"early": 10, "best": 20, "terminal": 40}


def test_early_is_nearest_the_midpoint_of_the_first_checkpoint_and_the_best():
    curve = {step: [0, 0] for step in range(10, 100, 10)} | {90: [1, 0]}
    assert choose_checkpoints(outcomes(evaluations(curve)))["early"] == 50
    curve = {10: [0, 0], 20: [0, 0], 30: [0, 0], 40: [1, 0]}
    assert choose_checkpoints(outcomes(evaluations(curve)))["early"] == 20


def test_checkpoints_at_one_step_share_a_row_name():
    marks = {"early": 10, "best": 10, "terminal": 30}
    assert mark_steps(marks) == {10: "early+best", 30: "terminal"}


def test_samples_of_a_problem_are_averaged_first():
    rows = evaluations({0: [1, 0]})
    more = pd.concat([rows, rows.assign(sample=1, correct=False)])
    assert outcomes(more).of("accuracy", 0, "all").tolist() == [0.5, 0]


def test_a_checkpoint_that_lacks_a_problem_is_an_error():
    rows = evaluations({0: [1, 0], 10: [1, 0]})
    with pytest.raises(DataError, match="step 10 has no evaluation of problem p1"):
        outcomes(rows.iloc[:-1])
    with pytest.raises(DataError, match="no evaluation rows"):
        outcomes(rows.iloc[:0])


def test_a_gain_is_paired_and_needs_the_same_problems():
    a = outcomes(evaluations({0: [1, 1, 1, 0]}))
    b = outcomes(evaluations({0: [0, 1, 0, 0]}))
    assert gain((a, 0), (b, 0), "all").value == 0.5
    assert gain((a, 0), (b, 0), "report").value == 0
    c = outcomes(evaluations({0: [1, 1]}))
    with pytest.raises(DataError, match="different problems"):
        gain((a, 0), (c, 0), "all")


def test_the_format_part_is_what_newly_parsable_outputs_gain_at_the_bases_rate():
    base = outcomes(evaluations({0: [1, 0, 0, 0]}, {0: [1, 1, 0, 0]}))
    cell = outcomes(evaluations({9: [1, 1, 1, 0]}, {9: [1, 1, 1, 1]}))
    # parsable 0.5 -> 1.0, of the base's parsable outputs half are right
    part = format_part((cell, 9), (base, 0), "all")
    assert part.value == pytest.approx(0.25)
    whole = gain((cell, 9), (base, 0), "all")
    assert share(part, whole) == pytest.approx(0.5)
    assert share(part, Interval(-0.1, None, None, 4)) is None


def test_entropy_collapse_is_found_per_role():
    metrics = pd.DataFrame(
        {
            "step": [1, 2, 1, 2],
            "role": ["all", "all", "generator", "generator"],
            "entropy": [1.0, 0.5, 1.0, 0.05],
        }
    )
    found = collapses(metrics, 0.1)
    assert found["all"]["depth"] == 0.5 and not found["all"]["verdict"]
    assert found["generator"]["verdict"] and found["generator"]["step"] == 2
    empty = metrics.assign(entropy=np.nan)
    assert collapses(empty, 0.1) == {"all": None, "generator": None}
