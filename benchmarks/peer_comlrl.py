"""One contender: CoMLRL's MAGRPOTrainer with two agents. Prints one JSON line.

`pair`: both agents act at once, the second with stored candidates. `chain`: both solve, then both see
the answers; the trainer branches on every completion, so a prompt costs (G + G^2) x 2 completions. A
step ends when the buffers of both agents are empty. Runs in the environment that `make bench` makes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import random
import time
import warnings

from benchmarks.measuring import Laps, pin_threads, report_steps
from benchmarks.workload import (
    ALPHA,
    LEARNING_RATE,
    LOADS,
    RANK,
    TEMPERATURE,
    boxed,
    candidates_of,
    pick,
    reward,
    solve,
    sums,
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--workflow", choices=["pair", "chain"], default="pair")
    parser.add_argument("--load", choices=list(LOADS), default="A")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warmup", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    opts = arguments()
    pin_threads(opts.threads)
    warnings.filterwarnings("ignore")

    import numpy as np
    import torch
    from comlrl.trainers.reinforce.magrpo import MAGRPOConfig, MAGRPOTrainer
    from datasets import Dataset
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(0)
    load, turns = LOADS[opts.load], 1 if opts.workflow == "pair" else 2
    nodes = 1 if turns == 1 else 1 + load.generations
    tokenizer = AutoTokenizer.from_pretrained(opts.model)

    def chat(text: str) -> str:
        return tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
        )

    def agent():
        model = AutoModelForCausalLM.from_pretrained(
            opts.model, dtype=torch.float32, attn_implementation="sdpa"
        )
        lora = LoraConfig(r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, target_modules="all-linear")
        return get_peft_model(model, lora)

    problems = [
        problem
        for step in range(opts.warmup + opts.steps)
        for problem in sums(load.prompts, seed=step)
    ]
    items = [
        {
            "prompt": chat(solve(p.question)),
            "stored": chat(pick(p.question, candidates_of(p, seed=0))),
        }
        for p in problems
    ]
    question_of = {item["prompt"]: p.question for item, p in zip(items, problems, strict=True)}
    if turns == 1:
        formatters = [lambda item: item["prompt"], lambda item: item["stored"]]
    else:
        formatters = [lambda item, external_prompts=None: external_prompts or item["prompt"]] * 2

    def next_turn(prompt, agent_completions, num_agents, **_):
        answers = [boxed(text) for text in agent_completions]
        return [chat(pick(question_of[prompt], [*answers, answers[0]]))] * num_agents

    laps, counts = Laps(), {"sampled": 0, "trained": 0, "rows": 0}

    # The trainer counts positional parameters: one for the completions of every agent.
    def graded(first, second):
        began = time.perf_counter()
        rewards = [(reward(a) + reward(b)) / 2 for a, b in zip(first, second, strict=True)]
        laps.add("grade", time.perf_counter() - began)
        return rewards

    class Clocked(MAGRPOTrainer):
        """The trainer as it is; generation and the emptying of buffers are clocked."""

        def _generate_completions(self, *args, **kwargs):
            out = laps.around("sample", super()._generate_completions, *args, **kwargs)
            lengths = out["response_lens"]
            counts["sampled"] += sum(map(int, lengths))
            counts["trained"] += sum(map(int, lengths)) + len(lengths) * int(
                out["prompt_input_ids"].shape[-1]
            )
            counts["rows"] += len(lengths)
            return out

        def _drain_ready_buffers(self, ready):
            if not ready:
                return super()._drain_ready_buffers(ready)
            laps.around("update", super()._drain_ready_buffers, ready)
            if not any(self.rollout_buffers):
                laps.close(**counts)
                counts.update(sampled=0, trained=0, rows=0)
            return None

    trainer = Clocked(
        agents=[agent(), agent()],
        num_agents=2,
        tokenizer=[tokenizer, tokenizer],
        train_dataset=Dataset.from_list(items),
        reward_func=graded,
        formatters=formatters,
        external_transition=None if turns == 1 else next_turn,
        wandb_config=None,
        args=MAGRPOConfig(
            num_train_epochs=1,
            agent_learning_rate=LEARNING_RATE,
            logging_steps=10**6,
            num_agents=2,
            num_generations=load.generations,
            max_new_tokens=load.tokens,
            temperature=TEMPERATURE,
            top_p=1.0,
            top_k=0,
            num_turns=turns,
            joint_mode="aligned",
            early_termination_threshold=None,
            external_prompt_passthrough=True,
            eval_interval=0,
            rollout_buffer_size=load.prompts * nodes,
            advantage_normalization=True,
            advantage_mode="mean",
            parallel_training="none",
            agent_devices="cpu",
        ),
    )
    trainer.verbose = False
    laps.start()
    trainer.train(**({"min_new_tokens": load.tokens} if load.exact else {}))
    report_steps(laps, opts.warmup, version=importlib.metadata.version("comlrl"))


if __name__ == "__main__":
    main()
