"""The shown game: which one is chosen, how it is laid out, and how skills are compared with the rules."""

from __future__ import annotations

from pathlib import Path

from seed_trainer.quickstart.transcripts import Attempt, agreement, read_attempts, show, telling_pair, write_attempts

RULED = "go to shelf 1, take mug 1"


def attempt(success: bool, turns: int = 2, skill: str = "go to shelf 1 take mug 1", reason: str = "") -> Attempt:
    """An attempt of some turns."""
    exchanges = [(f"go to shelf {turn}", f"You arrive at shelf {turn}.") for turn in range(turns)]
    stop = "success" if success else "max_steps"
    return Attempt("compact/test/3", "put a mug in desk.", success, stop, exchanges, skill, reason, RULED)


def test_attempts_come_back_as_they_were(tmp_path: Path) -> None:
    attempts = [attempt(True, skill="é"), attempt(False, reason="empty")]
    write_attempts(tmp_path / "new", attempts)
    assert [show("x", back) for back in read_attempts(tmp_path / "new")] == [show("x", one) for one in attempts]


def test_agreement_is_word_for_word_and_of_usable_skills_only() -> None:
    attempts = [attempt(True), attempt(True, skill="go to shelf 2 take mug 1"), attempt(True, reason="too_long")]
    assert agreement(attempts) == (1, 3)


def test_the_shown_game_was_lost_before_and_won_quickly_after() -> None:
    before = [attempt(True), attempt(False), attempt(False), attempt(False, reason="empty")]
    after = [attempt(True, 1), attempt(True, 5), attempt(True, 3), attempt(True, 1)]
    assert telling_pair(before, after) == 2
    assert telling_pair(before[:1], after[:1]) == 0


def test_an_attempt_reads_as_a_transcript() -> None:
    text = show("before RL", attempt(False, skill="go go", reason="repeats"))
    assert text.splitlines()[:2] == ["--- before RL: compact/test/3 ---", "put a mug in desk."]
    assert "  > go to shelf 1" in text and "not solved (max_steps) after 2 turns" in text
    assert text.endswith("skill: (unusable: repeats) go go")
