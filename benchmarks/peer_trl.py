"""One contender: TRL's GRPOTrainer, one agent, LoRA on all linear layers. Prints one JSON line.

Runs in an environment of its own (`make bench` makes it). Precision and memory options are set to the
fastest for this size: float32, no gradient checkpointing, all rows of a step in one pass.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import tempfile
import time
import warnings

from benchmarks.measuring import Laps, pin_threads, report_steps
from benchmarks.workload import (
    ALPHA,
    LEARNING_RATE,
    LOADS,
    RANK,
    TEMPERATURE,
    reward,
    solve,
    sums,
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--load", choices=list(LOADS), default="A")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warmup", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    opts = arguments()
    pin_threads(opts.threads)
    warnings.filterwarnings("ignore")

    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        PrinterCallback,
        TrainerCallback,
    )
    from trl import GRPOConfig, GRPOTrainer

    load, total = LOADS[opts.load], opts.warmup + opts.steps
    rows = load.prompts * load.generations
    tokenizer = AutoTokenizer.from_pretrained(opts.model)
    prompts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": solve(problem.question)}],
            tokenize=False,
            add_generation_prompt=True,
        )
        for step in range(total)
        for problem in sums(load.prompts, seed=step)
    ]
    length_of = {p: len(tokenizer(p, add_special_tokens=False).input_ids) for p in set(prompts)}
    laps, counts = Laps(), {"sampled": 0, "trained": 0, "rows": rows}

    def graded(prompts, completions, completion_ids, **_):
        began = time.perf_counter()
        rewards = [reward(text) for text in completions]
        counts["sampled"] = sum(map(len, completion_ids))
        counts["trained"] = counts["sampled"] + sum(length_of[p] for p in prompts)
        laps.add("grade", time.perf_counter() - began)
        return rewards

    class Clocked(GRPOTrainer):
        """The trainer as it is; generation is clocked."""

        def _generate_single_turn(self, *args, **kwargs):
            return laps.around("sample", super()._generate_single_turn, *args, **kwargs)

    class Steps(TrainerCallback):
        """Closes a lap after every optimiser step; what is not sampling or grading is the update."""

        def on_train_begin(self, *args, **kwargs):
            laps.start()

        def on_step_end(self, *args, **kwargs):
            laps.close(**counts)
            lap = laps.steps[-1]
            lap["update"] = lap["step"] - lap["sample"] - lap["grade"]

    settings = GRPOConfig(
        output_dir=tempfile.mkdtemp(prefix="bench_trl_"),
        per_device_train_batch_size=rows,
        num_generations=load.generations,
        max_completion_length=load.tokens,
        generation_kwargs={"min_new_tokens": load.tokens} if load.exact else None,
        temperature=TEMPERATURE,
        top_k=0,
        top_p=1.0,
        beta=0.0,
        loss_type="grpo",
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        warmup_steps=0,
        weight_decay=0.0,
        max_grad_norm=1.0,
        optim="adamw_torch_fused",
        max_steps=total,
        logging_steps=10**6,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        dataloader_pin_memory=False,
        shuffle_dataset=False,
        seed=0,
    )
    trainer = Clocked(
        model=AutoModelForCausalLM.from_pretrained(
            opts.model, dtype=torch.float32, attn_implementation="sdpa"
        ),
        reward_funcs=graded,
        args=settings,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        processing_class=tokenizer,
        peft_config=LoraConfig(
            r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, target_modules="all-linear"
        ),
        callbacks=[Steps()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    report_steps(laps, opts.warmup, version=importlib.metadata.version("trl"))


if __name__ == "__main__":
    main()
