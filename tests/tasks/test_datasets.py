import hashlib
import json
import time

import pytest

from rolewise.errors import ConfigError, DataError
from rolewise.models.vocabulary import save_vocabulary, train_vocabulary
from rolewise.runs.layout import layout
from rolewise.tasks.datasets import dapo_math, deepcoder, hub
from rolewise.tasks.datasets.check import check, histogram, limit_breaches, several_answers
from rolewise.tasks.datasets.hygiene import (
    assert_sound,
    distinct,
    normalise,
    without_overlap,
)
from rolewise.tasks.datasets.prepare import prepare
from rolewise.tasks.problem import Problem, Test, read_problems
from tests.configs import config


def math(number, prompt, answer="1"):
    return Problem(f"m{number}", "Math", prompt, answer=answer)


@pytest.fixture(autouse=True)
def own_hub_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hub-cache")


def write_jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def dapo_rows(count):
    return [
        {
            "prompt": f"What is {k} plus {k}?",
            "solution": str(2 * k),
            "reward_model": {"ground_truth": str(2 * k), "style": "rule"},
        }
        for k in range(count)
    ]


def dapo(path, tmp_path, **settings):
    spec = {"kind": "dapo_math", "repo": str(path), "subset": "en", "validation": 0.1} | settings
    return config(tmp_path, settings={"tasks.Math": spec})


def case(given, output):
    return {"input": given, "output": output, "type": "stdin_stdout", "fn_name": None}


def deepcoder_row(k, **changes):
    return {
        "problem": f"Print {k} times the input.",
        "tests": json.dumps([case(f"{x}\n", f"{k * x}\n") for x in (1, 2, 3)]),
        "solutions": [f"```python\nprint({k} * int(input()))\n```"],
    } | changes


def code(path, tmp_path, **settings):
    spec = {"kind": "deepcoder", "repo": str(path), "subset": "primeintellect", "validation": 2}
    return config(tmp_path, settings={"tasks.Code": spec | settings})


def test_questions_that_differ_in_case_blanks_and_marks_are_the_same():
    assert normalise("Find  x if 2x=6.") == normalise("find x if 2x = 6")


@pytest.mark.parametrize("other", ["1.5 apples", "1 5 apples", "-15 apples", "1+5 apples"])
def test_questions_with_other_numbers_or_signs_are_different(other):
    assert normalise("15 apples") != normalise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("5!", "5"), ("n!", "n"), ("(n+1)!", "(n+1)"), ("f'(x)", "f(x)"), ("a,b", "ab")],
)
def test_marks_that_belong_to_a_formula_make_another_question(one, other):
    assert normalise(f"What is {one}?") != normalise(f"What is {other}?")


@pytest.mark.parametrize(
    ("one", "other"),
    [("Find it!", "find it"), ("$x$, y", "x,y"), ("Don't.", "dont"), ('Say "no"!', "say no")],
)
def test_marks_of_sentences_do_not(one, other):
    assert normalise(one) == normalise(other)


def test_a_stdin_test_that_is_not_text_leaves_out_its_problem():
    for case in ({"input": ["1"], "output": "2"}, {"input": "1", "output": 2}):
        found = deepcoder.to_problem({"problem": "Q", "tests": [case]}, 1)
        assert found == "a test of stdin is not text"


def test_overlap_of_train_and_validation_is_found_after_normalisation():
    train = [math(1, "Find  x if 2x=6."), math(2, "Find y if 2y=6.")]
    kept, dropped = without_overlap(train, [math(3, "find x if 2x = 6")])
    assert [p.id for p in kept] == ["m2"]
    assert [d.id for d in dropped] == ["m1"]


def test_questions_with_two_truths_are_dropped_and_listed():
    kept, dropped = distinct([math(1, "Q", "5"), math(2, "Q", "7"), math(3, "R")])
    assert [p.id for p in kept] == ["m3"]
    assert [d.id for d in dropped] == ["m1", "m2"]


@pytest.mark.parametrize(
    ("one", "other"), [("5", "5.0"), ("1/2", r"\frac{1}{2}"), ("(1,2)", "(1, 2)"), ("x", "$x$")]
)
def test_two_spellings_of_a_truth_do_not_contradict(one, other):
    kept, dropped = distinct([math(1, "Q", one), math(2, "Q", other)])
    assert [p.answer for p in kept] == [one]
    assert [d.reason for d in dropped] == ["repeats m1"]
    row = {"prompt": "Q", "solution": one, "reward_model": {"ground_truth": other}}
    assert dapo_math.to_problem(row, 0).answer == one
    assert isinstance(dapo_math.to_problem(row | {"solution": "77"}, 0), str)


def test_repeated_questions_keep_their_first_row():
    kept, dropped = distinct([math(1, "Q"), math(2, "q.")])
    assert [p.id for p in kept] == ["m1"]
    assert [(d.id, d.reason) for d in dropped] == [("m2", "repeats m1")]


def test_programs_contradict_only_where_one_input_has_two_outputs():
    def program(name, output):
        return Problem(name, "Code", "Q", tests=(Test("1", output),))

    assert distinct([program("a", "1"), program("b", "2")])[0] == []
    assert len(distinct([program("a", "1"), program("b", "1")])[0]) == 1
    assert len(distinct([program("a", "1\n2"), program("b", "1\n2 \n")])[0]) == 1
    assert distinct([program("a", "1\n2"), program("b", "1 2")])[0] == []


def test_a_returned_text_is_another_with_one_blank_more():
    def call(name, output):
        return Problem(name, "Code", "Q", tests=(Test([1], output),), fn_name="f")

    assert distinct([call("a", "x"), call("b", "x ")])[0] == []
    assert len(distinct([call("a", "x"), call("b", "x")])[0]) == 1


def test_arguments_of_a_call_stand_in_lines_that_only_a_line_feed_ends():
    case = {"input": '"a\u2028b"\n[1]\r\n', "output": "2", "fn_name": "f", "type": "function_call"}
    problem = deepcoder.to_problem({"problem": "Q", "tests": [case]}, 1)
    assert problem.tests == (Test(["a\u2028b", [1]], 2),)


def test_prepared_problems_that_repeat_stop_the_run():
    with pytest.raises(DataError, match="occurs twice"):
        assert_sound([math(1, "Q")], [math(2, "q")], "tasks.Math")


@pytest.mark.parametrize("task", ("Math", "Code"))
def test_procedural_data_are_written_with_a_manifest_and_byte_identical_again(tmp_path, task):
    own = config(tmp_path)
    manifest = prepare(own, task, tmp_path / "a")
    prepare(own, task, tmp_path / "b")
    prepare(own, task, tmp_path / "b")
    for name in ("train.jsonl", "validation.jsonl", "manifest.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert manifest["counts"] == {"train": 64, "validation": 80}
    assert manifest == json.loads((tmp_path / "a" / "manifest.json").read_text())
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((tmp_path / "a" / name).read_bytes()).hexdigest() == digest
    assert len(read_problems(tmp_path / "a" / "validation.jsonl")) == 80


def test_a_generator_of_another_task_is_refused(tmp_path):
    own = config(tmp_path, settings={"tasks.Math.generator": "programs"})
    with pytest.raises(ConfigError, match="makes Code problems"):
        prepare(own, "Math", tmp_path)


def test_a_task_that_is_not_configured_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="'Chess'"):
        prepare(config(tmp_path), "Chess", tmp_path)


def test_dapo_math_splits_as_the_library_does_and_asserts_counts(tmp_path):
    from datasets import Dataset

    path = write_jsonl(tmp_path / "dapo.jsonl", dapo_rows(60))
    own = dapo(path, tmp_path, expect={"train": 54, "validation": 6})
    manifest = prepare(own, "Math", tmp_path / "out")
    assert manifest["counts"] == manifest["split"] == {"train": 54, "validation": 6}
    assert manifest["revision"].startswith("sha256:") and manifest["rows"] == 60
    wanted = Dataset.from_list(dapo_rows(60)).train_test_split(test_size=0.1, seed=42)
    for name, part in (("train", "train"), ("validation", "test")):
        found = read_problems(tmp_path / "out" / f"{name}.jsonl")
        assert {p.prompt for p in found} == set(wanted[part]["prompt"])


def test_dapo_math_with_other_counts_than_expected_stops(tmp_path):
    path = write_jsonl(tmp_path / "dapo.jsonl", dapo_rows(60))
    with pytest.raises(DataError, match="train: 54 instead of 12704"):
        prepare(dapo(path, tmp_path, expect={"train": 12704}), "Math", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_faulty_rows_of_dapo_math_are_dropped_and_listed(tmp_path):
    rows = dapo_rows(40)
    rows[3]["prompt"] = rows[4]["prompt"].upper()
    rows[5]["reward_model"]["ground_truth"] = "other"
    rows[6]["solution"] = ""
    rows[8]["prompt"] = rows[7]["prompt"]
    rows[8]["solution"] = rows[8]["reward_model"]["ground_truth"] = rows[7]["solution"]
    path = write_jsonl(tmp_path / "dapo.jsonl", rows)
    manifest = prepare(dapo(path, tmp_path), "Math", tmp_path / "out")
    reasons = {d["id"]: d["reason"] for d in manifest["dropped"]}
    contradicting = "the same question has another truth"
    assert reasons["dapo-00003"] == reasons["dapo-00004"] == contradicting
    assert "differ" in reasons["row 5"] and reasons["row 6"] == "no answer"
    assert ("dapo-00007" in reasons) != ("dapo-00008" in reasons)
    assert sum(manifest["counts"].values()) == 40 - len(reasons) == 35


def test_of_a_question_in_both_parts_the_training_row_goes(tmp_path):
    rows = [*dapo_rows(40), *dapo_rows(40)]
    path = write_jsonl(tmp_path / "dapo.jsonl", rows)
    manifest = prepare(dapo(path, tmp_path, validation=20), "Math", tmp_path / "out")
    train, validation = (
        {normalise(p.prompt) for p in read_problems(tmp_path / "out" / f"{name}.jsonl")}
        for name in ("train", "validation")
    )
    assert not train & validation and len(train | validation) == 40
    assert len(manifest["dropped"]) == 40


def test_deepcoder_is_shuffled_with_the_seed_and_its_first_problems_are_held_out(tmp_path):
    from datasets import Dataset

    rows = [deepcoder_row(k) for k in range(2, 12)]
    rows[4]["tests"] = "[]"
    path = write_jsonl(tmp_path / "code.jsonl", rows)
    manifest = prepare(code(path, tmp_path), "Code", tmp_path / "out")
    assert manifest["counts"] == {"train": 7, "validation": 2}
    assert manifest["dropped"] == [{"id": "row 4", "reason": "no tests"}]
    usable = [row for k, row in enumerate(rows) if k != 4]
    order = Dataset.from_list(usable).shuffle(seed=42)["problem"]
    found = [
        p.prompt
        for name in ("validation", "train")
        for p in read_problems(tmp_path / "out" / f"{name}.jsonl")
    ]
    assert found == list(order)


def test_deepcoder_from_a_folder_with_the_subset_inside(tmp_path):
    write_jsonl(
        tmp_path / "data" / "primeintellect" / "train.jsonl", [deepcoder_row(k) for k in (2, 3, 4)]
    )
    write_jsonl(tmp_path / "data" / "lcbv5" / "train.jsonl", [deepcoder_row(9)])
    manifest = prepare(code(tmp_path / "data", tmp_path), "Code", tmp_path / "out")
    assert manifest["counts"] == {"train": 1, "validation": 2}


def test_function_tests_become_arguments_and_result():
    calls = [
        {"input": [k, 1], "output": [k + 1], "type": "function_call", "fn_name": "add"}
        for k in (1, 2)
    ]
    problem = deepcoder.to_problem(deepcoder_row(1, tests=json.dumps(calls)), 0)
    assert problem.fn_name == "add"
    assert problem.tests == (Test([1, 1], 2), Test([2, 1], 3))


def test_results_that_are_not_all_lists_of_one_stay_lists():
    calls = [
        {"input": [k], "output": list(range(k)), "type": "function_call", "fn_name": "count"}
        for k in (1, 2)
    ]
    problem = deepcoder.to_problem(deepcoder_row(1, tests=json.dumps(calls)), 0)
    assert [test.output for test in problem.tests] == [[0], [0, 1]]


def test_text_arguments_hold_one_json_value_a_line():
    calls = [
        {"input": '[1, 2]\n"a"', "output": "true", "type": "functional", "fn_name": "f"},
        {"input": '[3]\n"b"', "output": "false", "type": "functional", "fn_name": "f"},
    ]
    problem = deepcoder.to_problem(deepcoder_row(1, tests=json.dumps(calls)), 0)
    assert problem.tests == (Test([[1, 2], "a"], True), Test([[3], "b"], False))


@pytest.mark.parametrize("tests", ["not json", "3", '[{"input": "1"}]', "[4]"])
def test_unreadable_tests_drop_the_row_with_a_reason(tests):
    assert "tests cannot be read" in deepcoder.to_problem(deepcoder_row(1, tests=tests), 0)


@pytest.mark.parametrize(("keep", "left"), [("tests", 2), ("problems", None)])
def test_tests_that_the_reference_fails_are_dropped(tmp_path, keep, left):
    wrong = [case("1\n", "5\n"), case("2\n", "10\n"), case("3\n", "99\n")]
    rows = [deepcoder_row(k) for k in (2, 3, 4)]
    rows.append(deepcoder_row(5, tests=json.dumps(wrong)))
    path = write_jsonl(tmp_path / "code.jsonl", rows)
    own = code(path, tmp_path, verify_references=keep, validation=2)
    manifest = prepare(own, "Code", tmp_path / "out")
    problems = {
        p.id: p
        for name in ("validation", "train")
        for p in read_problems(tmp_path / "out" / f"{name}.jsonl")
    }
    assert [d["id"] for d in manifest["dropped"]] == ["deepcoder-00003"]
    assert "fails 1 of 3" in manifest["dropped"][0]["reason"]
    assert len(problems) == (4 if left else 3)
    if left:
        assert len(problems["deepcoder-00003"].tests) == left
    assert len(problems["deepcoder-00000"].tests) == 3


def test_missing_columns_name_what_was_expected(tmp_path):
    path = write_jsonl(tmp_path / "dapo.jsonl", [{"question": "Q"}] * 20)
    with pytest.raises(DataError, match="expected prompt, solution"):
        prepare(dapo(path, tmp_path), "Math", tmp_path / "out")


def test_a_corrupt_local_file_is_named(tmp_path):
    path = tmp_path / "dapo.jsonl"
    path.write_text("{broken")
    with pytest.raises(DataError, match=r"dapo\.jsonl"):
        prepare(dapo(path, tmp_path), "Math", tmp_path / "out")


def test_a_local_file_of_another_format_is_refused(tmp_path):
    path = tmp_path / "dapo.xml"
    path.write_text("<x/>")
    with pytest.raises(DataError, match="unknown data format"):
        prepare(dapo(path, tmp_path), "Math", tmp_path / "out")


def test_offline_without_a_cache_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "none"))
    with pytest.raises(DataError, match="cannot be reached"):
        hub.resolve_revision("someone/something", "dataset", None)


def test_a_source_stays_pinned_until_another_revision_is_wanted(tmp_path, monkeypatch):
    newest = iter(["first", "second", "third"])
    monkeypatch.setattr(hub, "resolve_revision", lambda *_: next(newest))
    found = [
        hub.pinned_revision(repo, "dataset", wanted, tmp_path)
        for repo, wanted in (("a/b", None), ("a/b", None), ("a/b", "v2"), ("other/c", None))
    ]
    assert found == ["first", "first", "second", "third"]


def test_the_check_shows_counts_tests_and_lengths(tmp_path):
    own = config(tmp_path)
    prepare(own, "Code", layout(own).data("Code"))
    text = check(own, "Code")
    assert "train: 64 problems" in text and "validation: 80 problems" in text
    assert "hidden tests: 432 (median 3 a problem)" in text
    assert "words" in text and "#" in text


def test_the_check_lists_prompts_over_the_cap_of_each_workflow(tmp_path):
    own = config(tmp_path, settings={"caps.Math.prompt": {"default": 256, "Single": 3}})
    prepare(own, "Math", layout(own).data("Math"))
    texts = (p.prompt for p in read_problems(layout(own).data("Math") / "train.jsonl"))
    save_vocabulary(train_vocabulary(texts, 300), layout(own).model("0.1M"))
    text = check(own, "Math")
    assert "over the prompt cap of default (256): none" in text
    assert "over the prompt cap of Single (3): 144" in text


def test_histograms_count_every_length():
    lines = histogram([1, 1, 2, 9])
    assert sum(int(line.split()[1]) for line in lines) == 4


def test_tests_outside_the_stated_limits_are_flagged():
    tests = tuple(Test(f"{n}\n", "0") for n in (3, 50, 51))
    problem = Problem("c", "Code", "Read n with 1 <= n <= 50.", tests=tests)
    assert limit_breaches([problem]) == ["c: 51, stated 1 to 50"]


@pytest.mark.parametrize(
    ("limit", "inside", "outside"),
    [
        ("1 <= n <= 2*10^5", [1, 200_000], [0, 200_001]),
        (r"$1 \le n \le 2 \cdot 10^{5}$", [1, 200_000], [0, 200_001]),
        ("1 ≤ n ≤ 10**5", [100_000], [100_001]),
        ("1≤N≤10^9+7", [10**9 + 7], [10**9 + 8]),
        ("(-5 <= n <= 5)", [-5, 0, 5], [-6, 6]),
        ("−10^9 ≤ x ≤ 10^9 − 1", [-(10**9)], [10**9]),
        ("1 <= n < 50", [1, 49], [50]),
        ("0 < n <= 1,000", [1, 1000], [0, 1001]),
        ("1 <= n <= 100 000", [100_000], [100_001]),
        ("0 <= n <= 1e6", [10**6], [10**6 + 1]),
        ("an integer n (n < 50)", [-3, 49], [50]),
        (r"\(1 \leqslant n \leqslant 50\)", [50], [51]),
    ],
)
def test_limits_are_read_in_every_usual_spelling(limit, inside, outside):
    tests = tuple(Test(f"{n}\n", "0") for n in inside + outside)
    problem = Problem("c", "Code", f"Read n with {limit}. Print it.", tests=tests)
    found = [int(line.split()[1].rstrip(",")) for line in limit_breaches([problem])]
    assert found == outside


@pytest.mark.parametrize(
    "limit",
    [
        "1 <= n <= 2k",
        "1 <= n <= 50!",
        "1 <= n <= 10^k",
        "1 <= n <= 50.5",
        "1 <= n <= 2 * m",
        "x-5 <= n <= 9",
        "2^1 <= n <= 5 <= m",
        "0 <= d <= 9 for its digits and 1 <= n <= 10^18",
        "0 <= d <= 9 and n >= 1",
        "If n < 5, print 0",
        "1 <= n <= 1" + "0" * 40,
        "1 <= n <= 10^100",
    ],
)
def test_a_limit_that_is_not_understood_flags_nothing(limit):
    problem = Problem("c", "Code", limit, tests=(Test("10", "0"), Test("-10", "0")))
    assert limit_breaches([problem]) == []


@pytest.mark.parametrize(
    "unit", ["1", "1,", "1 ", "10^", "1*", "1+", "<=", " <= n ", "n ", "$", " "]
)
def test_limits_are_searched_in_linear_time(unit):
    problem = Problem("c", "Code", unit * (60_000 // len(unit)), tests=(Test("1", "1"),))
    began = time.process_time()
    assert limit_breaches([problem]) == several_answers([problem]) == []
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("statement", "several"),
    [
        ("Print the numbers in any order.", True),
        ("You may return the answer in any order.", True),
        ("If there is more than one answer, print one.", True),
        ("If there are many possible solutions, output the first you find.", True),
        ("Print any of these.", True),
        ("The cards are given in any order.", False),
        ("Do not print any blanks.", False),
        ("Print how many solutions there are.", False),
        ("More than one person answers.", False),
    ],
)
def test_which_words_admit_several_answers(statement, several):
    problem = Problem("a", "Code", statement, tests=(Test("1", "2"),))
    assert bool(several_answers([problem])) == several


def test_statements_with_several_right_answers_are_flagged():
    tests = (Test("1", "2"),)
    flagged = Problem("a", "Code", "If there are several answers, print any.", tests=tests)
    clear = Problem("b", "Code", "Print how many companies there are.", tests=tests)
    assert [line.split(":")[0] for line in several_answers([flagged, clear])] == ["a"]
