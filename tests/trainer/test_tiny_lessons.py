"""The curriculum: what is played, what is learned from it, and that it is the same every time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

pytest.importorskip("transformers", reason="packages: needs transformers")

from seed_envs.profiles import get_profile
from seed_trainer.tiny.corpus import SampleEncoder
from seed_trainer.tiny.lessons import BASE, ENV_ID, FUMBLING, MECHANICS, SKILFUL, Classroom, Part
from seed_trainer.tiny.recipe import compact_ids, room_ids
from seed_trainer.tiny.tokenizer import build_tokenizer
from seed_trainer.tiny.words import UNKNOWN

COMPACT = get_profile(ENV_ID, "compact")
TERSE = get_profile(ENV_ID, "terse")


@pytest.fixture
def classroom() -> Iterator[Classroom]:
    with contextlib.closing(Classroom(COMPACT, SampleEncoder(build_tokenizer()), "test")) as room:
        yield room


def test_fumbling_wins_sometimes_and_skilful_play_on_a_skill_wins_nearly_always(classroom: Classroom) -> None:
    from seed_envs.alfworld.annotator import annotate_terse

    tasks = compact_ids(120)
    fumbled = classroom.play([Part(task, FUMBLING, slips=0.03) for task in tasks])
    skills = [annotate_terse(episode) for episode in fumbled]
    again = classroom.play(
        [Part(task, SKILFUL, skill, followed=True) for task, skill in zip(tasks, skills, strict=True)]
    )
    rates = [sum(episode.success for episode in episodes) / len(tasks) for episodes in (fumbled, again)]
    assert 0.03 < rates[0] < 0.3
    assert rates[1] > 0.9
    assert any(not step.action_valid for episode in fumbled for step in episode.steps)


def test_lessons_are_the_same_in_a_second_classroom(classroom: Classroom) -> None:
    with contextlib.closing(Classroom(COMPACT, SampleEncoder(build_tokenizer()), "test")) as other:
        tasks = compact_ids(20)
        assert list(classroom.lessons(tasks, BASE)) == list(other.lessons(tasks, BASE))


def test_samples_hold_no_unknown_word_and_learn_replies_only(classroom: Classroom) -> None:
    tokenizer = build_tokenizer()
    samples = list(classroom.lessons(compact_ids(24), BASE))
    with contextlib.closing(Classroom(TERSE, SampleEncoder(tokenizer), "rooms")) as rooms:
        samples += rooms.lessons(room_ids(24), MECHANICS)
    user, agent, unknown = tokenizer.convert_tokens_to_ids(["<|user|>", "<|agent|>", UNKNOWN])
    for sample in samples:
        assert unknown not in sample.ids
        speaker = user
        for token, learned in zip(sample.ids, sample.learned, strict=True):
            speaker = token if token in (user, agent) else speaker
            assert not learned or speaker == agent
        assert any(sample.learned)


def test_pretraining_stays_away_from_panels_and_from_the_listed_training_games() -> None:
    from seed_envs.alfworld.sources import TaskSource

    source = TaskSource()
    panels = [task for part in ("train", "validation", "test") for task in source.ids(f"compact_{part}")]
    assert not set(compact_ids(5000)) & set(panels)
