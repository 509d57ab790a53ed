"""The vLLM engine of this process: how it is started, what the study needs of it, how it ends.

It lives as long as the process, one at a time: starting it takes far longer than loading an adapter. It
runs no process of its own, so that nothing can outlive a run.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rolewise.config import canonical_json
from rolewise.errors import ConfigError
from rolewise.policy.policy import Policy
from rolewise.sampling import parallel

if TYPE_CHECKING:
    from vllm.v1.engine.llm_engine import LLMEngine

log = logging.getLogger(__name__)

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    # Left alone, the CPU build would bind the threads that the trainer runs on.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "2",
}
LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)


@dataclass(frozen=True)
class Engine:
    """A started engine, and whether its requests may have seeds of their own."""

    inner: LLMEngine
    seeded: bool


# The engine of this process under the settings it was started with; never more than one.
_running: dict[str, Engine] = {}


def open_engine(
    folder: Path, policy: Policy, longest: int, processed: bool, extra: dict[str, Any]
) -> Engine:
    """The engine of this process for a model folder; another model or other settings replace it."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine
    except ImportError as error:
        raise ConfigError(
            [f"sampling.backend: vllm is not usable here ({error}); run `make install-vllm`"]
        ) from error
    arguments = engine_arguments(folder, policy, longest, processed) | extra
    key = canonical_json(arguments)
    if key not in _running:
        close_engine()
        try:
            settings = EngineArgs(**arguments)
        except TypeError as error:
            raise ConfigError([f"sampling.vllm: {error}"]) from error
        atexit.register(close_engine)
        _running[key] = Engine(LLMEngine.from_engine_args(settings), seeded=True)
        if not seeds_work(_running[key].inner):
            log.warning("this build of vLLM cannot use seeds; the draws of a step share one")
            close_engine()
            _running[key] = Engine(LLMEngine.from_engine_args(settings), seeded=False)
    return _running[key]


def seeds_work(engine: LLMEngine) -> bool:
    """Whether the engine survives a request with a seed."""
    from vllm import SamplingParams

    trial = SamplingParams(seed=1, max_tokens=2, detokenize=False, ignore_eos=True)
    try:
        engine.add_request("seeds", {"prompt_token_ids": [0]}, trial)
        while engine.has_unfinished_requests():
            engine.step()
    except RuntimeError:
        return False
    return True


def close_engine() -> None:
    """End the engine of this process, if it has one."""
    atexit.unregister(close_engine)
    while _running:
        _, engine = _running.popitem()
        engine.inner.engine_core.shutdown()


def engine_arguments(folder: Path, policy: Policy, longest: int, processed: bool) -> dict[str, Any]:
    """What the study needs of an engine; `longest` is prompt plus completion in tokens."""
    dtype = str(policy.backbone.dtype).removeprefix("torch.")
    arguments: dict[str, Any] = {
        "model": str(folder),
        "skip_tokenizer_init": True,
        "generation_config": "vllm",
        "dtype": dtype,
        "max_model_len": longest,
        "logprobs_mode": "processed_logprobs" if processed else "raw_logprobs",
        "enable_prefix_caching": True,
        "disable_log_stats": True,
        "enforce_eager": policy.backbone.device.type == "cpu",
        "enable_sleep_mode": policy.backbone.device.type == "cuda",
        "seed": 0,
    }
    if policy.adapters:
        rank = max(adapter.rank for adapter in policy.adapters.values())
        fitting = [size for size in LORA_RANKS if size >= rank]
        if not fitting:
            raise ConfigError([f"lora.rank: {rank}; vLLM serves at most {LORA_RANKS[-1]}"])
        arguments |= {
            "enable_lora": True,
            "max_lora_rank": fitting[0],
            "max_loras": len(policy.adapters),
            "max_cpu_loras": len(policy.adapters),
        }
    if parallel.world() > 1:
        # One engine per process of torchrun, which has already set up its process group.
        arguments["distributed_executor_backend"] = "external_launcher"
    return arguments


def check_context(folder: Path, longest: int, task: str) -> None:
    """ConfigError if the model in `folder` cannot read `longest` tokens."""
    context = json.loads((folder / "config.json").read_text()).get("max_position_embeddings")
    if context is not None and longest > context:
        raise ConfigError(
            [f"caps.{task}: prompt + response = {longest} tokens, {folder} reads {context}"]
        )
