"""Memory and time of a training before it is launched, from stated assumptions. Pure.

Sums are kept simple enough to check by hand; they answer "does it fit" and "hours or months", not
"how many minutes".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rolewise.config import Config, EmbeddedModel
from rolewise.grid import SINGLE, Cell
from rolewise.planning.assumptions import GIB, Assumptions, Device
from rolewise.planning.sizes import Size
from rolewise.policy.routing import adapters_of
from rolewise.policy.scoring import LOGITS
from rolewise.training.update import BLOCKS

ROLES = {
    SINGLE: ("generator",),
    "Voting": ("generator", "aggregator"),
    "Orch-Workers": ("orchestrator", "worker", "synthesizer"),
    "Eval-Opt": ("generator", "evaluator"),
}


@dataclass(frozen=True)
class CallPlan:
    """Calls of one role in an episode: how many at once, mean prompt and completion in tokens.

    `shared`: all episodes and slots of a problem have the same prompt, which is computed once.
    """

    role: str
    count: int
    prompt: int
    response: int
    shared: bool = False

    def prompts(self, problems: float, episodes: float) -> float:
        """Distinct prompts among the calls of `episodes` episodes of `problems` problems."""
        return problems if self.shared else episodes * self.count


@dataclass(frozen=True)
class Plan:
    """The estimate of one cell. Memory in GiB per device, times in seconds; `refusals` name keys."""

    cell: str
    device: str
    parameters: int
    adapters: int
    memory: dict[str, float]
    training_gib: float
    sampling_gib: float
    kv_tokens: int
    tokens_per_step: dict[str, int]
    step_s: dict[str, float]
    evaluation_s: float
    total_hours: float
    refusals: list[str] = field(default_factory=list)


def episode_calls(config: Config, workflow: str, task: str, assume: Assumptions) -> list[CallPlan]:
    """The calls of one episode, by default of every turn; a workflow of one's own counts as Voting."""
    caps = config.caps[task]
    cap = caps.prompt.get(workflow, caps.prompt["default"])
    problem = assume.problem(task)
    response = max(1, round(caps.response * assume.response_share))

    def call(role: str, count: int, prompt: int) -> CallPlan:
        return CallPlan(role, count, min(cap, prompt), response, shared=prompt == problem)

    if workflow == SINGLE:
        return [call("generator", 1, problem)]
    if workflow == "Orch-Workers":
        workers = config.workflow.workers
        return [
            call("orchestrator", 1, problem),
            call("worker", workers, problem + response // workers),
            call("synthesizer", 1, problem + workers * response),
        ]
    if workflow == "Eval-Opt":
        last = config.workflow.history == "last"
        most = config.workflow.max_iterations[task]
        calls = []
        for turn in range(min(most, assume.eval_opt_turns or most)):
            earlier = 2 * (min(turn, 1) if last else turn) * response
            calls.append(call("generator", 1, problem + earlier))
            calls.append(call("evaluator", 1, problem + earlier + response))
        return calls
    votes = config.workflow.votes
    return [call("generator", votes, problem), call("aggregator", 1, problem + votes * response)]


def plan_cell(
    config: Config, cell: Cell, size: Size, device: Device, problems: int, assume: Assumptions
) -> Plan:
    """The plan of `cell` under its own settings (`config.for_cell`), evaluated on `problems`."""
    # Memory has to do for every turn, time for those that are played.
    memory = _memory(config, cell, size, episode_calls(config, cell.workflow, cell.task, assume))
    assume = assume.of(
        isinstance(config.models[cell.scale], EmbeddedModel),
        config.tasks[cell.task].kind == "procedural",
    )
    calls = episode_calls(config, cell.workflow, cell.task, assume)
    resident = memory["weights"] + memory["adapters"]
    training = resident + memory["gradients"] + memory["activations"] + memory["logits"]
    kv, sampling = _cache(config, cell, size, memory, device)
    settings = config.training
    episodes = settings.prompts_per_step * settings.episodes_per_prompt
    processes = config.resources.processes
    tokens = {
        "sampled": episodes * sum(c.count * c.response for c in calls),
        "prompt": round(
            sum(c.prompts(settings.prompts_per_step, episodes) * c.prompt for c in calls)
        ),
    }
    live = kv / size.kv_bytes(_width(config))
    step = {
        "sample": _sampling_s(
            config,
            size,
            calls,
            settings.prompts_per_step / processes,
            episodes / processes,
            live,
            device,
            assume,
        ),
        "grade": _grading_s(config, cell, episodes, assume),
        "update": _update_s(config, cell, size, calls, tokens, device, assume),
    }
    evaluations = max(1, settings.steps // settings.checkpoint_every)
    samples = problems * config.evaluation.samples
    evaluation = _sampling_s(config, size, calls, problems, samples, live, device, assume)
    evaluation += _grading_s(config, cell, samples, assume)
    seconds = settings.steps * sum(step.values()) + evaluations * evaluation
    return Plan(
        cell=cell.name,
        device=device.name,
        parameters=size.parameters,
        adapters=len(adapters_of(cell.policy, _roles(cell))),
        memory={name: round(value / GIB, 2) for name, value in memory.items()},
        training_gib=round(training / GIB + assume.reserve_gib, 1),
        sampling_gib=round(sampling / GIB + assume.reserve_gib, 1),
        kv_tokens=int(live),
        tokens_per_step=tokens,
        step_s={name: _rounded(value) for name, value in step.items()},
        evaluation_s=_rounded(evaluation),
        total_hours=_rounded(seconds / 3600),
        refusals=_refusals(config, cell, size, training, sampling, live, device, assume),
    )


def _rounded(value: float) -> float:
    """One decimal, or two digits of what is below 1."""
    return round(value, 1) if value >= 1 else float(f"{value:.2g}")


def _roles(cell: Cell) -> tuple[str, ...]:
    return ROLES.get(cell.workflow, ROLES["Voting"])


def _width(config: Config) -> int:
    return 4 if config.training.dtype == "float32" else 2


def _longest(config: Config, cell: Cell) -> int:
    caps = config.caps[cell.task]
    return caps.prompt.get(cell.workflow, caps.prompt["default"]) + caps.response


def _memory(config: Config, cell: Cell, size: Size, calls: list[CallPlan]) -> dict[str, float]:
    """Bytes of each part of the trainer's memory; the sampler's weights and cache come apart."""
    width, shape = _width(config), size.shape
    flat = 4 * size.adapter(config.lora.rank)
    roles = _roles(cell)
    adapters = len(adapters_of(cell.policy, roles))
    # Parameters and two moments per adapter, a running mean per role.
    kept = flat * (3 * adapters + len(roles))
    # On ledger steps an adapter's gradient is kept by role, slot, turn and block of problems, once
    # for the mini-batch and once for the update, besides their sums.
    shared = len(roles) if adapters == 1 else 1
    parts = (
        sum(c.count for c in calls)
        if adapters == 1
        else max(sum(c.count for c in calls if c.role == role) for role in roles)
    )
    gradients = flat * (2 * parts * BLOCKS + 2 * shared + 2)
    rows = max(config.training.update.microbatch_tokens, _longest(config, cell))
    layer = width * (4 * shape.hidden + 3 * shape.intermediate + 6 * shape.heads * shape.head_dim)
    inputs = width * shape.hidden
    activations = rows * (
        shape.layers * inputs + layer
        if config.training.gradient_checkpointing
        else shape.layers * (layer + inputs)
    )
    # Attention of the longest call: which of its prompt and completion each completion token sees.
    activations += config.caps[cell.task].response * _longest(config, cell) * (1 + width)
    # bf16 logits, their fp32 copy, its probabilities and their gradient.
    logits = min(rows * shape.vocab, LOGITS) * (3 * 4 + width)
    weights = size.parameters * width
    return {
        "weights": weights,
        "adapters": kept,
        "gradients": gradients,
        "activations": activations,
        "logits": logits,
    }


def _cache(
    config: Config, cell: Cell, size: Size, memory: dict[str, float], device: Device
) -> tuple[float, float]:
    """Bytes of key-value cache, and of everything while sampling."""
    resident = memory["weights"] + memory["adapters"]
    if config.sampling.backend == "torch":
        cache = config.sampling.max_rows * _longest(config, cell) * size.kv_bytes(_width(config))
        draws = 5 * 4 * config.sampling.max_rows * size.shape.vocab
        return cache, resident + cache + draws
    share = config.sampling.vllm.get("gpu_memory_utilization", 0.9)
    engine = share * device.memory_gib * GIB
    return max(0.0, engine - memory["weights"] - 2 * GIB), resident + engine


def _sampling_s(
    config: Config,
    size: Size,
    calls: list[CallPlan],
    problems: float,
    episodes: float,
    live_tokens: float,
    device: Device,
    assume: Assumptions,
) -> float:
    """Seconds to prefill and decode all calls; calls of a role run together, roles in turn."""
    width = _width(config)
    seconds = 0.0
    torch = config.sampling.backend == "torch"
    most = config.sampling.max_rows if torch else config.sampling.vllm.get("max_num_seqs", 256)
    fixed = assume.decode_step_s if torch else 0.0
    for call in calls:
        total = episodes * call.count
        length = call.prompt + call.response / 2
        running = max(1.0, min(total, most, live_tokens / (call.prompt + call.response)))
        prefill = 2 * size.flop_weights * call.prompts(problems, episodes) * call.prompt
        seconds += prefill / (assume.prefill_efficiency * device.flops)
        read = size.flop_weights * width + running * length * size.kv_bytes(width)
        by_memory = read / (assume.decode_efficiency * device.bandwidth)
        by_compute = 2 * size.flop_weights * running / (assume.prefill_efficiency * device.flops)
        rounds = total / running * call.response
        seconds += rounds * (fixed + max(by_memory, by_compute) / assume.lora_decode)
    return seconds


def _grading_s(config: Config, cell: Cell, episodes: float, assume: Assumptions) -> float:
    if cell.task != "Code":
        return 0.0
    tests = episodes * assume.tests_per_program
    return tests / (assume.tests_per_second * config.sandbox.workers)


def _update_s(
    config: Config,
    cell: Cell,
    size: Size,
    calls: list[CallPlan],
    tokens: dict[str, int],
    device: Device,
    assume: Assumptions,
) -> float:
    """Seconds of the update of all adapters on one of the data-parallel processes."""
    training = config.training
    rows = training.prompts_per_step * training.episodes_per_prompt * sum(c.count for c in calls)
    steps = adapters = len(adapters_of(cell.policy, _roles(cell)))
    if training.update.steps == "natural":
        steps = max(adapters, rows // training.update.minibatch)
    flop = 10 * size.flop_weights * (tokens["sampled"] + tokens["prompt"])
    work = flop / (assume.train_efficiency * device.flops)
    return work / config.resources.processes + steps * assume.optimizer_step_s


def _refusals(
    config: Config,
    cell: Cell,
    size: Size,
    training: float,
    sampling: float,
    live: float,
    device: Device,
    assume: Assumptions,
) -> list[str]:
    """Why the cell cannot run, each with the key to change."""
    found = []
    room = (device.memory_gib - assume.reserve_gib) * GIB
    longest = _longest(config, cell)
    if longest > size.context:
        found.append(
            f"caps.{cell.task}: prompt + response = {longest} tokens, the model reads {size.context}"
        )
    if training > room:
        budget = config.training.update.microbatch_tokens
        key = (
            f"training.update.microbatch_tokens: lower it from {budget}"
            if budget > longest and config.training.gradient_checkpointing
            else "training.gradient_checkpointing: true"
            if not config.training.gradient_checkpointing
            else "lora.rank or ledger.every: fewer or smaller gradients"
        )
        found.append(f"{key}; an update needs {training / GIB:.0f} GiB of {room / GIB:.0f}")
    if sampling > room:
        if config.sampling.backend == "torch":
            key = f"sampling.max_rows: lower it from {config.sampling.max_rows}"
        else:
            share = config.sampling.vllm.get("gpu_memory_utilization", 0.9)
            fits = share - (sampling - room) / (device.memory_gib * GIB)
            key = f"sampling.vllm.gpu_memory_utilization: at most {max(fits, 0):.2f}, not {share}"
        found.append(f"{key}; sampling needs {sampling / GIB:.0f} GiB of {room / GIB:.0f}")
    if live < longest:
        found.append(
            "sampling.vllm.gpu_memory_utilization: raise it, or lower "
            f"caps.{cell.task}; the cache holds {int(live)} tokens, a call may take {longest}"
        )
    return found
