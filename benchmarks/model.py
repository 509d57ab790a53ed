"""The model that all contenders train: 0.82 M parameters, byte vocabulary, taught in seconds.

It learns one habit only, a few random letters and a boxed number, so that completions end at different
lengths and differ within a group.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import Qwen3Config, Qwen3ForCausalLM

from benchmarks.workload import candidates_of, pick, solve, sums
from rolewise.models.warm_start import Row, train

PAD, START, END = "<|pad|>", "<|start|>", "<|end|>"
TEMPLATE = (
    "{% for message in messages %}"
    f"{START}{{{{ message['role'] }}}}\n{{{{ message['content'] }}}}{END}\n"
    "{% endfor %}"
    f"{{% if add_generation_prompt %}}{START}assistant\n{{% endif %}}"
)
STEPS, BATCH = 150, 32


def build(folder: Path, hidden: int = 128, layers: int = 4, steps: int = STEPS) -> Path:
    """The model folder, made unless it is there; heads of 32, half as many for keys and values."""
    if (folder / "model.safetensors").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": PAD,
        "eos_token": END,
        "model_max_length": 4096,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=tokenizer.get_vocab_size(),
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=hidden // 32,
            num_key_value_heads=max(1, hidden // 64),
            head_dim=32,
            intermediate_size=3 * hidden,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            initializer_range=0.1,
            bos_token_id=None,
            pad_token_id=tokenizer.token_to_id(PAD),
            eos_token_id=tokenizer.token_to_id(END),
        )
    )
    if steps:
        train(model, _lessons(tokenizer, steps * BATCH), steps, BATCH, 3e-3, seed=0)
    model.save_pretrained(folder)
    return folder


def _tokenizer() -> Tokenizer:
    """One token per byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([PAD, START, END])
    return tokenizer


def _lessons(tokenizer: Tokenizer, count: int) -> list[Row]:
    rng = random.Random(0)
    rows = []
    for problem in sums(count, seed=1):
        asked = rng.choice(
            [
                solve(problem.question),
                pick(problem.question, candidates_of(problem, rng.getrandbits(30))),
            ]
        )
        letters = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 14)))
        prompt = f"{START}user\n{asked}{END}\n{START}assistant\n"
        answer = f"{letters}\\boxed{{{problem.answer}}}{END}"
        before, after = (
            tokenizer.encode(t, add_special_tokens=False).ids for t in (prompt, answer)
        )
        rows.append(
            Row(
                (*before, *after),
                tuple([0.0] * len(before) + [1 / len(after)] * len(after)),
            )
        )
    return rows
