"""The WebShop environment: tasks and splits, fixed mode, hostile actions, snapshots, determinism, memory."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import gymnasium as gym
import pytest
from webshop_catalogues import ROWS, open_small_shop

import seed_envs  # noqa: F401
from seed_envs.errors import DataInvalid, DataMissing, EpisodeEnded, UnknownOption, UnknownTask
from seed_envs.webshop import writers
from seed_envs.webshop.env import WebShopEnv
from seed_envs.webshop.goals import Goal
from seed_envs.webshop.modes import resolve_rules
from seed_envs.webshop.reward import SCORERS
from seed_envs.webshop.search import TooManyWords, check_length
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.store import ShopSpec, get_shop
from seed_envs.webshop.tasks import SCHEMES


@pytest.fixture(scope="module")
def env() -> WebShopEnv:
    return WebShopEnv()


@pytest.fixture(scope="module")
def real(data_dir: Path) -> Path:
    folder = data_dir / "webshop"
    if not (folder / "items_shuffle_1000.json.gz").is_file():
        pytest.skip(f"real data: {folder}/items_shuffle_1000.json.gz is missing")
    return folder


def real_shop(folder: Path, mode: str = "original", human: bool = False) -> Shop:
    return get_shop(ShopSpec(resolve_rules(mode), catalogue="files", folder=str(folder), human_goals=human))


def exact_purchase_counts(goal: Goal, mode: str) -> bool:
    return SCORERS[mode](goal.product, dict(goal.options), goal).total == 1.0


def play(env: WebShopEnv, task_id: str, policy: str) -> tuple[float, int, dict]:
    env.reset(options={"task_id": task_id})
    for step in range(1, 16):
        _, _, done, _, info = env.step(getattr(env, policy)())
        if done:
            return info["score"], step, info
    raise AssertionError(f"{policy} did not finish {task_id} within 15 steps")


# -- the real 1,000 products -----------------------------------------------------------------------------------------


def test_real_set_has_the_known_goals(real: Path) -> None:
    shop = real_shop(real)
    assert (len(shop.products), len(shop.goals)) == (1000, 6910)
    order = list(range(6910))
    random.Random(233).shuffle(order)
    assert order[:5] == [3963, 2638, 2193, 1856, 4358]
    assert len(real_shop(real, human=True).goals) == 13
    assert "word rule" not in shop.noun_source


def test_real_set_458_goals_are_out_of_reach_in_original_and_none_in_fixed(real: Path) -> None:
    def missed(mode: str, human: bool = False) -> int:
        return sum(not exact_purchase_counts(goal, mode) for goal in real_shop(real, mode, human).goals)

    assert missed("original") == 458
    assert missed("fixed") == 0
    assert missed("original", human=True) == missed("fixed", human=True) == 0


@pytest.mark.parametrize("mode", ["original", "fixed"])
def test_real_set_oracle_reaches_every_reachable_goal(real: Path, mode: str) -> None:
    env = WebShopEnv(catalogue="files", data_dir=real, mode=mode)
    missed = {task_id for task_id in env.task_ids("all")[::3] if play(env, task_id, "oracle_action")[0] != 1.0}
    out_of_reach = {goal.task_id for goal in env.shop.goals if not exact_purchase_counts(goal, mode)}
    assert missed == out_of_reach & set(env.task_ids("all")[::3])


def test_real_set_rule_baseline_has_the_known_score(real: Path) -> None:
    env = WebShopEnv(catalogue="files", data_dir=real)
    scores = [play(env, task_id, "rule_action")[0] for task_id in env.task_ids("all")[::4]]
    assert sum(scores) / len(scores) == pytest.approx(0.567, abs=0.01)
    assert sum(score == 1.0 for score in scores) / len(scores) == pytest.approx(0.013, abs=0.008)


def test_real_set_splits_share_products_except_the_product_scheme(real: Path) -> None:
    env = WebShopEnv(catalogue="files", data_dir=real)

    def asins(split: str) -> list[str]:
        return [task_id.split("/")[0] for task_id in env.task_ids(split)]

    assert [len(env.task_ids(split)) for split in SCHEMES["original"]] == [5410, 1000, 500]
    train = set(asins("verl-train"))
    assert sum(asin in train for asin in asins("verl-test")) == 481
    parts = [set(asins(split)) for split in SCHEMES["product"]]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


# -- tasks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_split_schemes_are_disjoint_and_complete(env: WebShopEnv, scheme: str) -> None:
    ids = [task_id for split in SCHEMES[scheme] for task_id in env.task_ids(split)]
    assert sorted(ids) == sorted(env.task_ids("all"))


def test_manifests_in_the_package_fit_the_catalogues(env: WebShopEnv, data_dir: Path) -> None:
    import json

    from seed_envs.tasks import Manifest

    folder = Path(sys.modules["seed_envs.webshop.tasks"].__file__ or "").parent / "manifests"
    record = json.loads((folder / "splits.json").read_text())
    envs = {"generated-1000": env}
    if (data_dir / "webshop").is_dir():
        envs["original-1000"] = WebShopEnv(catalogue="files", data_dir=data_dir / "webshop")
    for name, one in envs.items():
        assert Manifest.load(folder / f"{name}.txt").ids == tuple(one.task_ids("all"))
        assert record[name] == {
            split: {"tasks": len(one.task_ids(split)), "sha256": one.shop.tasks.manifest(split).sha256}
            for split in one.splits
        }


def test_tasks_by_id_goal_and_split(env: WebShopEnv) -> None:
    task_id = env.task_ids("test")[3]
    _, info = env.reset(options={"task_id": task_id})
    assert info["task_id"] == task_id and info["webshop"]["goal_index"] == 3
    assert env.reset(options={"goal": 3})[1]["task_id"] == task_id
    assert env.reset(seed=1, options={"split": "eval"})[1]["task_id"] in env.task_ids("eval")
    for bad in (-1, len(env.shop.goals), "x", True):
        with pytest.raises(UnknownTask, match="expected an integer from 0"):
            env.reset(options={"goal": bad})
    with pytest.raises(UnknownTask):
        env.reset(options={"task_id": "NOPE/0"})


@pytest.mark.parametrize("sampling", ["uniform", "weighted", "original"])
def test_sampling_rules(sampling: str) -> None:
    env = WebShopEnv(num_products=100, rules={"sampling": sampling}, split="all")
    env.reset(seed=0)
    drawn = [env.reset()[1]["webshop"]["goal_index"] for _ in range(3000)]
    assert max(drawn) < len(env.shop.goals)
    assert (0 not in drawn) == (sampling == "original")


def test_unknown_arguments_are_explained() -> None:
    with pytest.raises(UnknownOption, match="mode='orig' is unknown.*Did you mean 'original'"):
        WebShopEnv(mode="orig")
    with pytest.raises(UnknownOption, match="Did you mean .parser."):
        WebShopEnv(rules={"parsr": "tolerant"})
    with pytest.raises(UnknownOption, match="cannot be 'loose'"):
        WebShopEnv(rules={"parser": "loose"})
    with pytest.raises(UnknownOption, match="text_rich"):
        WebShopEnv(obs_mode="rich")
    with pytest.raises(UnknownOption, match="catalogue"):
        WebShopEnv(catalogue="real")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match="items_shuffle"):
        WebShopEnv(catalogue="files", data_dir=tmp_path)
    (tmp_path / "items_shuffle_1000.json").write_text("[{", encoding="utf-8")
    (tmp_path / "items_ins_v2_1000.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataInvalid, match="not a readable JSON file"):
        WebShopEnv(catalogue="files", data_dir=tmp_path)
    (tmp_path / "items_shuffle_1000.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataInvalid, match="expected a list"):
        WebShopEnv(catalogue="files", data_dir=tmp_path)
    with pytest.raises(DataInvalid, match="ZA00000001"):
        open_small_shop(rows=[{**ROWS[0], "pricing": "24.50"}])


def test_unreadable_price_counts_as_missing_in_fixed_mode() -> None:
    with pytest.warns(UserWarning, match="counts as missing"):
        shop = open_small_shop("fixed", rows=[{**ROWS[0], "pricing": "24.50"}])
    assert shop.products[0].price_tag == "$100.0"


# -- episodes --------------------------------------------------------------------------------------------------------


def test_step_after_the_purchase_raises(env: WebShopEnv) -> None:
    play(env, env.task_ids("test")[0], "oracle_action")
    with pytest.raises(EpisodeEnded):
        env.step("search[x]")


def test_history_in_front_of_the_observation() -> None:
    env = WebShopEnv(num_prev_obs=1, num_prev_actions=2)
    first, _ = env.reset(seed=0)
    second, *_ = env.step("search[red]")
    third, *_ = env.step("click[next >]")
    assert second.startswith(f"{first} [SEP] search[red] [SEP] Instruction: ")
    plain_second = second.removeprefix(f"{first} [SEP] search[red] [SEP] ")
    assert third == f"search[red] [SEP] {plain_second} [SEP] click[next >] [SEP] {writers.text(env.page)}"


def test_binary_reward_and_scores_of_both_rule_sets() -> None:
    env = WebShopEnv(reward_type="success")
    score, _, info = play(env, env.task_ids("test")[0], "rule_action")
    assert 0.0 < score < 1.0
    extras = info["webshop"]
    assert extras["score_original"] == score and 0.0 <= extras["score_fixed"] <= 1.0
    assert {"r_type", "r_att", "r_price", "w_att"} <= set(extras["details"])


def test_invalid_actions_change_nothing_and_have_a_reason(env: WebShopEnv) -> None:
    observation, _ = env.reset(seed=4)
    env.step("search[shoes]")
    before = env.get_state()
    for action in ("click[nothing]", "fly", "search[", "click[search]", "buy now", "x" * 20_000):
        observation, reward, done, truncated, info = env.step(action)
        assert (reward, done, truncated, info["action_valid"]) == (0.0, False, False, False)
        assert info["invalid_reason"]
        assert env.get_state().session == before.session and observation == writers.text(env.page)


def test_close_buttons_are_suggested(env: WebShopEnv) -> None:
    env.reset(seed=4)
    env.step("search[shoes]")
    assert "back to search" in env.step("click[back to serach]")[4]["invalid_reason"]


def test_snapshots_restore_the_episode(env: WebShopEnv) -> None:
    env.reset(seed=7)
    path = []
    for _ in range(3):
        action = env.oracle_action()
        path.append((env.get_state(), action, env.step(action)))
    for snapshot, action, (observation, reward, done, _, _) in path:
        env.set_state(snapshot)
        again = env.step(action)
        assert again[:3] == (observation, reward, done)


@pytest.mark.parametrize("mode", ["original", "fixed"])
def test_hostile_actions_never_raise(mode: str) -> None:
    env = WebShopEnv(mode=mode, num_products=100, hostile=True, split="all", show_attrs=True, reviews=True)
    rng = random.Random(5)
    alphabet = "abz[]<>\"'\\/ \n\t{}$`|~éß中\u202e\U0001f600\u0000.,:;*^_-+()&%#@!?0127"
    pages = {"index", "results", "item", "sub", "done"}
    env.reset(seed=0)
    for number in range(50_000):
        body = "".join(rng.choices(alphabet, k=rng.randrange(0, 12)))
        choice = rng.random()
        if choice < 0.45:
            keys = list(env.page.body.clicks) or ["x"]
            action = f"click[{rng.choice(keys)}]"
        elif choice < 0.7:
            word = rng.choice(
                ["", "<r>", "<a> b", "<c>", "<c> beauty", "<q> tea", "item_page", "search_results done", "red"]
            )
            action = f"search[{word}{body}]"
        else:
            action = rng.choice(["click[{}]", "search[{}]", "{}", "click[search[{}]]", "Click [{}]"]).format(body)
        _, reward, done, truncated, info = env.step(action)
        assert 0.0 <= reward <= 1.0 and not truncated
        assert info["webshop"]["page"] in pages and info["action_valid"] == (not info["invalid_reason"])
        if done or number % 40 == 39:
            env.reset()


@pytest.mark.parametrize(("words", "accepted"), [(1024, True), (1025, False)])
def test_a_search_holds_as_many_words_as_lucene_takes(words: int, accepted: bool) -> None:
    query = " ".join(f"w{number}" for number in range(words))
    if accepted:
        check_length(query + " w0 w1")
    else:
        with pytest.raises(TooManyWords, match="1025 distinct words; at most 1024"):
            check_length(query)


def test_a_query_with_too_many_words_is_refused(env: WebShopEnv) -> None:
    env.reset(seed=0)
    query = " ".join(f"w{i}" for i in range(1500))
    *_, info = env.step(f"search[{query}]")
    assert not info["action_valid"] and "1500 distinct words" in info["invalid_reason"]


def test_fresh_catalogues_do_not_pile_up() -> None:
    from seed_envs.webshop.store import _SHOPS, MAX_SHOPS

    for seed in range(MAX_SHOPS + 4):
        WebShopEnv(num_products=10, catalogue_seed=seed)
    assert len(_SHOPS) == MAX_SHOPS


def test_files_are_looked_for_where_they_are_now(real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shop that was opened before is no answer when the variable names another folder, or none."""
    monkeypatch.setenv("WEBSHOP_DATA", str(real))
    first = WebShopEnv(catalogue="files")
    assert WebShopEnv(catalogue="files").shop is first.shop
    monkeypatch.setenv("WEBSHOP_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataMissing, match="nowhere"):
        WebShopEnv(catalogue="files")


def test_environments_share_one_shop() -> None:
    first, second = WebShopEnv(), WebShopEnv()
    assert first.shop is second.shop
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    more = [WebShopEnv() for _ in range(20)]
    for number, one in enumerate(more):
        one.reset(seed=number)
    assert (tracemalloc.get_traced_memory()[0] - before) / len(more) < 1_000_000
    tracemalloc.stop()


def test_tasks_and_pages_are_equal_in_another_process() -> None:
    code = (
        "import hashlib, gymnasium as gym, seed_envs\n"
        "env = gym.make('seed/WebShop-Fixed-v0').unwrapped\n"
        "h = hashlib.sha256(env.shop.sha256.encode())\n"
        "obs, info = env.reset(seed=11)\n"
        "h.update(obs.encode())\n"
        "while True:\n"
        "    obs, r, done, _, info = env.step(env.oracle_action())\n"
        "    h.update(obs.encode())\n"
        "    if done: break\n"
        "print(h.hexdigest())\n"
    )
    digests = set()
    for hash_seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        digests.add(done.stdout.strip())
    env = gym.make("seed/WebShop-Fixed-v0").unwrapped
    digest = hashlib.sha256(env.shop.sha256.encode())  # type: ignore[attr-defined]
    observation, _ = env.reset(seed=11)
    digest.update(observation.encode())
    done_here = False
    while not done_here:
        observation, _, done_here, _, _ = env.step(env.oracle_action())  # type: ignore[attr-defined]
        digest.update(observation.encode())
    assert digests == {digest.hexdigest()}
