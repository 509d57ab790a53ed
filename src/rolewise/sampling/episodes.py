"""The episode driver: keeps every episode open and hands each ready call to the sampler. No barriers."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field

from rolewise.config import Config
from rolewise.errors import RolewiseError, TrainingError
from rolewise.policy.tokenizer import ChatTokenizer, strip_thinking
from rolewise.sampling.base import Completion, Request, Sampler, call_seed
from rolewise.tasks.problem import Problem
from rolewise.tasks.task import Task
from rolewise.workflows.base import Call, Message, Outcome, Parsed, Reply, Topology

CallKey = tuple[str, int, int]
# A chat template passes over a message of anyone else without a word.
SPEAKERS = ("system", "user", "assistant")


@dataclass(frozen=True)
class CallRecord:
    """One finished call: what the role read (tokens and text) and wrote."""

    call: Call
    prompt: str
    prompt_ids: tuple[int, ...]
    completion: Completion
    text: str


@dataclass
class Episode:
    """One run of a workflow on one problem. `abnormal` says why it could not finish, if it did not."""

    problem: Problem
    sample: int
    calls: list[CallRecord] = field(default_factory=list)
    outcome: Outcome | None = None
    abnormal: str | None = None

    @property
    def graded_text(self) -> str:
        """The output that is graded; empty for an abnormal episode."""
        if self.outcome is None:
            return ""
        return next(c.text for c in self.calls if c.call.key == self.outcome.graded)

    @property
    def parsed(self) -> dict[CallKey, Parsed]:
        """What was parsed from which call."""
        return self.outcome.parsed if self.outcome else {}


@dataclass(frozen=True)
class Rollout:
    """What stays the same over many episodes of one workflow."""

    topology: Topology
    task: Task
    config: Config
    tokenizer: ChatTokenizer
    adapter_of: Callable[[str], str | None]

    @property
    def prompt_cap(self) -> int:
        """Most prompt tokens of a call; longer prompts make the episode abnormal."""
        caps = self.config.caps[self.task.name].prompt
        return caps.get(self.topology.name, caps["default"])

    @property
    def response_cap(self) -> int:
        """Most completion tokens of a call."""
        return self.config.caps[self.task.name].response


class _Open:
    """An episode in progress: its coroutine and the calls it waits for."""

    def __init__(self, rollout: Rollout, episode: Episode):
        self.episode = episode
        self.name = rollout.topology.name
        self.roles = rollout.topology.roles
        self.seen: set[CallKey] = set()
        self.waiting: dict[CallKey, CallRecord | None] = {}
        # Tickets rise in the order of calls, whatever order replies come back in.
        self.records: dict[int, CallRecord] = {}
        self.coroutine = rollout.topology.run(episode.problem, rollout.task, rollout.config)
        if not isinstance(self.coroutine, Generator):
            raise self._faulty("is no coroutine: its function never yields")

    def resume(self, replies: Sequence[Reply] | None) -> list[Call]:
        """The next calls; none when the episode is over. TrainingError if the workflow is faulty."""
        try:
            calls = next(self.coroutine) if replies is None else self.coroutine.send(replies)
        except StopIteration as stop:
            self._end(stop.value)
            return []
        except RolewiseError:
            raise
        except Exception as error:  # the coroutine is a user's code: anything can go wrong in it
            line = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{line.filename}:{line.lineno}"
            raise self._faulty(f"raised {type(error).__name__}: {error} ({where})") from error
        if not isinstance(calls, list) or not all(isinstance(call, Call) for call in calls):
            raise self._faulty(f"yielded {calls!r:.80}, not a list of Calls")
        keys = [call.key for call in calls]
        repeated = [key for key in keys if key in self.seen or keys.count(key) > 1]
        if not keys or repeated:
            raise self._faulty(
                f"repeated the call {repeated[0]}; number parallel calls of a role by slot and "
                "successive ones by turn"
                if repeated
                else "yielded an empty list of Calls"
            )
        messages = [message for call in calls for message in call.messages]
        odd = [m for m in messages if not isinstance(m, Message) or m.role not in SPEAKERS]
        if odd:
            speakers = ", ".join(SPEAKERS)
            raise self._faulty(f"sent {odd[0]!r:.80}, not a Message of {speakers}")
        strangers = {call.role for call in calls}.difference(self.roles)
        if strangers:
            known = ", ".join(self.roles)
            raise self._faulty(f"called role {strangers.pop()}; its Topology names {known}")
        self.seen.update(keys)
        self.waiting = dict.fromkeys(keys)
        return calls

    def _end(self, outcome: object) -> None:
        if not isinstance(outcome, Outcome):
            raise self._faulty(f"returned {outcome!r:.80}, not an Outcome")
        unknown = [key for key in (outcome.graded, *outcome.parsed) if key not in self.seen]
        if unknown:
            raise self._faulty(f"returned an Outcome about the call {unknown[0]}, never made")
        self.episode.outcome = outcome

    def _faulty(self, what: str) -> TrainingError:
        return TrainingError(f"workflow {self.name} {what}; problem {self.episode.problem.id}")

    def abort(self, reason: str) -> None:
        self.coroutine.close()
        self.episode.abnormal = reason
        self.waiting = {}


def run_episodes(
    rollout: Rollout,
    sampler: Sampler,
    starts: Iterable[tuple[Problem, int]],
    seed_parts: Sequence[object],
) -> list[Episode]:
    """One finished episode for every (problem, sample) of `starts`, in order.

    A call's seed is made of `seed_parts`, problem, sample, role, slot and turn, so that no draw depends
    on what else is sampled. A prompt over the cap or an engine error ends its episode as abnormal; it is
    kept, never dropped.
    """
    opened = [_Open(rollout, Episode(problem, sample)) for problem, sample in starts]
    tickets: dict[int, tuple[_Open, Call, str, tuple[int, ...]]] = {}
    counter = 0

    def dispatch(ready: list[tuple[_Open, list[Call]]]) -> None:
        nonlocal counter
        flat = [(one, call) for one, calls in ready for call in calls]
        # Episodes of a problem ask the same: each conversation is rendered and encoded once.
        asked = [tuple(call.messages) for _, call in flat]
        distinct = list(dict.fromkeys(asked))
        texts = [rollout.tokenizer.render(messages) for messages in distinct]
        encoded = rollout.tokenizer.encode_batch(texts)
        read = dict(zip(distinct, zip(texts, encoded, strict=True), strict=True))
        batch = []
        for (one, call), messages in zip(flat, asked, strict=True):
            text, ids = read[messages]
            if one.episode.abnormal:
                continue
            if len(ids) > rollout.prompt_cap:
                one.abort(f"prompt of {call.role} has {len(ids)} tokens, cap {rollout.prompt_cap}")
                continue
            episode = one.episode
            seed = call_seed(*seed_parts, episode.problem.id, episode.sample, *call.key)
            request = Request(ids, rollout.adapter_of(call.role), seed, rollout.response_cap)
            tickets[counter] = (one, call, text, ids)
            batch.append((counter, request))
            counter += 1
        sampler.submit(batch)

    dispatch([(one, one.resume(None)) for one in opened])
    while sampler.open:
        resumed = []
        for ticket, completion in sampler.advance():
            one, call, prompt, ids = tickets.pop(ticket)
            text = strip_thinking(rollout.tokenizer.decode(completion.ids))
            record = CallRecord(call, prompt, ids, completion, text)
            one.records[ticket] = record
            if completion.finish_reason == "error":
                one.abort(f"the engine failed on a call of {call.role}")
            if one.episode.abnormal:
                continue
            one.waiting[call.key] = record
            if all(one.waiting.values()):
                replies = [Reply(record.text) for record in one.waiting.values()]
                resumed.append((one, one.resume(replies)))
        dispatch(resumed)
    unfinished = [o.episode for o in opened if o.episode.outcome is None and not o.episode.abnormal]
    if unfinished or tickets:
        raise TrainingError(f"{len(unfinished)} episodes never finished; the sampler lost calls")
    for one in opened:
        one.episode.calls = [one.records[ticket] for ticket in sorted(one.records)]
    return [one.episode for one in opened]
