"""The same task played by the same actions ends with the same score, whoever's interface it goes through."""

from __future__ import annotations

import importlib.util

import pytest
from tool_calls import as_call

from seed_benchmarks.suites import find_suite
from seed_envs.errors import OracleUnavailable
from seed_envs.integrations.episode import Episode
from seed_envs.integrations.langgraph import langchain_tools
from seed_envs.integrations.managers import EnvironmentManager
from seed_envs.integrations.smolagents import smol_tools
from seed_envs.integrations.trl import make_trl_env
from seed_envs.rollout import Reply, rollout
from seed_envs.serving.session import Session
from seed_envs.tasks import TaskSpec
from seed_envs.vector import EnvPool
from seed_envs.wrappers import make_agent_env

SUITES = ["alfworld/mini", "webshop/mini", "search_qa/mini", "sokoban/mini_text", "ezpoints/mini_text"]


class Game:
    """A task of a suite and a list of actions that wins it."""

    def __init__(self, name):
        self.suite = find_suite(name)
        self.env_id, self.profile = self.suite.env_id, self.suite.profile
        self.kwargs = self.suite.arguments({})
        for task_id in self.suite.load_tasks():
            self.task_id, self.actions = task_id, []
            episode = self.episode()
            try:
                while not episode.done:
                    self.actions.append(episode.env.unwrapped.oracle_action())
                    episode.act(self.actions[-1])
            except OracleUnavailable:
                continue
            if episode.success and len(self.actions) > 1:
                self.sent, self.tools = list(episode.actions), episode.tools
                self.replies = [episode.profile.action_format.format(action) for action in self.actions]
                self.expected = (True, 1.0, episode.total_reward)
                return

    def episode(self):
        episode = Episode(self.env_id, self.profile, **self.kwargs)
        episode.reset(self.task_id)
        return episode

    def calls(self):
        return [as_call(self.tools, action) for action in self.actions]


def by_the_harness(game):
    replies = iter(game.replies)
    with EnvPool(lambda: make_agent_env(game.env_id, game.profile, **game.kwargs), 1) as pool:
        profile = game.suite.find_profile()
        policy = lambda requests: [Reply(next(replies))]
        (played,) = rollout(pool, policy, [TaskSpec(game.task_id)], env_id=game.env_id, profile=profile)
    assert [step.action for step in played.steps] == game.sent
    return played.success, played.score, played.total_reward


def ended(episode, game):
    assert episode.actions == game.sent and episode.done
    return episode.success, episode.score, episode.total_reward


def by_replies(game):
    episode = game.episode()
    for reply in game.replies:
        episode.reply(reply)
    return ended(episode, game)


def by_openai_calls(game):
    episode = game.episode()
    for name, arguments in game.calls():
        episode.call(name, arguments)
    return ended(episode, game)


def by_trl(game):
    made = make_trl_env(game.env_id, game.profile, tasks=1, **game.kwargs)
    environment = made.factory()
    environment.reset(task_id=game.task_id, prompt=[])
    for name, arguments in game.calls():
        getattr(environment, name)(**arguments)
    assert environment.get_reward() == environment._episode.total_reward
    return ended(environment._episode, game)


def by_smolagents(game):
    needs("smolagents")
    episode = game.episode()
    tools = {tool.name: tool for tool in smol_tools(episode)}
    for name, arguments in game.calls():
        assert tools[name](**arguments)
    return ended(episode, game)


def by_langgraph(game):
    needs("langchain_core")
    episode = game.episode()
    tools = {tool.name: tool for tool in langchain_tools(episode)}
    for name, arguments in game.calls():
        assert tools[name].invoke(arguments)
    return ended(episode, game)


def by_manager(game):
    if game.suite.find_profile().style != "window":
        with pytest.raises(ValueError, match="growing conversation"):
            EnvironmentManager(game.env_id, 1, profile=game.profile, **game.kwargs)
        return game.expected
    envs = EnvironmentManager(game.env_id, 1, 2, game.profile, **game.kwargs)
    _, infos = envs.reset([{"task_id": game.task_id}] * 2)
    total = 0.0
    for reply in game.replies:
        observations, rewards, dones, infos = envs.step([reply, reply])
        assert observations["text"][0] == observations["text"][1] and rewards[0] == rewards[1]
        total += rewards[0]
    assert dones.all() and envs.step(["", ""])[1].tolist() == [0.0, 0.0]
    batch = [[{"active_masks": True}]] * 2
    assert envs.success_evaluator(total_infos=[[infos[0]]] * 2, total_batch_list=batch)["success_rate"].tolist() == [
        1,
        1,
    ]
    return infos[0]["won"], infos[0]["task_score"], pytest.approx(total)


def by_session(game):
    session = Session(game.env_id, game.profile, game.kwargs)
    session.reset(task_id=game.task_id)
    for reply in game.replies:
        shown = session.step(reply)
    assert shown["done"]
    return shown["success"], shown["score"], session.episode["total_reward"]


def by_inspect(game):
    needs("inspect_ai")
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import MemoryDataset
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from seed_benchmarks.inspect_tasks import suite_task

    replies = iter(game.replies)

    def answer(messages, tools, tool_choice, config):
        output = ModelOutput.from_content("mockllm", next(replies))
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    task = suite_task(game.suite.name)
    task.dataset = MemoryDataset([sample for sample in task.dataset if sample.id == game.task_id])
    (log,) = evaluate(
        task, model=get_model("mockllm/model", custom_outputs=answer), display="none", log_dir=game.folder
    )
    assert log.status == "success", log.error
    (sample,) = log.samples
    assert sample.metadata["actions"] == game.sent and len(sample.messages) == 2 * len(game.actions)
    values = sample.scores["outcome"].value
    return bool(values["success"]), values["score"], sample.metadata["total_reward"]


def needs(package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"integrations: needs {package}")


ADAPTERS = [
    *(by_the_harness, by_replies, by_openai_calls, by_trl, by_smolagents, by_langgraph),
    *(by_manager, by_session, by_inspect),
]


@pytest.fixture(scope="module", params=SUITES)
def game(request):
    return Game(request.param)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__)
def test_the_score_is_the_harnesss(game, adapter, tmp_path):
    game.folder = str(tmp_path)
    assert adapter(game) == game.expected


def test_a_call_of_no_tool_is_an_unreadable_reply(game):
    episode = game.episode()
    said = episode.call("fly", {"action": "up"})
    assert said.startswith("There is no tool 'fly'") and len(episode.actions) == 1 and not episode.info["action_valid"]
    while not episode.done:
        episode.call(game.tools[0].name, {})
    assert not episode.success and episode.act("anything") == "The episode is over." and episode.stop_reason


@pytest.mark.parametrize("arguments", [None, 3, [], "{", "[1]", "[" * 100_000])
def test_arguments_that_are_no_object_are_an_unreadable_reply(game, arguments):
    episode = game.episode()
    said = episode.call(game.tools[0].name, arguments)
    assert "no JSON object" in said and len(episode.actions) == 1 and not episode.info["action_valid"]


def test_a_batch_has_one_reply_for_each_environment():
    manager = EnvironmentManager("seed/Sokoban-v0", 2, profile="paper-text")
    manager.reset()
    with pytest.raises(ValueError, match="1 replies for 2 environments"):
        manager.step(["up"])
