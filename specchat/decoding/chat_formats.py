"""Chat formats for model files that carry no template of their own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """A Jinja chat template, the control tokens that it needs, and the stop strings that end a reply."""

    name: str
    needs: frozenset[str]
    template: str
    stop: tuple[str, ...] = ()


FORMATS = (
    ChatFormat(
        "ChatML",
        frozenset({"<|im_start|>", "<|im_end|>"}),
        "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    ),
    ChatFormat(
        "Llama 3",
        frozenset({"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}),
        "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message.role +"
        " '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
    ),
    ChatFormat(
        "Gemma",
        frozenset({"<start_of_turn>", "<end_of_turn>"}),
        "{{ bos_token }}{% for message in messages if message.role != 'system' %}{{ '<start_of_turn>' +"
        " ('model' if message.role == 'assistant' else 'user') + '\\n' + message.content | trim + '<end_of_turn>\\n' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
    ),
)
"""Formats that a model's control tokens give away."""

PLAIN = ChatFormat(
    "plain",
    frozenset(),
    "{% for message in messages %}{% if message.role == 'system' %}{{ message.content + '\\n\\n' }}"
    "{% elif message.role == 'user' %}{{ 'User: ' + message.content + '\\n' }}"
    "{% else %}{{ 'Assistant:' + ('' if message.content[:1] == ' ' else ' ') + message.content + '\\n' }}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}",
    stop=("\nUser:",),
)
"""Lines that begin with "User:" and "Assistant:", for a model of which nothing is known."""


def format_for(control_texts: frozenset[str]) -> ChatFormat:
    """The format that fits a vocabulary with these control tokens."""
    return next((each for each in FORMATS if each.needs <= control_texts), PLAIN)
