"""The shipped tiny configurations resolve, say what they will do, and ask for the games they mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("trl", reason="packages: needs trl")

from seed_trainer.cli import main
from seed_trainer.commands.building import environment
from seed_trainer.settings.arguments import EnvArguments


def test_quick_start_trains_on_listed_games_and_keeps_its_own_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rl", "--config", "quickstart", "--dry_run"]) == 0
    text = capsys.readouterr().out
    assert "8 tasks x 8 = 64" in text and "600 training tasks" in text
    assert "episode: one row per episode" in text
    line = next(line for line in text.splitlines() if line.startswith("| opd_coef "))
    assert "0.3" in line and "config quickstart" in line


def test_grpo_is_the_same_configuration_without_distillation(capsys: pytest.CaptureFixture[str]) -> None:
    tables = []
    for method in ("seed", "grpo"):
        assert main(["rl", "--config", "quickstart", "--method", method, "--dry_run"]) == 0
        rows = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
        tables.append({name.strip(): value.strip() for name, value in rows})
    changed = {name for name in tables[0] if tables[0][name] != tables[1].get(name)}
    assert changed <= {"method", "opd_coef"} and float(tables[1]["opd_coef"]) == 0


def test_official_configuration_reads_official_games(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEED_DATA_DIR", str(data_dir))
    assert main(["rl", "--config", "alfworld_official_tiny", "--dry_run"]) == 0
    assert "620 training tasks" in capsys.readouterr().out


def test_official_configuration_without_data_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEED_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    assert main(["rl", "--config", "alfworld_official_tiny", "--dry_run"]) == 2
    assert "python -m seed_envs.alfworld download" in capsys.readouterr().err


def test_pictures_are_one_row_a_turn_and_can_be_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rl", "--config", "quickstart_vision", "--dry_run"]) == 0
    text = capsys.readouterr().out
    assert "8 tasks x 8 = 64" in text and "turn: one row per turn" in text and "| env_blind " in text
    shown: dict[str, list[NDArray[np.uint8]]] = {}
    for blind in ("no", "blank", "shuffle"):
        env = environment(EnvArguments("seed/Sokoban-v0", "compact", env_blind=blind))[0]()
        shown[blind] = [env.reset(seed=seed, options={"split": "validation"})[0]["image"] for seed in (0, 1, 0)]
        env.close()
    assert not np.any(shown["blank"])
    assert all(not np.array_equal(*pair) for pair in zip(shown["no"], shown["shuffle"], strict=True))
    assert np.array_equal(shown["shuffle"][0], shown["shuffle"][2]), "a task has one donor"


def test_words_cannot_be_played_blind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rl", "--config", "quickstart", "--env_blind", "shuffle", "--dry_run"]) == 2
    assert "blind play takes pictures away, and this profile shows none" in capsys.readouterr().err
