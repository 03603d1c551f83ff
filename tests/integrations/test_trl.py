"""TRL's own multi-turn loop plays and trains on our environments."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("trl", reason="packages: needs trl")

from byte_model import calling_model, tool_call
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_instruct_2507_chat_template

from seed_envs.errors import UnknownOption
from seed_envs.integrations.trl import make_trl_env


def test_grpo_plays_whole_episodes_by_tool_calls_and_learns_from_their_rewards(tmp_path):
    made = make_trl_env("seed/Sokoban-v0", "strict-text", split="test", tasks=8)
    calls = [tool_call("act", action=word) for word in ("up", "down", "left", "right")]
    model, tokenizer = calling_model(calls, qwen3_instruct_2507_chat_template)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    args = GRPOConfig(
        output_dir=str(tmp_path),
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=1500,
        max_tool_calling_iterations=6,
        max_steps=2,
        learning_rate=1e-2,
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
        seed=1,
    )
    trainer = GRPOTrainer(
        model, args=args, train_dataset=made.dataset, environment_factory=made.factory, processing_class=tokenizer
    )
    trainer.train()
    logged = [record for record in trainer.state.log_history if "reward" in record]
    episodes = [environment._episode for environment in trainer.environments]
    assert len(logged) == 2 and logged[-1]["rewards/SeedToolEnv/mean"] == pytest.approx(
        sum(episode.total_reward for episode in episodes) / len(episodes)
    )
    assert len(episodes) == 8 and max(len(episode.actions) for episode in episodes) > 1
    assert all(set(episode.actions) <= {"up", "down", "left", "right"} for episode in episodes)
    assert any(not weight.equal(before[name]) for name, weight in model.named_parameters())


@pytest.mark.parametrize("env_id", ["seed/SearchQA-v0", "seed/WebShop-v0", "seed/ALFWorld-v0"])
def test_methods_have_the_schema_that_is_declared(env_id):
    made = make_trl_env(env_id, tasks=3)
    environment = made.factory()
    methods = {
        name: getattr(environment, name)
        for name, _ in inspect.getmembers(type(environment), inspect.isfunction)
        if name not in ("reset", "get_reward") and not name.startswith("_")
    }
    declared = {schema["function"]["name"]: schema["function"] for schema in made.tools}
    assert methods.keys() == declared.keys()
    for name, method in methods.items():
        read = get_json_schema(method)["function"]
        assert {key: read[key] for key in declared[name]} == declared[name]
    assert len(made.dataset) == 3 and environment.reset(**made.dataset[0])


def test_pictures_are_refused_with_what_helps():
    with pytest.raises(UnknownOption, match="shows pictures"):
        make_trl_env("seed/Sokoban-v0", "strict", tasks=2)
