"""Damaged or foreign files behind an evaluation: noticed, named, and mended where that is possible."""

import pandas as pd
import pytest

from rolewise.errors import DataError, StateError
from rolewise.evaluation.evaluate import best_step, evaluate
from rolewise.grid import parse_cell
from rolewise.policy.tokenizer import ChatTokenizer
from rolewise.runs.layout import layout
from tests.study import tiny_study

NAME = "Single-Base-0.1M-Math"


@pytest.fixture
def study(tmp_path):
    return tiny_study(tmp_path)


def run(study):
    return pd.read_parquet(evaluate(study, parse_cell(study, NAME), 0))


def state(study):
    return layout(study).evaluation_state(study, parse_cell(study, NAME), 0)


def test_problems_that_their_manifest_does_not_vouch_for_are_refused(study):
    file = layout(study).data("Math") / "validation.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:5]))
    with pytest.raises(DataError, match=r"validation\.jsonl: changed since manifest\.json"):
        run(study)
    file.unlink()
    with pytest.raises(DataError, match=r"validation\.jsonl: lost since manifest\.json"):
        run(study)


@pytest.mark.parametrize("name", ["evaluations", "calls"])
def test_a_damaged_shard_is_evaluated_again(study, name):
    whole = run(study)
    shard = state(study) / f"{name}_000000.parquet"
    content = shard.read_bytes()
    shard.write_bytes(content[: len(content) // 2])
    pd.testing.assert_frame_equal(run(study), whole)
    assert len(pd.read_parquet(shard))


def test_a_damaged_identity_is_told_from_another_configuration(study):
    run(study)
    (state(study) / "identity.json").write_text("{")
    with pytest.raises(StateError, match=r"identity\.json: damaged .* start afresh"):
        run(study)


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("chat_template.jinja", "{{", "unusable chat template"),
        ("generation_config.json", "", "generation_config.json: unreadable"),
        ("generation_config.json", "[]", "generation_config.json: unreadable"),
    ],
)
def test_a_broken_file_of_the_tokenizer_is_named(study, file, content, complaint):
    folder = layout(study).model("0.1M")
    (folder / file).write_text(content)
    with pytest.raises(DataError, match=complaint):
        ChatTokenizer(folder)


def test_a_damaged_accuracy_table_is_named(study):
    run(study)
    cell = parse_cell(study, NAME)
    (layout(study).cell(cell, 0) / "accuracy.csv").write_text("")
    with pytest.raises(DataError, match=r"accuracy\.csv: damaged"):
        best_step(study, cell, 0)
