"""Manifests: hashed, in listed order, helpful about unknown ids."""

from __future__ import annotations

import pytest

from seed_envs.errors import DataInvalid, UnknownTask
from seed_envs.tasks import Manifest, TaskSpec


def test_round_trip_keeps_order_meta_and_hash(tmp_path):
    manifest = Manifest("demo/test", ("b/2", "a/1", "ü/3"), {"source": "three ids"})
    manifest.save(tmp_path / "m.txt")
    loaded = Manifest.load(tmp_path / "m.txt")
    assert loaded == manifest
    assert list(loaded) == ["b/2", "a/1", "ü/3"]
    assert loaded.meta == {"source": "three ids"}
    assert loaded.sha256 == manifest.sha256


def test_the_hash_depends_on_order_and_nothing_else():
    assert Manifest("x", ("a", "b")).sha256 != Manifest("x", ("b", "a")).sha256
    assert Manifest("x", ("a", "b")).sha256 == Manifest("y", ("a", "b"), {"k": "v"}).sha256


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "m.txt"
    Manifest("demo", ("a", "b")).save(path)
    path.write_text(path.read_text().replace("\nb\n", "\nc\n"))
    with pytest.raises(DataInvalid, match="hash"):
        Manifest.load(path)


def test_a_file_without_header_is_refused(tmp_path):
    (tmp_path / "m.txt").write_text("a\nb\n")
    with pytest.raises(DataInvalid, match="sha256"):
        Manifest.load(tmp_path / "m.txt")


def test_a_file_that_is_no_text_is_named(tmp_path):
    (tmp_path / "m.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(DataInvalid, match=r"m\.txt: not UTF-8"):
        Manifest.load(tmp_path / "m.txt")


def test_duplicates_are_refused():
    with pytest.raises(DataInvalid, match="twice"):
        Manifest("demo", ("a", "a"))


@pytest.mark.parametrize("bad", ["pick/kitchen-12", None, 3, ""])
def test_unknown_ids_raise_a_value_error_with_suggestions(bad):
    manifest = Manifest("demo", ("pick/kitchen-1", "look/bedroom-2"))
    with pytest.raises(UnknownTask) as caught:
        manifest.check(bad)
    assert isinstance(caught.value, ValueError)
    assert repr(bad) in str(caught.value)
    if bad == "pick/kitchen-12":
        assert "pick/kitchen-1" in str(caught.value)


def test_reset_arguments_leave_out_what_is_not_set():
    assert TaskSpec(seed=3).reset_arguments() == {"seed": 3, "options": {}}
    spec = TaskSpec(task_id="a", split="test", options={"scene": 3})
    assert spec.reset_arguments() == {"seed": None, "options": {"task_id": "a", "split": "test", "scene": 3}}
