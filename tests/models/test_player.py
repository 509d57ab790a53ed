import itertools
import random
from collections import Counter

import pytest

from rolewise.errors import ConfigError
from rolewise.models.player import EARNEST, FAULTLESS, STRATEGIES, Noise, Player, read_noise
from rolewise.models.transcripts import Script, _episode, transcripts
from rolewise.tasks.boxed import last_box
from rolewise.tasks.generators import arithmetic, programs
from rolewise.tasks.parsing import parse_selection, parse_strategies, parse_verdict
from rolewise.tasks.prompts import Prompts
from rolewise.workflows.base import Call
from tests.configs import config

PROBLEMS = {
    "Math": arithmetic.generate(60, 10, 0, {})[0],
    "Code": programs.generate(60, 10, 0, {})[0],
}
MANY = 1500


def stream(noise, count, seed=0):
    return list(itertools.islice(transcripts(config(), PROBLEMS, noise, seed), count))


def answers(noise, problem, count=MANY):
    rng = random.Random(0)
    call = Call("generator", ())
    return [Player(problem, noise, rng).reply(call) for _ in range(count)]


def test_transcripts_are_the_same_for_the_same_seed_and_differ_for_another():
    assert stream(Noise(), 60) == stream(Noise(), 60) != stream(Noise(), 60, seed=1)


def test_transcripts_show_every_role_of_both_tasks():
    endings = Counter()
    for transcript in stream(Noise(), 400):
        asked = transcript.messages[-2].content
        endings[next((w for w in ("Check", "Pick", "Plan", "Final", "Use") if w in asked), "")] += 1
    assert set(endings) == {"Check", "Pick", "Plan", "Final", "Use", ""}


@pytest.mark.parametrize(
    ("workflow", "most"), [("Single", 1), ("Eval-Opt", 1), ("Voting", 2), ("Orch-Workers", 5)]
)
def test_a_conversation_that_goes_on_is_listed_once_and_voters_once(workflow, most):
    for seed in range(20):
        problem, rng = PROBLEMS["Code"][seed], random.Random(seed)
        script = Script("Code", Prompts("compact", "Code"))
        player = Player(problem, Noise(), rng)
        found = _episode(config(), workflow, problem, script, player)
        assert 1 <= len(found) <= most
        for one, other in itertools.permutations(found, 2):
            assert other.messages[: len(one.messages)] != one.messages


def test_answers_are_right_as_often_as_the_noise_says():
    problem = PROBLEMS["Math"][0]
    noise = Noise(earnest=0.5, earnest_right=0.8, guess_right=0.1, malformed=0.05)
    texts = answers(noise, problem)
    right = sum(last_box(text) == problem.answer for text in texts) / MANY
    assert right == pytest.approx(0.95 * (0.5 * 0.8 + 0.5 * 0.1), abs=0.04)
    assert sum(last_box(text) is None for text in texts) / MANY == pytest.approx(0.05, abs=0.02)


def test_guesses_are_lazy_and_earnest_answers_slip_elsewhere():
    problem = PROBLEMS["Math"][0]
    lazy, *slips = problem.meta["mistakes"]
    texts = answers(Noise(earnest_right=0, guess_right=0, malformed=0), problem)
    for text in texts:
        expected = slips if text.startswith(EARNEST) else [lazy]
        assert last_box(text) in expected


def test_a_faultless_player_judges_picks_and_copies_what_is_right():
    problem = PROBLEMS["Math"][0]
    player = Player(problem, FAULTLESS, random.Random(0))
    for _ in range(200):
        text = player.reply(Call("generator", ()))
        verdict = parse_verdict(player.reply(Call("evaluator", ())))
        assert verdict == ("Correct" if last_box(text) == problem.answer else "Incorrect")
    assert last_box(player.reply(Call("synthesizer", ()))) == problem.answer
    choice = parse_selection(player.reply(Call("aggregator", ())), 200)
    assert player._answers[choice - 1].right


def test_verdicts_are_right_as_often_as_the_noise_says():
    rng, right = random.Random(0), 0
    problem = PROBLEMS["Code"][0]
    for _ in range(MANY):
        player = Player(problem, Noise(verdict_right=0.7, malformed=0), rng)
        player.reply(Call("generator", ()))
        verdict = parse_verdict(player.reply(Call("evaluator", ())))
        right += (verdict == "Correct") == player._answers[-1].right
    assert right / MANY == pytest.approx(0.7, abs=0.04)


def test_plans_name_known_strategies_and_workers_follow_them():
    rng, earnest = random.Random(0), {name: [] for name in STRATEGIES}
    for _ in range(MANY):
        player = Player(PROBLEMS["Math"][0], Noise(malformed=0), rng)
        plan = parse_strategies(player.reply(Call("orchestrator", ())), 3)
        assert 1 <= len(plan) <= 3 and set(plan.values()) <= set(STRATEGIES)
        for slot, strategy in enumerate(plan.values()):
            text = player.reply(Call("worker", (), slot=slot))
            earnest[strategy].append(text.startswith(EARNEST))
    for name, flags in earnest.items():
        assert sum(flags) / len(flags) == pytest.approx(STRATEGIES[name], abs=0.08)


def test_a_role_without_lines_is_named():
    with pytest.raises(ValueError, match="'judge'"):
        Player(PROBLEMS["Math"][0], Noise(), random.Random(0)).reply(Call("judge", ()))


def test_unknown_or_impossible_noise_is_named_before_anything_is_trained():
    with pytest.raises(ConfigError) as caught:
        read_noise({"typo": 0.5, "malformed": 7}, "0.3M")
    named = [line.split(":")[0] for line in caught.value.problems]
    assert sorted(named) == ["models.0.3M.noise.malformed", "models.0.3M.noise.typo"]
