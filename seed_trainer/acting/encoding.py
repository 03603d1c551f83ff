"""Chat messages to token ids and back, with the model's own chat template.

Sampled tokens are never decoded and encoded again: a growing conversation is extended by the ids *between* the end of
a reply and the next generation prompt. It builds no messages; that is :mod:`seed_envs.chat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seed_envs.chat import Message, picture_parts
from seed_envs.tool_templates import render_chats
from seed_trainer.acting.pictures import PictureReader

TokenIds = list[int]
MAX_KNOWN_CONTINUATIONS = 20_000


def images_of(messages: Sequence[Message]) -> list[Any]:
    """Return the images of a conversation in order."""
    return [part["image"] for part in picture_parts(messages)]


def _text_key(messages: Sequence[Message]) -> str:
    """A key under which equal messages render equally; pictures become placeholders."""
    return repr([(message["role"], _without_images(message["content"])) for message in messages])


def _without_images(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [part["text"] if part["type"] == "text" else (part["type"],) for part in content]


class ChatEncoder:
    """Renders and encodes conversations.

    Args:
        processing_class: Tokenizer, or processor of a vision-language model.
        tokenizer: The tokenizer itself.
        chat_template: Template to use instead of the tokenizer's own.
        template_kwargs: Extra variables of the template (for example ``enable_thinking``).
        eos_token_ids: Every id that ends a reply.
    """

    def __init__(
        self,
        processing_class: Any,
        tokenizer: Any,
        chat_template: str | None = None,
        template_kwargs: dict[str, Any] | None = None,
        eos_token_ids: Sequence[int] = (),
    ) -> None:
        self.processing_class = processing_class
        self.tokenizer = tokenizer
        self.chat_template = chat_template
        self.template_kwargs = dict(template_kwargs or {})
        self.eos_token_ids = list(eos_token_ids) or [tokenizer.eos_token_id]
        self.pictures = PictureReader(processing_class) if processing_class is not tokenizer else None
        # Environments repeat themselves, and rendering a template costs more than a tiny model's forward pass.
        self._known: dict[tuple[str, tuple[str, ...]], TokenIds] = {}
        if chat_template is None and not getattr(processing_class, "chat_template", None):
            raise ValueError(
                "the tokenizer has no chat template, which SEED needs to build conversations; use an instruction-tuned "
                "model, or set chat_template in its tokenizer_config.json"
            )

    def _render(self, conversations: Sequence[Sequence[Message]], generation_prompt: bool) -> list[str]:
        if not conversations:
            return []
        if self.pictures is not None:
            from trl.data_utils import prepare_multimodal_messages

            conversations = [prepare_multimodal_messages(list(messages)) for messages in conversations]
        variables = {"chat_template": self.chat_template, **self.template_kwargs}
        return render_chats(self.processing_class, conversations, generation_prompt, **variables)

    def _encode_texts(self, texts: list[str]) -> list[TokenIds]:
        return [list(ids) for ids in self.tokenizer(texts, add_special_tokens=False)["input_ids"]] if texts else []

    def _shown(self, conversations: Sequence[Sequence[Message]]) -> list[tuple[str, ...]]:
        """Return what stands for the pictures of every conversation."""
        if self.pictures is None:
            return [()] * len(conversations)
        return self.pictures.texts([images_of(messages) for messages in conversations])

    def _filled(self, texts: list[str], shown: Sequence[tuple[str, ...]]) -> list[str]:
        if self.pictures is None:
            return texts
        return [self.pictures.fill(text, texts_of) for text, texts_of in zip(texts, shown, strict=True)]

    def picture_fields(self, rows: Sequence[Sequence[Any]], device: Any) -> dict[str, Any]:
        """Return the image inputs of rows of pictures as TRL's columns; none for a model that reads text."""
        fields = {} if self.pictures is None else self.pictures.fields(rows)
        return {name: value.to(device) if hasattr(value, "to") else value for name, value in fields.items()}

    def prompts(self, conversations: Sequence[Sequence[Message]], generation_prompt: bool = True) -> list[TokenIds]:
        """Encode conversations, by default up to and including the generation prompt.

        Images become as many placeholder tokens as the processor makes of them.
        """
        texts = self._render(conversations, generation_prompt)
        return self._encode_texts(self._filled(texts, self._shown(conversations)))

    def continuations(self, conversations: Sequence[Sequence[Message]]) -> list[TokenIds]:
        """Encode what follows a finished reply: new messages and the next generation prompt.

        Args:
            conversations: The new messages of each conversation (usually one user message).

        Returns:
            The ids after the reply's end-of-turn token, which they do not contain.

        Raises:
            ValueError: If the chat template rewrites earlier turns, so that no conversation can be extended.
        """
        keys = list(zip(map(_text_key, conversations), self._shown(conversations), strict=True))
        fresh = {key: messages for key, messages in zip(keys, conversations, strict=True) if key not in self._known}
        if fresh:
            if len(self._known) + len(fresh) > MAX_KNOWN_CONTINUATIONS:
                self._known.clear()
                fresh = dict(zip(keys, conversations, strict=True))
            texts = self._filled(self._continued_texts(list(fresh.values())), [shown for _, shown in fresh])
            self._known.update(zip(fresh, self._encode_texts(texts), strict=True))
        return [list(self._known[key]) for key in keys]

    def _continued_texts(self, conversations: Sequence[Sequence[Message]]) -> list[str]:
        before: list[Message] = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
        base = self._render([before], generation_prompt=False)[0]
        ends = [self.tokenizer.convert_ids_to_tokens(token) for token in self.eos_token_ids]
        cut = max((base.rfind(end) + len(end) for end in ends if end in base), default=-1)
        texts = self._render([[*before, *messages] for messages in conversations], generation_prompt=True)
        if cut < 0 or any(not text.startswith(base[:cut]) for text in texts):
            raise ValueError(
                "this chat template does not keep earlier turns unchanged (or ends replies without an end-of-turn "
                "token), so a conversation cannot be extended token by token; use rollout_layout=turn"
            )
        return [text[cut:] for text in texts]

    def conversation(
        self, prompt: Sequence[Message], completion: Sequence[Message], learned: Sequence[bool]
    ) -> tuple[TokenIds, list[int]]:
        """Encode a finished conversation exactly as a rollout in the ``episode`` layout would have made it.

        Args:
            prompt: What stands before the first reply.
            completion: Replies and the user messages between them, a reply first.
            learned: One flag per message of the completion.

        Returns:
            Ids, and a mask: 1 on the ids (the end of turn included) of the replies that are learned.
        """
        ids = self.prompts([prompt])[0]
        mask = [0] * len(ids)
        for message, flag in zip(completion, learned, strict=True):
            if message["role"] == "assistant":
                added = [*self._encode_texts([message["content"]])[0], self.eos_token_ids[0]]
            else:
                added = self.continuations([[message]])[0]
            ids, mask = ids + added, mask + [int(flag)] * len(added)
        return ids, mask

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of a reply without special tokens."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def length(self, messages: Sequence[Message], generation_prompt: bool = True) -> int:
        """Return the number of tokens of one conversation, by default as a prompt."""
        return len(self.prompts([messages], generation_prompt)[0])

    def ended(self, ids: Sequence[int]) -> bool:
        """Return whether a reply ends with an end-of-turn token."""
        return bool(ids) and ids[-1] in self.eos_token_ids
