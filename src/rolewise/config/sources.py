"""Where base models and problems come from; the key `kind` tells the ways apart."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from rolewise.config.section import Count, OrMore, Positive, Section


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
