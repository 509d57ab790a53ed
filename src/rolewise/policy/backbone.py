"""The frozen base model: Qwen3 and Llama architectures in one forward pass that knows about adapters.

Tokens are flat (`x_ND`: N tokens, D hidden), so linear layers never see padding; how tokens attend
to each other is a function handed in, which makes training, prefill and decoding one code path.
Suffixes: N tokens, D hidden, H heads, K key-value heads, E head size, V vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from torch import Tensor

from rolewise.errors import DataError
from rolewise.policy.kernels import rms_norm, split_heads, swiglu, take

# Linear layers that read the same input run as one matrix product.
GROUPS: dict[str, tuple[str, ...]] = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "o": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
Linear = Callable[[int, str, Tensor], Tensor]


@dataclass(frozen=True)
class Shape:
    """Sizes of a model, from its config.json."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    rope_theta: float
    norm_eps: float

    @staticmethod
    def of(config: dict, folder: Path) -> Shape:
        """The shape described by a Hugging Face configuration; DataError if it is not supported."""
        kind = (config.get("architectures") or ["?"])[0]
        if kind not in ("Qwen3ForCausalLM", "LlamaForCausalLM"):
            raise DataError(
                f"{folder}/config.json: architecture {kind}; Qwen3 and Llama are supported"
            )
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        if rope.get("rope_type", "default") != "default":
            raise DataError(f"{folder}/config.json: rope type {rope['rope_type']} is not supported")
        if config.get("attention_bias") or config.get("mlp_bias"):
            raise DataError(f"{folder}/config.json: biases in linear layers are not supported")
        heads = config["num_attention_heads"]
        return Shape(
            layers=config["num_hidden_layers"],
            hidden=config["hidden_size"],
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            intermediate=config["intermediate_size"],
            vocab=config["vocab_size"],
            rope_theta=rope.get("rope_theta") or config.get("rope_theta", 10000.0),
            norm_eps=config["rms_norm_eps"],
        )

    def linear_sizes(self, module: str) -> tuple[int, int]:
        """(outputs, inputs) of a linear layer of `GROUPS`."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "q_proj": (q, self.hidden),
            "k_proj": (kv, self.hidden),
            "v_proj": (kv, self.hidden),
            "o_proj": (self.hidden, q),
            "gate_proj": (self.intermediate, self.hidden),
            "up_proj": (self.intermediate, self.hidden),
            "down_proj": (self.hidden, self.intermediate),
        }[module.rpartition(".")[2]]

    @property
    def linear_parameters(self) -> int:
        """Weights of the linear layers, which dominate the arithmetic of a token."""
        sizes = [self.linear_sizes(m) for members in GROUPS.values() for m in members]
        return self.layers * sum(a * b for a, b in sizes)


@dataclass
class Layer:
    """Frozen weights of one layer; linear groups are stacked along their outputs.

    `head_norm`: weights of the norms of query and key heads, `(H + K, E)`, if the model has them.
    """

    linear: dict[str, Tensor]
    input_norm: Tensor
    post_norm: Tensor
    head_norm: Tensor | None


class Backbone:
    """A frozen causal language model."""

    def __init__(
        self, shape: Shape, layers: list[Layer], embed: Tensor, norm: Tensor, head: Tensor
    ):
        self.shape, self.layers = shape, layers
        self.embed_VD, self.norm, self.head_VD = embed, norm, head
        self._rope: Tensor | None = None

    @property
    def dtype(self) -> torch.dtype:
        """Compute precision."""
        return self.embed_VD.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embed_VD.device

    @staticmethod
    def load(folder: Path, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Backbone:
        """The model saved in `folder` in Hugging Face format."""
        path = folder / "config.json"
        if not path.is_file():
            raise DataError(f"{folder}: no model here; build it with `snakemake --cores 1 models`")
        shape = Shape.of(json.loads(path.read_text()), folder)
        weights = _read_weights(folder, dtype, device)
        try:
            return Backbone._assemble(shape, weights)
        except KeyError as error:
            raise DataError(f"{folder}: the weights lack {error}; build the model again") from error

    @staticmethod
    def _assemble(shape: Shape, weights: dict[str, Tensor]) -> Backbone:
        layers = []
        for i in range(shape.layers):
            prefix = f"model.layers.{i}."
            layers.append(
                Layer(
                    linear={
                        group: torch.cat([weights[f"{prefix}{m}.weight"] for m in members])
                        for group, members in GROUPS.items()
                    },
                    input_norm=weights[prefix + "input_layernorm.weight"],
                    post_norm=weights[prefix + "post_attention_layernorm.weight"],
                    head_norm=_head_norm(shape, weights, prefix + "self_attn."),
                )
            )
        embed = weights["model.embed_tokens.weight"]
        head = weights.get("lm_head.weight", embed)
        return Backbone(shape, layers, embed, weights["model.norm.weight"], head)

    def plain_linear(self, layer: int, group: str, x: Tensor) -> Tensor:
        """The base model's own linear layers, no adapter."""
        return F.linear(x, self.layers[layer].linear[group])

    def rope(self, positions_N: Tensor) -> Tensor:
        """Cosines and signed sines of the positions, `(2, N, 1, E)`; halves convention of Llama and Qwen."""
        need = int(positions_N.max()) + 1 if positions_N.numel() else 0
        if self._rope is None or self._rope.shape[1] < need:
            half = self.shape.head_dim // 2
            exponent = torch.arange(half, dtype=torch.float32) / half
            inverse = 1.0 / (self.shape.rope_theta**exponent)
            angle = torch.outer(torch.arange(max(need, 256), dtype=torch.float32), inverse)
            cos, sin = angle.cos(), angle.sin()
            both = torch.stack([torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)])
            self._rope = both.to(self.device, self.dtype)[:, :, None]
        return self._rope[:, positions_N]

    def forward(
        self,
        ids_N: Tensor,
        positions_N: Tensor,
        attend: Attend,
        linear: Linear,
        wrap: Callable = lambda function, *args: function(*args),
        keep_M: Tensor | None = None,
    ) -> Tensor:
        """Final hidden states `(N, D)`, normalised, of flat tokens.

        `attend(layer, q_NHE, k_NKE, v_NKE) -> (N, H, E)`; `linear(layer, group, x)` applies a group of
        linear layers; `wrap(function, x, layer)` may checkpoint a layer. With `keep_M`, only these
        tokens (each at most once) go on behind the last attention, and `(M, D)` comes back.
        """
        rope = self.rope(positions_N)
        x = F.embedding(ids_N, self.embed_VD)
        for i in range(self.shape.layers):
            keep = keep_M if i == self.shape.layers - 1 else None
            x = wrap(lambda x, i=i, keep=keep: self._layer(i, x, rope, attend, linear, keep), x)
        return rms_norm(x, self.norm, self.shape.norm_eps)

    def _layer(
        self, i: int, x: Tensor, rope: Tensor, attend: Attend, linear: Linear, keep: Tensor | None
    ) -> Tensor:
        shape, layer = self.shape, self.layers[i]
        sizes = (shape.heads, shape.kv_heads, shape.head_dim)
        h = rms_norm(x, layer.input_norm, shape.norm_eps)
        q, k, v = split_heads(linear(i, "qkv", h), sizes, layer.head_norm, shape.norm_eps, rope)
        mixed = attend(i, q, k, v).reshape(-1, shape.heads * shape.head_dim)
        if keep is not None:
            mixed, x = take(mixed, keep), take(x, keep)
        x = x + linear(i, "o", mixed)
        h = rms_norm(x, layer.post_norm, shape.norm_eps)
        return x + linear(i, "down", swiglu(linear(i, "gate_up", h)))

    def logits(self, hidden_ND: Tensor) -> Tensor:
        """Next-token logits `(N, V)`."""
        return F.linear(hidden_ND, self.head_VD)


def _head_norm(shape: Shape, weights: dict[str, Tensor], prefix: str) -> Tensor | None:
    if f"{prefix}q_norm.weight" not in weights:
        return None
    q, k = weights[f"{prefix}q_norm.weight"], weights[f"{prefix}k_norm.weight"]
    return torch.cat([q.expand(shape.heads, -1), k.expand(shape.kv_heads, -1)])


def _read_weights(folder: Path, dtype: torch.dtype, device: str) -> dict[str, Tensor]:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise DataError(f"{folder}: no *.safetensors file; build the model again")
    weights: dict[str, Tensor] = {}
    for file in files:
        try:
            with safe_open(file, framework="pt", device=device) as archive:
                for name in archive.keys():  # noqa: SIM118 - not a mapping
                    weights[name] = archive.get_tensor(name).to(dtype)
        except (SafetensorError, OSError) as error:
            raise DataError(f"{file}: unreadable ({error}); build the model again") from error
    return weights
