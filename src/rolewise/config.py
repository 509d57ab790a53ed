"""Every configuration key, typed. The whole file is checked at once; an unknown key is an error."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from rolewise.consistency import WORKFLOWS, contradictions
from rolewise.errors import ConfigError
from rolewise.grid import Cell, matches

Fraction = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
OrMore = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]


class Section(BaseModel):
    """A mapping of the configuration; keys it does not know are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Match(Section):
    """Selects cells; a field left out matches everything."""

    workflow: list[str] | None = Field(None, description="workflow names")
    policy: list[str] | None = Field(None, description="SA, IP, SP or Base")
    scale: list[str] | None = Field(None, description="model scales")
    task: list[str] | None = Field(None, description="Math, Code")
    variant: list[str] | None = Field(
        None, description="names from grid.variants; '' for main cells"
    )


# Told apart by hand, so that a mistake in a list is reported once, not once per alternative.
Selection = Annotated[
    Annotated[bool, Tag("flag")] | Annotated[list[Match], Tag("list")],
    Discriminator(lambda value: "list" if isinstance(value, list) else "flag"),
]


class Override(Section):
    """Settings that differ for some cells: `set` maps dotted keys to values."""

    match: Match = Field(Match(), description="cells it applies to")
    set: dict[str, Any] = Field(description="dotted keys and their values")


class Variant(Section):
    """An intervention: the matched cells are trained again under `set`, named `<cell>~<name>`."""

    name: Name = Field(description="appended to the cell's name as ~name")
    match: Match = Field(Match(), description="cells that are trained again")
    set: dict[str, Any] = Field({}, description="dotted keys and their values")
    seeds: list[OrMore] | None = Field(None, description="seeds of this variant; default: seeds")


class Grid(Section):
    """Which cells exist."""

    workflows: list[str] = Field(description="multi-agent workflows")
    policies: list[Literal["IP", "SP"]] = Field(description="how role updates are routed")
    scales: list[Name] = Field(description="model scales, keys of `models`")
    tasks: list[str] = Field(description="tasks, keys of `tasks`")
    single_agent: bool = Field(True, description="train the single-agent baseline (SA-RL)")
    main: Selection = Field(
        True,
        description="main cells to train, beside the variants: all, none, or those of the list",
    )
    exclude: list[Match] = Field([], description="cells to leave out")
    overrides: list[Override] = Field([], description="settings that differ for some cells")
    variants: list[Variant] = Field([], description="interventions")


class EmbeddedModel(Section):
    """A tiny Qwen3-architecture model that the pipeline trains itself."""

    kind: Literal["embedded"] = Field(description="trained here from scratch")
    hidden_size: Count = Field(description="width of the residual stream")
    layers: Count = Field(description="transformer layers")
    heads: Count = Field(description="query heads")
    kv_heads: Count = Field(description="key and value heads")
    head_dim: Count = Field(description="width of a head")
    intermediate_size: Count = Field(description="width of the feed-forward layer")
    vocab_size: Count = Field(description="upper bound of the BPE vocabulary")
    warm_start_steps: Count = Field(description="optimiser steps on noisy transcripts")
    warm_start_batch: Count = Field(description="transcripts per warm-start step")
    warm_start_lr: Positive = Field(description="peak learning rate of the warm start")
    noise: dict[str, float] = Field(
        {}, description="how the transcripts' player errs, where not as rolewise.models.player says"
    )

    @model_validator(mode="after")
    def _heads_fit(self) -> EmbeddedModel:
        if self.heads % self.kv_heads:
            raise ValueError(
                f"heads ({self.heads}) must be a multiple of kv_heads ({self.kv_heads})"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim ({self.head_dim}) must be even: positions rotate pairs")
        return self


class HubModel(Section):
    """A pretrained model from the Hugging Face hub (or its offline cache)."""

    kind: Literal["hub"] = Field(description="fetched from the hub")
    repo: str = Field(description="owner/name on the hub")
    revision: str | None = Field(None, description="null: resolved and recorded at first download")


class PathModel(Section):
    """A model folder in Hugging Face format on this machine."""

    kind: Literal["path"] = Field(description="taken from a folder")
    path: str = Field(description="the folder")


class GgufModel(Section):
    """A GGUF file that a Python package carries (the `mini` preset)."""

    kind: Literal["gguf"] = Field(description="converted from a GGUF file")
    package: str = Field(description="distribution that carries the file")
    file: str = Field(description="file name inside the distribution")
    sha256: str = Field(description="hash the file must have")


ModelSpec = Annotated[EmbeddedModel | HubModel | PathModel | GgufModel, Field(discriminator="kind")]


class ProceduralData(Section):
    """Problems made by a seeded generator."""

    kind: Literal["procedural"] = Field(description="made here, from a seed")
    generator: str = Field(description="module of rolewise.tasks.generators, or an import path")
    train: Count = Field(description="training problems")
    validation: Annotated[int, Field(ge=2)] = Field(
        description="validation problems, half select and half report"
    )
    seed: OrMore = Field(0, description="seed of the generator")
    options: dict[str, Any] = Field({}, description="options of the generator")


class HubData(Section):
    """A data set from the Hugging Face hub (or a local file in the same schema)."""

    kind: Literal["dapo_math", "deepcoder"] = Field(description="schema of the data set")
    repo: str = Field(description="owner/name on the hub, or a local file")
    subset: str = Field(description="configuration of the data set")
    revision: str | None = Field(None, description="null: resolved and recorded at first download")
    seed: OrMore = Field(42, description="seed of shuffle and split")
    validation: int | float = Field(gt=0, description="rows (integer) or share (fraction) held out")
    expect: dict[str, int] = Field({}, description="asserted counts, e.g. train, validation")
    verify_references: Literal[False, "tests", "problems"] = Field(
        False, description="drop the tests that the reference program fails, or problems with any"
    )


DataSpec = Annotated[ProceduralData | HubData, Field(discriminator="kind")]


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
        if problems:
            raise ValueError("\n".join(problems))
        return self


def deep_merge(base: dict, overlay: dict) -> dict:
    """`base` updated by `overlay`: mappings merge, everything else is replaced (as Snakemake does)."""
    merged = copy.copy(base)
    for key, value in overlay.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = deep_merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def read_raw(paths: list[str | Path]) -> dict:
    """The YAML files merged in order, unchecked; a missing or malformed file is an error."""
    raw: dict = {}
    for path in map(Path, paths):
        if not path.is_file():
            presets = ", ".join(sorted(p.name for p in Path("workflow/presets").glob("*.yaml")))
            raise ConfigError([f"{path}: no such configuration file (presets: {presets})"])
        try:
            content = yaml.safe_load(path.read_text())
        except yaml.YAMLError as error:
            raise ConfigError(
                [f"{path}: not valid YAML: {' '.join(str(error).split())}"]
            ) from error
        if not isinstance(content, dict):
            raise ConfigError([f"{path}: the file must be a mapping of keys"])
        raw = deep_merge(raw, content)
    return raw


def parse(raw: dict) -> Config:
    """The checked configuration; all mistakes are reported at once, each with its key and value."""
    problems: list[str] = []
    config = None
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        problems += _explain(error)
    if config is not None:
        problems += contradictions(config)
        for i, override in enumerate(config.grid.overrides):
            problems += _try_settings(raw, override.set, f"grid.overrides[{i}].set")
        for variant in config.grid.variants:
            problems += _try_settings(raw, variant.set, f"grid.variants[{variant.name}].set")
    if problems:
        raise ConfigError(problems)
    return config


def load(paths: list[str | Path]) -> Config:
    """`parse(read_raw(paths))`."""
    return parse(read_raw(paths))


def _without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}


def _explain(error: ValidationError) -> list[str]:
    lines = []
    for item in error.errors():
        key = ".".join(str(part) for part in item["loc"]) or "configuration"
        if item["type"] == "extra_forbidden":
            lines.append(f"{key}: unknown key")
        elif item["type"] == "missing":
            lines.append(f"{key}: required key is missing")
        elif item["type"] == "value_error" and not item["loc"]:
            lines += str(item["ctx"]["error"]).split("\n")
        else:
            lines.append(f"{key}: {item['msg']} (got {item['input']!r})")
    return lines


def _try_settings(raw: dict, settings: dict[str, Any], where: str) -> list[str]:
    try:
        Config.model_validate(with_settings(raw, settings))
    except ValidationError as error:
        return [f"{where}: {line}" for line in _explain(error)]
    except ConfigError as error:
        return [f"{where}: {line}" for line in error.problems]
    return []


def with_settings(raw: dict, settings: dict[str, Any]) -> dict:
    """A copy of `raw` in which each dotted key of `settings` holds its value."""
    result = copy.deepcopy(raw)
    for dotted, value in settings.items():
        *parents, last = dotted.split(".")
        node = result
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise ConfigError([f"{dotted}: {parent} is a value and has no keys"])
        node[last] = value
    return result


def for_cell(config: Config, cell: Cell) -> Config:
    """The configuration with the overrides and the variant that apply to `cell` filled in."""
    settings: dict[str, Any] = {}
    for override in config.grid.overrides:
        if matches(cell, override.match):
            settings |= override.set
    for variant in config.grid.variants:
        if variant.name == cell.variant:
            settings |= variant.set
    if not settings:
        return config
    return Config.model_validate(with_settings(config.model_dump(), settings))


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value: Any) -> str:
    """The first 12 hex digits of the SHA-256 of `canonical_json(value)`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:12]


def training_subset(config: Config, cell: Cell) -> dict:
    """What changes the result of training `cell`: the params of its rule and the name of its state.

    The number of steps and wall limits are left out, so that a run can be extended.
    """
    own = for_cell(config, cell).model_dump()
    training = {
        k: v
        for k, v in own["training"].items()
        if k not in ("steps", "max_wall", "keep_checkpoints")
    }
    return {
        "cell": cell.name,
        "model": own["models"][cell.scale],
        "data": own["tasks"][cell.task],
        "caps": own["caps"][cell.task],
        "training": training,
        "threads": own["resources"]["threads"],
        "processes": own["resources"]["processes"],
        "extensions": _extensions(config, cell),
    } | {
        key: own[key]
        for key in (
            "prompts",
            "enable_thinking",
            "workflow",
            "sampling",
            "lora",
            "reward",
            "ledger",
            "sandbox",
        )
    }


def _extensions(config: Config, cell: Cell) -> dict:
    """The extensions that `cell` uses: adding a workflow or a task renews no other cell."""
    return {
        "workflows": _only(config.extensions.workflows, cell.workflow),
        "tasks": _only(config.extensions.tasks, cell.task),
    }


def _only(entries: dict[str, str], name: str) -> dict[str, str]:
    return {name: entries[name]} if name in entries else {}


def evaluation_subset(config: Config, cell: Cell) -> dict:
    """What changes the evaluation of a checkpoint of `cell`, given the checkpoint."""
    own = for_cell(config, cell).model_dump()
    return {
        "cell": cell.name,
        "evaluation": {
            k: v for k, v in own["evaluation"].items() if k not in ("transfer_scales", "role_swap")
        },
        "data": own["tasks"][cell.task],
        "caps": own["caps"][cell.task],
        "extensions": _extensions(config, cell),
    } | {
        key: own[key]
        for key in (
            "prompts",
            "enable_thinking",
            "workflow",
            "sampling",
            "reward",
            "sandbox",
        )
    }


def untrained_subset(config: Config, cell: Cell) -> dict:
    """What changes the evaluation of an untrained workflow besides `evaluation_subset`."""
    own = for_cell(config, cell).model_dump()
    return {
        "model": own["models"][cell.scale],
        "dtype": own["training"]["dtype"],
        "threads": own["resources"]["threads"],
    }
