"""Every configuration key, typed; an unknown key is an error."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from rolewise.config.cells import Grid, Match
from rolewise.config.section import Count, Decay, Fraction, Name, OrMore, Positive, Section
from rolewise.config.sources import DataSpec, ModelSpec
from rolewise.consistency import WORKFLOWS
from rolewise.grid import did_you_mean


class Workflow(Section):
    """Parameters of the topologies."""

    votes: Count = Field(3, description="parallel generators of Voting")
    workers: Count = Field(3, description="most strategies, hence workers, of Orch-Workers")
    max_iterations: dict[str, Count] = Field(
        {"Math": 3, "Code": 2}, description="evaluator turns of Eval-Opt, by task"
    )
    history: Literal["shared", "last"] = Field(
        "shared", description="what later Eval-Opt turns see: everything, or the last exchange"
    )
    slot_hints: list[str] = Field(
        [], description="a different hint for each parallel slot (distinct prompts); empty: none"
    )


class Sampling(Section):
    """How completions are drawn, in training and in evaluation."""

    backend: Literal["torch", "vllm"] = Field("torch", description="torch, in process, or vLLM")
    temperature: Positive = Field(0.7, description="in training and in evaluation")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0, description="1 = off; training refuses anything else"
    )
    top_k: OrMore = Field(0, description="0 = off; training refuses anything else")
    logprobs: Literal["processed", "raw"] = Field(
        "processed", description="old log-probs at the sampling temperature, or at T = 1"
    )
    max_rows: Count = Field(512, description="rows decoded together by the torch sampler")
    vllm: dict[str, Any] = Field({}, description="extra vLLM engine arguments")

    @property
    def at_temperature(self) -> bool:
        """Whether the sampler's log-probabilities are those of the distribution it drew from."""
        return self.logprobs == "processed" or self.temperature == 1


class Caps(Section):
    """Token caps of one call; `prompt` may differ by workflow (key `default` for the others)."""

    prompt: dict[str, Count] = Field(
        description="most prompt tokens, by workflow; `default` for the others"
    )
    response: Count = Field(description="most completion tokens of a call")


class Lora(Section):
    """Adapters: on every linear layer, B = 0 at the start, no dropout."""

    rank: Count = Field(64, description="rank of every adapter")
    alpha: Positive = Field(32, description="scale: updates count alpha / rank")


class Optimizer(Section):
    """One optimiser per adapter."""

    kind: Literal["adamw", "sgd"] = Field("adamw", description="sgd is a control without rescaling")
    lr: Positive = Field(2e-5, description="learning rate after warm-up")
    betas: tuple[Decay, Decay] = Field(
        (0.9, 0.999), description="decay rates of the moments (adamw)"
    )
    eps: Positive = Field(1e-8, description="added to the denominator (adamw)")
    weight_decay: Annotated[float, Field(ge=0)] = Field(
        0.01, description="decoupled decay of the adapter"
    )
    clip_norm: Positive = Field(1.0, description="norm of the adapter being updated")
    warmup: OrMore = Field(15, description="linear warm-up ticks, then constant")
    tick: Literal["step", "role_update"] = Field("step", description="what a schedule tick is")


class Advantage(Section):
    """Group-relative advantages."""

    group_by: Literal["episode", "slot", "role", "turn", "released"] = Field(
        "episode", description="which rewards are compared with each other"
    )
    normalise: Literal["std", "none"] = Field(
        "std", description="divide by the group's standard deviation"
    )
    per_role: bool = Field(False, description="agent-wise normalisation over a step's role rows")
    eps: Annotated[float, Field(ge=0)] = Field(1e-6, description="added to the standard deviation")
    reward: Literal["broadcast", "role"] = Field(
        "broadcast", description="outcome reward for every role, or each role's own"
    )


class Loss(Section):
    """Clipped policy-gradient objective."""

    clip_low: Fraction = Field(0.2, description="policy ratio is clipped below 1 - clip_low")
    clip_high: Fraction = Field(0.28, description="and above 1 + clip_high")
    dual_clip: Annotated[float, Field(gt=1)] | None = Field(
        3.0, description="bound of the loss for negative advantages; null: none"
    )
    denominator: Literal["rows", "episodes"] = Field(
        "rows", description="what the loss is averaged over; episodes: parallel slots add up"
    )
    role_weights: Literal["none", "token", "norm"] = Field(
        "none", description="weigh roles alike by tokens or by gradient norm"
    )
    kl_anchor: dict[str, Annotated[float, Field(ge=0)]] = Field(
        {}, description="beta of KL(role || base), by role"
    )
    importance: Literal["off", "truncate", "mask"] = Field(
        "off", description="correction between sampler and trainer"
    )
    importance_cap: Positive = Field(2.0, description="largest importance weight")


class Update(Section):
    """How a step's rows become optimiser steps."""

    steps: Literal["natural", "one_per_adapter"] = Field(
        "natural", description="an optimiser step per mini-batch, or one per adapter"
    )
    minibatch: Count = Field(512, description="rows of one natural optimiser step")
    order: Literal["shuffled", "by_length"] = Field(
        "shuffled", description="order of rows before they are cut"
    )
    remainder: Literal["merged", "kept"] = Field(
        "merged", description="a last, smaller mini-batch joins the one before, or is a step"
    )
    microbatch_tokens: Count = Field(16384, description="tokens of one forward and backward pass")


class Damping(Section):
    """Coherence damping: a role's update is scaled by 1 - strength * max(0, cos(g, ema))."""

    strength: Annotated[float, Field(ge=0, le=0.9)] = Field(0.0, description="0 = off")
    window: Count = Field(64, description="updates of the running mean")


class Training(Section):
    """The training loop."""

    steps: Count = Field(description="updates of a cell; raise it to continue finished cells")
    prompts_per_step: Count = Field(description="problems of a step")
    episodes_per_prompt: Annotated[int, Field(ge=2)] = Field(
        8, description="episodes of each problem"
    )
    checkpoint_every: Count = Field(
        10, description="steps between checkpoints, each of which is evaluated"
    )
    keep_checkpoints: Literal["all", "analysis"] = Field(
        "all", description="all, or only early, best and terminal once the cell is evaluated"
    )
    optimizer: Optimizer = Optimizer()
    advantage: Advantage = Advantage()
    loss: Loss = Loss()
    update: Update = Update()
    damping: Damping = Damping()
    train_roles: list[str] | None = Field(None, description="roles that are updated; null: all")
    max_wall: Positive | None = Field(None, description="seconds; then save and exit 75")
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32", description="of the frozen model; adapters are float32"
    )
    gradient_checkpointing: bool = Field(False, description="recompute activations to save memory")
    version: OrMore = Field(1, description="raise it to retrain every cell deliberately")


class Reward(Section):
    """What an episode's graded output earns."""

    math: Literal["equivalent", "exact"] = Field(
        "equivalent", description="equal values, or equal text"
    )
    code: Literal["fraction", "all_pass"] = Field(
        "fraction", description="share of hidden tests passed, or all or nothing"
    )
    format_penalty: Annotated[float, Field(le=0)] = Field(
        -0.1, description="reward of a Math output without a parsable answer"
    )


class Ledger(Section):
    """The gradient ledger."""

    every: Count = Field(5, description="steps between slot and turn ledgers; roles: every step")
    permutations: OrMore = Field(200, description="shuffles of the coherence null")
    kl_probe_every: Count = Field(10, description="steps between KL-to-base probes")
    ratios_every: Count = Field(
        1,
        description="steps between passes that measure policy ratio and chi-square after the update; "
        "such a pass is a forward pass over all rows",
    )
    by_layer: bool = Field(False, description="also record role gradients per layer group")


class Alarms(Section):
    """Drift alarms during training, per role, relative to the first logged value."""

    perplexity_ratio: Positive = Field(
        2.0, description="alarm when perplexity - 1 is so many times its first value"
    )
    chi2_update: Positive = Field(1.0, description="alarm above this chi-square of one update")
    entropy_ratio: Fraction = Field(0.1, description="alarm below this share of the first entropy")
    length_ratio: Positive = Field(
        2.0, description="alarm above so many times the first mean length"
    )
    capture: Positive = Field(
        0.5, description="alarm above this capture: 0 is unmoved, 1 another role's first shape"
    )


class Evaluation(Section):
    """Evaluation of checkpoints on the validation problems."""

    samples: Count = Field(1, description="samples per problem")
    trajectory_problems: Count = Field(100, description="problems whose calls are kept")
    transfer_scales: list[str] = Field([], description="scales of the generator-only transfer")
    role_swap: list[Match] = Field(
        [], description="cells whose roles are also evaluated alone and left out (Table 10)"
    )
    version: OrMore = Field(1, description="raise it to evaluate every cell again")


class Signatures(Section):
    """Thresholds of the trajectory signatures and detectors."""

    cliff_drop: Fraction = Field(
        0.05, description="peak minus terminal accuracy that counts as a cliff"
    )
    terse_aggregator_tokens: Count = Field(
        30, description="a selection within so many tokens is terse"
    )
    terse_evaluator_tokens: Count = Field(
        200, description="a verdict within so many tokens is terse"
    )
    code_block_lines: Count = Field(3, description="non-blank lines that make a Python block")
    hedging_phrases: list[str] = Field(
        [
            "wait", "let me double-check", "hmm", "actually", "on second thought", "however",
            "maybe", "perhaps", "let me re-check", "not sure", "i think",
        ],
        description="phrases that count as hedging",
    )  # fmt: skip
    bootstrap: Count = Field(2000, description="bootstrap resamples")


class SandboxLimits(Section):
    """Limits of one test of an untrusted program."""

    cpu_s: Positive = Field(4.0, description="CPU seconds")
    memory_mb: Count = Field(512, description="memory, MB")
    output_kb: Count = Field(1024, description="output, kB")


class Sandbox(Section):
    """Where untrusted programs run."""

    min_tier: Literal[1, 2, 3] = Field(2, description="weakest isolation accepted (1 = strongest)")
    workers: Count = Field(1, description="warm worker processes per job")
    limits: SandboxLimits = Field(SandboxLimits(), description="limits of one test")


class Paper(Section):
    """Which cells the paper's case-study tables and figures show, in this preset's scales."""

    scale_of: dict[str, str] = Field(description="this preset's scale -> the paper's scale")
    dynamics_scale: str = Field("1.7B", description="paper scale of Figure 4 and Table 3")
    amplification_cells: list[str] = Field(
        ["Voting-IP-1.7B-Math", "Orch-Workers-IP-1.7B-Math"], description="panels of Table 4"
    )
    capture_cells: list[str] = Field(
        ["Eval-Opt-SP-0.6B-Code", "Eval-Opt-SP-1.7B-Math", "Voting-SP-4B-Math"],
        description="cells of Table 5",
    )
    frequency_cells: list[str] = Field(["Orch-Workers-SP-4B-Math"], description="cells of Table 6")
    figure_format: list[Literal["png", "pdf", "svg"]] = Field(
        ["png", "pdf"], description="kinds of picture; the first goes into the report"
    )


class Resources(Section):
    """What a job asks of the machine or the cluster; never changes a result."""

    threads: Count = Field(1, description="CPU threads of one job")
    gpu: OrMore = Field(0, description="GPUs of one job; 0 = CPU")
    processes: Count = Field(1, description="data-parallel processes of one training (torchrun)")


class Extensions(Section):
    """Workflows and tasks of your own, by import path (`package.module:object`)."""

    workflows: dict[Name, str] = Field({}, description="name: import path of a Topology")
    tasks: dict[Name, str] = Field({}, description="name: import path of a grader class")


class Config(Section):
    """The whole configuration of a study."""

    preset: Name = Field(description="name of this configuration, shown in captions")
    results_dir: str = Field("results", description="folder of everything that is produced")
    frozen: bool = Field(False, description="redraw from results_dir, never run anything upstream")
    seeds: list[OrMore] = Field(
        [0], min_length=1, description="one training of every cell per seed"
    )
    grid: Grid
    models: dict[Name, ModelSpec] = Field(description="base models by scale, told apart by `kind`")
    tasks: dict[Name, DataSpec] = Field(description="problems by task, told apart by `kind`")
    prompts: Name = Field(description="folder of workflow/prompts")
    enable_thinking: bool = Field(False, description="passed to the chat template")
    workflow: Workflow = Workflow()
    sampling: Sampling = Sampling()
    caps: dict[str, Caps] = Field(description="token caps by task")
    lora: Lora = Lora()
    training: Training
    reward: Reward = Reward()
    ledger: Ledger = Ledger()
    alarms: Alarms = Alarms()
    evaluation: Evaluation = Evaluation()
    signatures: Signatures = Signatures()
    sandbox: Sandbox = Sandbox()
    paper: Paper
    resources: Resources = Resources()
    extensions: Extensions = Extensions()

    @model_validator(mode="before")
    @classmethod
    def _null_removes(cls, raw: Any) -> Any:
        """In `tasks` and `models`, null means "not given", so that a preset can drop keys of a default."""
        if not isinstance(raw, dict):
            return raw
        return raw | {key: _without_nulls(raw[key]) for key in ("models", "tasks") if key in raw}

    @model_validator(mode="after")
    def _references_exist(self) -> Config:
        problems = []

        def known(key: str, values: list[str], allowed: list[str]) -> None:
            problems.extend(
                f"{key}: '{value}' is not one of {', '.join(sorted(allowed))}"
                f"{did_you_mean(value, allowed)}"
                for value in values
                if value not in allowed
            )

        workflows = [*WORKFLOWS, *self.extensions.workflows]
        known("grid.workflows", self.grid.workflows, workflows)
        known("grid.scales", self.grid.scales, list(self.models))
        known("grid.tasks", self.grid.tasks, list(self.tasks))
        known("evaluation.transfer_scales", self.evaluation.transfer_scales, self.grid.scales)
        known("caps", self.grid.tasks, list(self.caps))
        known("workflow.max_iterations", self.grid.tasks, list(self.workflow.max_iterations))
        known("paper.scale_of", self.grid.scales, list(self.paper.scale_of))
        for task, caps in self.caps.items():
            if "default" not in caps.prompt:
                problems.append(f"caps.{task}.prompt: key 'default' is missing")
        if self.sampling.top_p != 1 or self.sampling.top_k != 0:
            problems.append(
                "sampling.top_p, sampling.top_k: training needs 1.0 and 0; a truncated "
                "distribution makes the logged log-probs wrong"
            )
        if not self.sampling.at_temperature and self.training.loss.importance != "off":
            problems.append(
                "training.loss.importance: compares sampler and trainer at one temperature; "
                "set sampling.logprobs: processed, or importance: 'off'"
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
