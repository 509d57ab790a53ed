"""Chat rendering and tokenisation from the files of a Hugging Face model folder.

Loads in milliseconds, where importing transformers takes seconds; a test holds it equal to
`AutoTokenizer.apply_chat_template`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from rolewise.errors import DataError

if TYPE_CHECKING:
    from rolewise.workflows.base import Message


class ChatTokenizer:
    """Text to token ids and back, with the model's own chat template."""

    def __init__(self, folder: Path, enable_thinking: bool = False):
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            settings = json.loads((folder / "tokenizer_config.json").read_text())
            template_file = folder / "chat_template.jinja"
            template = (
                template_file.read_text() if template_file.is_file() else settings["chat_template"]
            )
        except (OSError, ValueError, KeyError) as error:
            raise DataError(
                f"{folder}: no usable tokenizer with a chat template ({error})"
            ) from error
        except Exception as error:  # tokenizers raises a bare Exception
            raise DataError(f"{folder}/tokenizer.json: unreadable ({error})") from error
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _raise
        environment.filters["tojson"] = lambda value, **kw: json.dumps(
            value, ensure_ascii=False, **kw
        )
        try:
            self._template = environment.from_string(template)
        except TemplateError as error:
            raise DataError(f"{folder}: unusable chat template ({error})") from error
        self._special = {
            key: _content(settings.get(key)) for key in ("bos_token", "eos_token", "pad_token")
        }
        self._thinking = enable_thinking
        self.eos_ids = frozenset(self._eos(folder))

    def _eos(self, folder: Path) -> list[int]:
        ids = [self._tokenizer.token_to_id(self._special["eos_token"] or "")]
        generation = folder / "generation_config.json"
        if generation.is_file():
            try:
                value = json.loads(generation.read_text()).get("eos_token_id")
            except (ValueError, AttributeError) as error:
                raise DataError(f"{generation}: unreadable ({error})") from error
            ids += value if isinstance(value, list) else [value]
        found = [i for i in ids if i is not None]
        if not found:
            raise DataError(f"{folder}: the tokenizer names no end-of-turn token")
        return found

    def render(self, messages: Sequence[Message]) -> str:
        """The conversation as the model reads it, ending where the assistant begins."""
        return self._template.render(
            messages=[{"role": m.role, "content": m.content} for m in messages],
            add_generation_prompt=True,
            enable_thinking=self._thinking,
            tools=None,
            **{key: value for key, value in self._special.items() if value is not None},
        )

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of rendered text; special tokens in it are recognised, none are added."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_batch(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """`encode` of many texts."""
        return [
            tuple(e.ids)
            for e in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids, special tokens left out."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)


def strip_thinking(text: str) -> str:
    """The text after the last thinking block, as it is passed on to other roles."""
    return text.rpartition("</think>")[2].strip() if "</think>" in text else text


def _content(token: object) -> str | None:
    return token.get("content") if isinstance(token, dict) else token


def _raise(message: str) -> None:
    raise DataError(f"chat template: {message}")
