"""The metrics of `tables/cells.csv`, beside those of `records.METRICS` (split `train`)."""

EVALUATED = {
    "accuracy": "share of problems solved (Code: all hidden tests pass)",
    "reward": "mean outcome reward",
    "format_ok": "share of episodes with a parsable answer",
    "episode_tokens": "mean completion tokens of an episode",
    "episode_truncated": "share of calls that hit the response cap",
    "episode_fallback": "share of calls that could not be parsed",
    "abnormal": "share of episodes over the cap or with an engine error",
    "pass_at_all_samples": "unbiased pass@k with k = evaluation.samples, if there are several",
}

COMPARED = {
    "gain_base": "accuracy minus that of the base model in the same workflow, same problems",
    "gain_sa": "accuracy minus that of SA-RL at the checkpoint of the same name, same problems",
    "ip_minus_sp": "accuracy of the IP cell minus that of its SP twin, same checkpoint name",
    "minus_plain": "accuracy of an intervention minus that of the plain cell, same checkpoint name",
    "gain_base_p": "two-sided p-value of gain_base, before correction for multiplicity",
    "gain_sa_p": "the same of gain_sa",
    "ip_minus_sp_p": "the same of ip_minus_sp",
    "format_part": "part of gain_base that is only fewer format errors, in accuracy",
    "format_share": "the same as a share of gain_base (empty: no gain)",
}

SWAPPED = {
    "accuracy_only": "accuracy with only this role trained, its partners base models",
    "accuracy_without": "accuracy with every role but this one trained",
}

DETECTED = {
    "cliff_drop": "peak minus terminal accuracy on the report half",
    "cliff": "1 if the drop reaches the threshold and its interval excludes 0",
    "plateau_step": "first checkpoint after which accuracy gains no more (empty: still rising)",
    "plateau_level": "mean accuracy from there on",
    "entropy_collapse_depth": "(first - minimum) / first logged entropy",
}

COSTS = {
    "tokens_sampled": "completion tokens sampled in training",
    "tokens_trained": "tokens trained on",
    "wall_s": "wall seconds over all attempts",
    "cpu_s": "CPU seconds over all attempts",
    "gpu_s": "GPU seconds over all attempts",
    "peak_memory_mb": "largest resident memory, MB",
}

SIGNATURES = {
    "role_accuracy": "share of the role's outputs that are right by themselves",
    "parse_fallback": "share of the role's outputs that could not be parsed",
    "hedging": "share of outputs with a phrase of signatures.hedging_phrases",
    "distinct": "distinct tokens per emitted token of a completion",
    "mean_logprob": "mean log-probability per token, nats",
    "sampled_entropy": "mean entropy of completions, nats",
    "length_q50": "median completion tokens",
    "length_q90": "90 % quantile of completion tokens",
    "boxed": "share of outputs with a complete box",
    "code_block": "share of outputs with a fenced Python block",
    "terse": "share of outputs that are a terse pick or verdict",
    "truncation": "share of outputs that hit the response cap",
    "verdict_accepts_right": "share of parsed verdicts: Correct, and the answer was",
    "verdict_accepts_wrong": "share of parsed verdicts: Correct, but the answer was wrong",
    "verdict_rejects_right": "share of parsed verdicts: Incorrect, but the answer was right",
    "verdict_rejects_wrong": "share of parsed verdicts: Incorrect, and the answer was",
    "oracle": "share of episodes in which any parallel slot is right",
    "selection_error": "share of the oracle's episodes whose outcome is wrong",
    "wrong_agreement": "same-answer share of slot pairs where every slot is wrong",
    "wrong_agreement_gain": "the same minus the base model's",
    "slot_similarity": "mean Jaccard index of the word pairs of parallel outputs",
    "strategies": "strategies of a plan",
    "strategy_diversity": "mean Jaccard distance of the words of a plan's strategies",
    "capture_by_*": "how far the role moved to the base shape of role *: 0 unmoved, 1 arrived",
    "captured_by_*": "1 if that is capture: at least half way and the interval excludes 0",
}

CURVES_ALL = (
    "success", "reward", "format_error", "grad_norm", "entropy", "perplexity", "chi2_update",
    "ratio_update_max", "ratio_update_q999",
)  # fmt: skip
CURVES_ROLE = (
    "entropy", "perplexity", "chi2_update", "ratio_update_max", "grad_norm", "role_grad_norm",
    "role_grad_share", "role_grad_mass", "length_mean", "slots", "coherence",
    "coherence_within", "coherence_null", "coherence_null_hi", "kl_base",
)  # fmt: skip
"""Training metrics whose whole course is kept, for the whole step and for every role."""

EXTREMES = (
    "rows", "tokens", "entropy", "perplexity", "top_prob", "distinct", "chi2_mismatch",
    "chi2_update", "kl_sampler", "kl_base", "ratio_update_max", "ratio_update_q999",
    "clip_fraction", "grad_norm", "role_grad_norm", "role_grad_share", "role_grad_mass",
    "coherence", "coherence_within", "coherence_null_hi", "amplification", "delta_theta",
    "length_mean", "truncated", "fallback", "zero_variance_groups",
)  # fmt: skip
"""Training metrics of which `<metric>_first`, `_max`, `_min` and `_last` are given, with their steps."""

MISSING = "missing"
"""Metric of the one row that stands for a cell without results."""
