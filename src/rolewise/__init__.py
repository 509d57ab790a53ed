"""Role-aware reinforcement learning of multi-agent LLM workflows, as a reproducible pipeline."""

__version__ = "0.1.0"
