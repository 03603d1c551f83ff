"""The processor of a vision-language model, read alike by trainer and harness, also where torchvision is missing.

Transformers wants torchvision for the *video* half of many processors, which nothing here uses. Without it the same
processor class is built from its image half (Pillow back end) and its tokenizer alone. Nothing is imported before a
processor is asked for.
"""

from __future__ import annotations

from typing import Any

from seed_envs.errors import DependencyMissing


def sees(config: Any) -> bool:
    """Whether a model's configuration has a vision part."""
    return getattr(config, "vision_config", None) is not None


def load_encoder(name: str, revision: str | None = None) -> Any:
    """What encodes conversations for a model: the processor of one that sees, else the tokenizer.

    Args:
        name: Model folder or hub name.
        revision: Revision on the hub.

    Raises:
        DependencyMissing, OSError, ValueError: As :func:`load_processor`.
    """
    from transformers import AutoTokenizer

    processor = seeing_processor(name, {"revision": revision})
    return AutoTokenizer.from_pretrained(name, revision=revision or "main") if processor is None else processor


def seeing_processor(name: str, options: Any = None) -> Any:
    """The processor of a model that sees, or None for one that reads text alone.

    Args:
        name: Model folder or hub name.
        options: What the model is loaded with; its ``revision`` counts.

    Raises:
        DependencyMissing, OSError, ValueError: As :func:`load_processor`.
    """
    from transformers import AutoConfig

    revision = (options or {}).get("revision")
    config = AutoConfig.from_pretrained(name, **({} if revision is None else {"revision": revision}))
    return load_processor(name, revision) if sees(config) else None


def load_processor(name: str, revision: str | None = None) -> Any:
    """The processor of a model, with the chat template of its tokenizer where it has none of its own.

    Args:
        name: Model folder or hub name.
        revision: Revision on the hub.

    Raises:
        DependencyMissing: When the processor needs a package that is not installed.
        OSError: When files are missing.
        ValueError: When the folder holds no processor that reads pictures.
    """
    options = {} if revision is None else {"revision": revision}
    try:
        processor = _whole(name, options) or _image_half(name, options)
    except ImportError as error:
        reason = " ".join(str(error).split())
        raise DependencyMissing(f"the processor of model {name!r} cannot be read: {reason}") from error
    if getattr(processor, "image_processor", None) is None:
        raise ValueError(f"model {name!r} has a vision part, but no processor that reads pictures")
    if not processor.chat_template:
        processor.chat_template = processor.tokenizer.chat_template
    return processor


class _NoVideo:
    """Stands where a video half would: SmolVLM asks it for these before every conversation, with or without a video."""

    num_frames = fps = None


def image_only(processor: Any) -> Any:
    """A processor class that does without its video half.

    Args:
        processor: A class of transformers.

    Returns:
        A class of the same name whose video half is neither read, nor used, nor saved.
    """

    class ImageOnly(processor):
        video_processor = _NoVideo

        @classmethod
        def get_attributes(cls) -> list[str]:
            return [part for part in processor.get_attributes() if part != "video_processor"]

        @classmethod
        def _get_arguments_from_pretrained(cls, name: str, processor_dict: Any = None, **options: Any) -> list[Any]:
            from transformers import AutoImageProcessor, AutoTokenizer

            known: dict[str, Any] = {"image_processor": AutoImageProcessor, "tokenizer": AutoTokenizer}
            parts = processor.get_attributes()  # in the order of the constructor's arguments
            return [known[part].from_pretrained(name, **options) if part in known else None for part in parts]

    ImageOnly.__name__ = ImageOnly.__qualname__ = processor.__name__
    return ImageOnly


def _whole(name: str, options: dict[str, str]) -> Any:
    """The processor as transformers reads it, or None where its video half stands in the way."""
    from transformers import AutoProcessor

    try:
        return AutoProcessor.from_pretrained(name, **options)
    except ImportError as error:
        if "torchvision" not in str(error).lower():
            raise
    except OSError as error:  # saved by an installation without torchvision: there is no video half to read
        if "video processor" not in str(error):
            raise
    return None


def _image_half(name: str, options: dict[str, str]) -> Any:
    from transformers import AutoConfig
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    config = AutoConfig.from_pretrained(name, **options)
    known: Any = PROCESSOR_MAPPING
    if type(config) not in known:
        raise ValueError(f"no processor is known for models of type {config.model_type!r}")
    return image_only(known[type(config)]).from_pretrained(name, **options)
