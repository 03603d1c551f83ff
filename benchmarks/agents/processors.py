"""The processor of a vision-language model, also where torchvision is missing.

Transformers wants torchvision for the *video* half of many processors, which nothing here uses. Without it the same
processor class is built from its image half (Pillow back end) and tokenizer alone.
"""

from __future__ import annotations

from typing import Any


def load_processor(name: str, model_type: str) -> Any:
    """The processor of a model.

    Args:
        name: Model folder or name.
        model_type: As in the model's configuration.

    Raises:
        ValueError: When no processor belongs to this kind of model.
    """
    from transformers import AutoProcessor

    try:
        return AutoProcessor.from_pretrained(name)
    except ImportError as error:
        if "torchvision" not in str(error).lower():
            raise
        return _without_video(name, model_type)


def image_only(processor: type) -> Any:
    """A processor class that does without its video half."""

    original: Any = processor.check_argument_for_proper_class  # type: ignore[attr-defined]

    def check(self: Any, argument_name: str, argument: Any) -> Any:
        return None if argument is None else original(self, argument_name, argument)

    return type(processor.__name__, (processor,), {"check_argument_for_proper_class": check})


def _without_video(name: str, model_type: str) -> Any:
    import transformers
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES

    class_name = PROCESSOR_MAPPING_NAMES.get(model_type)
    if class_name is None:
        raise ValueError(f"no processor is known for models of type {model_type!r}")
    processor = getattr(transformers, class_name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(name)
    images = transformers.AutoImageProcessor.from_pretrained(name)  # the Pillow back end, without torchvision
    template = _chat_template(name) or tokenizer.chat_template
    parts = {"image_processor": images, "tokenizer": tokenizer, "video_processor": None}
    return image_only(processor)(**parts, chat_template=template)


def _chat_template(name: str) -> str | None:
    """The template file that processors keep beside the tokenizer's own."""
    from transformers.utils import cached_file

    path = cached_file(name, "chat_template.jinja", _raise_exceptions_for_missing_entries=False)
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()
