"""The episode driver against a scripted sampler: order, no barriers, nothing dropped."""

import numpy as np
import pytest

from rolewise.errors import TrainingError
from rolewise.sampling.base import Completion
from rolewise.sampling.episodes import Rollout, run_episodes
from rolewise.tasks.problem import Problem
from rolewise.workflows.base import Call, Message, Outcome, Parsed, Topology, user
from rolewise.workflows.eval_opt import EVAL_OPT
from rolewise.workflows.voting import VOTING
from tests.configs import config
from tests.workflows.scripted import PlainTask


class Letters:
    """One token per character."""

    def render(self, messages):
        return "|".join(f"{m.role}:{m.content}" for m in messages)

    def encode_batch(self, texts):
        return [tuple(map(ord, text)) for text in texts]

    def decode(self, ids):
        return "".join(map(chr, ids))


class ScriptedSampler:
    """Answers from a function of the prompt; finishes `batch` requests at a time, last come first."""

    def __init__(self, answer, batch=3):
        self.answer, self.batch = answer, batch
        self.queue, self.log = [], []

    def submit(self, requests):
        self.queue += requests
        self.log += [request for _, request in requests]

    @property
    def open(self):
        return len(self.queue)

    def advance(self):
        done, self.queue = self.queue[-self.batch :], self.queue[: -self.batch]
        return [(ticket, self.finish(request)) for ticket, request in done]

    def finish(self, request):
        text = self.answer("".join(map(chr, request.prompt_ids)))
        reason = "error" if text is None else "stop"
        ids = tuple(map(ord, text or ""))
        return Completion(ids, np.zeros(len(ids), np.float32), reason)


def rollout(topology, settings=None, adapter_of=lambda role: role):
    return Rollout(topology, PlainTask(), config(settings=settings), Letters(), adapter_of)


def problems(count):
    return [
        Problem(id=f"p{i}", task="Math", prompt=f"problem {i}", answer="1") for i in range(count)
    ]


def vote(prompt):
    return "\\boxed{2}" if "<aggregator>" in prompt else "\\boxed{1}"


LONG = {"caps.Math.prompt.default": 4000}


def test_every_start_gives_its_episode_in_order_with_calls_in_order():
    starts = [(p, k) for p in problems(5) for k in range(2)]
    episodes = run_episodes(rollout(VOTING, LONG), ScriptedSampler(vote), starts, ("s",))
    assert [(e.problem, e.sample) for e in episodes] == starts
    for episode in episodes:
        assert [c.call.key for c in episode.calls] == [
            ("generator", 0, 0), ("generator", 1, 0), ("generator", 2, 0), ("aggregator", 0, 0),
        ]  # fmt: skip
        assert episode.outcome.graded == ("generator", 1, 0)
        assert episode.graded_text == "\\boxed{1}"


def test_an_episode_goes_on_while_others_still_wait():
    sampler = ScriptedSampler(vote)
    run_episodes(rollout(VOTING, LONG), sampler, [(p, 0) for p in problems(6)], ("s",))
    kinds = ["aggregator" if r.adapter == "aggregator" else "generator" for r in sampler.log]
    assert len(kinds) == 24
    # The first aggregator call is submitted before the last generator call has come back.
    assert sampler.batch == 3 and kinds[18] == "aggregator"


def test_seeds_identify_the_call_and_nothing_else():
    runs = []
    for batch in (1, 50):
        sampler = ScriptedSampler(vote, batch)
        run_episodes(rollout(VOTING, LONG), sampler, [(p, 0) for p in problems(4)], ("s", 7))
        runs.append({r.seed for r in sampler.log})
    assert runs[0] == runs[1] and len(runs[0]) == 16
    sampler = ScriptedSampler(vote)
    run_episodes(rollout(VOTING, LONG), sampler, [(p, 0) for p in problems(4)], ("s", 8))
    assert not runs[0] & {r.seed for r in sampler.log}


def test_a_prompt_over_the_cap_ends_its_episode_but_not_the_run():
    settings = {"caps.Math.prompt": {"default": 120}}
    found = run_episodes(
        rollout(EVAL_OPT, settings),
        ScriptedSampler(lambda prompt: "\\boxed{Incorrect}"),
        [(p, 0) for p in problems(3)],
        ("s",),
    )
    assert len(found) == 3
    assert all("cap 120" in e.abnormal and e.outcome is None for e in found)
    assert all(e.graded_text == "" and e.calls for e in found)


def test_a_cap_may_differ_by_workflow():
    settings = {"caps.Math.prompt": {"default": 5, "Voting": 4000}}
    (episode,) = run_episodes(
        rollout(VOTING, settings), ScriptedSampler(vote), [(problems(1)[0], 0)], ("s",)
    )
    assert episode.abnormal is None


def test_an_engine_error_is_kept_as_an_abnormal_episode():
    def fail_one(prompt):
        return None if "problem 1" in prompt else vote(prompt)

    found = run_episodes(
        rollout(VOTING, LONG), ScriptedSampler(fail_one), [(p, 0) for p in problems(3)], ("s",)
    )
    assert [e.abnormal is not None for e in found] == [False, True, False]
    assert "engine failed" in found[1].abnormal


def test_thinking_is_stripped_from_what_is_passed_on():
    sampler = ScriptedSampler(lambda p: "<think>no</think>" + vote(p))
    (episode,) = run_episodes(rollout(VOTING, LONG), sampler, [(problems(1)[0], 0)], ("s",))
    assert episode.calls[0].text == "\\boxed{1}"
    assert "think" not in episode.calls[3].prompt


def test_a_sampler_that_loses_calls_stops_the_run():
    class Losing(ScriptedSampler):
        def advance(self):
            return super().advance()[1:]

    with pytest.raises(TrainingError, match="never finished"):
        run_episodes(rollout(VOTING, LONG), Losing(vote), [(problems(1)[0], 0)], ("s",))


def ask_once(text="solve", **key):
    return Call("generator", user(text), **key)


def raises(problem, task, config):
    yield [ask_once()]
    raise KeyError("bug")


def yields_nothing(problem, task, config):
    yield []


def yields_text(problem, task, config):
    yield ["solve"]


def repeats_a_call(problem, task, config):
    yield [ask_once()]
    yield [ask_once()]
    return Outcome(("generator", 0, 0))


def speaks_as_a_robot(problem, task, config):
    yield [Call("generator", (Message("robot", "solve"),))]


def calls_a_stranger(problem, task, config):
    yield [Call("stranger", user("solve"))]


def returns_nothing(problem, task, config):
    yield [ask_once()]


def grades_a_call_never_made(problem, task, config):
    yield [ask_once()]
    return Outcome(("generator", 3, 0))


def parses_a_call_never_made(problem, task, config):
    yield [ask_once()]
    return Outcome(("generator", 0, 0), {("generator", 0, 9): Parsed("1")})


def never_yields(problem, task, config):
    return Outcome(("generator", 0, 0))


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        (raises, r"raised KeyError: 'bug' \(.*test_episodes.py:\d+\)"),
        (yields_nothing, "empty list"),
        (yields_text, "not a list of Calls"),
        (repeats_a_call, r"repeated the call \('generator', 0, 0\)"),
        (speaks_as_a_robot, "not a Message of system, user, assistant"),
        (calls_a_stranger, "called role stranger; its Topology names generator"),
        (returns_nothing, "returned None, not an Outcome"),
        (grades_a_call_never_made, r"\('generator', 3, 0\), never made"),
        (parses_a_call_never_made, r"\('generator', 0, 9\), never made"),
        (never_yields, "never yields"),
    ],
)
def test_a_faulty_workflow_stops_the_run_and_is_named(run, complaint):
    faulty = Topology("Faulty", run, ("generator",), "generator")
    sampler = ScriptedSampler(lambda prompt: "\\boxed{1}")
    with pytest.raises(TrainingError, match=f"workflow Faulty .*{complaint}"):
        run_episodes(rollout(faulty, LONG), sampler, [(problems(1)[0], 0)], (0, "train", 1))


class CountingLetters(Letters):
    def __init__(self):
        self.rendered = []

    def render(self, messages):
        self.rendered.append(messages)
        return super().render(messages)


@pytest.mark.parametrize("container", [tuple, list])
def test_a_conversation_that_many_calls_share_is_rendered_once(container):
    def chat(problem, task, config):
        system = Message("system", "Be brief.")
        first = Call("solver", container([system, Message("user", problem.prompt)]))
        [reply] = yield [first]
        again = Call("solver", container([system, Message("user", f"Check {reply.text}")]), turn=1)
        yield [again]
        return Outcome(again.key)

    letters = CountingLetters()
    plain = rollout(Topology("Chat", chat, roles=("solver",), main_role="solver"), LONG)
    shared = Rollout(plain.topology, plain.task, plain.config, letters, plain.adapter_of)
    starts = [(p, k) for p in problems(2) for k in range(4)]
    sampler = ScriptedSampler(lambda prompt: prompt[-1], batch=len(starts))
    episodes = run_episodes(shared, sampler, starts, ("s",))
    # Two problems, and one second conversation for each of their replies.
    assert len(letters.rendered) == 4
    prompts = [[call.prompt for call in episode.calls] for episode in episodes]
    assert prompts == [
        [f"system:Be brief.|user:{p.prompt}", f"system:Be brief.|user:Check {p.prompt[-1]}"]
        for p, _ in starts
    ]
