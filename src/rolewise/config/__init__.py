"""The configuration of a study: its keys, how files are read, and which settings a result depends on."""

from rolewise.config.cells import Match, Variant
from rolewise.config.reading import deep_merge, for_cell, load, parse, read_raw, with_settings
from rolewise.config.schema import (
    Advantage,
    Alarms,
    Caps,
    Config,
    Loss,
    Reward,
    Sandbox,
    SandboxLimits,
    Signatures,
    Training,
    Update,
    Workflow,
)
from rolewise.config.section import Section
from rolewise.config.sources import (
    EmbeddedModel,
    GgufModel,
    HubData,
    HubModel,
    ModelSpec,
    PathModel,
    ProceduralData,
)
from rolewise.config.subsets import (
    canonical_json,
    digest,
    evaluation_subset,
    training_subset,
    untrained_subset,
)

__all__ = [
    "Advantage",
    "Alarms",
    "Caps",
    "Config",
    "EmbeddedModel",
    "GgufModel",
    "HubData",
    "HubModel",
    "Loss",
    "Match",
    "ModelSpec",
    "PathModel",
    "ProceduralData",
    "Reward",
    "Sandbox",
    "SandboxLimits",
    "Section",
    "Signatures",
    "Training",
    "Update",
    "Variant",
    "Workflow",
    "canonical_json",
    "deep_merge",
    "digest",
    "evaluation_subset",
    "for_cell",
    "load",
    "parse",
    "read_raw",
    "training_subset",
    "untrained_subset",
    "with_settings",
]
