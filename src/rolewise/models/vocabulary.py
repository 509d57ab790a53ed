"""A small byte-level BPE vocabulary and a chat template for the embedded models.

Phrases merge across blanks within a line, so that a prompt costs few tokens; digits and signs stay
alone, so that numbers and expressions can be copied and computed symbol by symbol. Every text can be
encoded, byte by byte if need be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from rolewise.records import write_text

USER, ASSISTANT, END, PAD = "<|user|>", "<|assistant|>", "<|end|>", "<|pad|>"
SPECIAL = (PAD, END, USER, ASSISTANT)
SMALLEST_VOCABULARY = 256 + len(SPECIAL)
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}"
    f"{ASSISTANT}{{{{ message['content'] }}}}{END}"
    "{% else %}"
    f"{USER}{{{{ message['content'] }}}}"
    "{% endif %}"
    "{% endfor %}"
    f"{{% if add_generation_prompt %}}{ASSISTANT}{{% endif %}}"
)
_PIECES = r"[0-9+*\-]|[^0-9+*\-\n]*\n|[^0-9+*\-\n]+"


def train_vocabulary(texts: Iterable[str], size: int) -> Tokenizer:
    """A vocabulary of at most `size` entries; equal texts in equal order give equal vocabularies."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=20,
            special_tokens=list(SPECIAL),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    return tokenizer


def save_vocabulary(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the files that `AutoTokenizer` reads: vocabulary, settings, chat template."""
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": PAD,
        "eos_token": END,
        "model_max_length": 4096,
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
    }
    write_text(folder / "tokenizer.json", tokenizer.to_str(pretty=True))
    write_text(folder / "tokenizer_config.json", json.dumps(settings, indent=2) + "\n")
    write_text(folder / "chat_template.jinja", CHAT_TEMPLATE)
