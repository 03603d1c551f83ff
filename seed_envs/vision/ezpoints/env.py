"""``seed/EZPoints-v0``: two cards, one formula with the value 12."""

from __future__ import annotations

from typing import ClassVar, Literal

from seed_envs.vision.ezpoints.game_env import CardGameEnv
from seed_envs.vision.ezpoints.rules import ezpoints


class EZPointsEnv(CardGameEnv):
    """EZPoints: build a formula with the value 12 from two playing cards, one token per step.

    ## Description
    Two cards lie on the table. The player writes a formula token by token and ends it with ``=``. It wins if its value
    is the target and both cards were used. The shortest win takes four steps, such as ``5``, ``+``, ``7``, ``=``.

    ## Task and data
    A task is a hand. ``hands="classic"`` deals as verl-agent does from a seed: seven hands of values occur, with
    frequencies 2 and 10: 37.5 %, 5 and 7: 16.7 %, 3 and 9: 12.5 %, 4 and 8: 12.5 %, 2 and 6: 8.3 %, 3 and 4: 8.3 %,
    6 and 6: 4.2 %. Aces never occur. ``hands="uniform"`` makes every hand equally likely, works for any ``target``, and
    deals aces where they can win.

    Splits: ``train`` (drawn), ``validation`` and ``test`` (fixed panels of 256 deals) and ``all`` (every ordered pair
    of ranks that can win). With only seven hands, splits differ in deals, suits and order, not in hands.
    ``options={"task_id": "cards/H5-S7"}`` plays the five of hearts and the seven of spades.

    ## Action space
    Text: one of ``1`` to ``10``, ``+``, ``*``, ``=``. ``parsing="substring"`` reads a whole answer as verl-agent does.

    ## Observation space
    ``obs_mode="both"`` and ``"image"``: a dict with ``text`` and ``image`` (uint8, ``size`` x ``size`` x 3).
    ``"text"``: a string. The text names the cards and the formula; in mode ``"image"`` it holds the formula alone.
    With ``feedback="verbose"`` a refused action adds a line that says why; ``"plain"`` does not, as in the original:
    who is told which numbers are not on the cards can win without looking at them.

    ## Reward
    10 for a win. Otherwise 0; under ``rules="rl4vlm"`` -1 for a wrong number, an over-long formula and a wrong result.

    ## Termination and truncation
    Terminated by ``=``. Truncated when an action is played on a formula of more than five tokens (stop reason
    ``turn_limit``), and by the registered limit of 8 steps. For RL4VLM's own limit pass ``max_episode_steps=300``.

    ## Info
    Beside the common keys, ``info["ezpoints"]`` holds ``cards``, ``numbers``, ``formula``, ``used``, ``refused`` (why
    the last token was not used), ``result`` (the value, or why the formula failed), and ``oracle``: privileged
    knowledge that never enters an observation, namely ``best_actions``. ``admissible_actions`` lists the tokens that
    would be used.

    ## Oracle
    The shortest way to complete the current formula.

    ## Arguments
    All have defaults; wrong names and values are refused with close matches.

    ## Registered versions
    ``seed/EZPoints-v0``: classic rules, target 12, 8 steps.

    ## Differences from the original
    The value is computed exactly by a parser; the original calls ``eval``. Under ``classic`` and ``rl4vlm`` the
    formulas that win are those of the original: the two numbers with one ``+`` or ``*`` between and any
    plus signs before.
    Seeds work. An over-long formula truncates the episode at once, where verl-agent lets it idle to the step limit.
    An unreadable answer under ``rl4vlm`` plays a random token. ``strict`` refuses operators that cannot fit and accepts
    no signs. A number that is not on the cards is read but refused (``format_valid``, not ``action_valid``), under
    every rule set; the paper's penalty is for the format alone. Cards and letters are this package's own drawings, on
    the original's layout, and a formula too long for its line is written smaller instead of running out of the picture.
    The ``paper`` profile asks in this package's own words. Pictures have 308 pixels a side; the original's 300
    (``size=300``). ``python -m benchmarks.parity cards`` compares.

    ## References and asset credits
    Game: gym_cards of RL4VLM (Zhai et al., 2024; MIT). Framework version: verl-agent. All pictures are drawn by code in
    this package with the font built into Pillow.
    """

    name: ClassVar[str] = "ezpoints"

    def __init__(
        self,
        rules: Literal["classic", "strict", "rl4vlm"] = "classic",
        hands: Literal["classic", "uniform"] | None = None,
        target: int = 12,
        obs_mode: Literal["both", "image", "text"] = "both",
        size: Literal[308, 300] = 308,
        parsing: Literal["exact", "substring"] = "exact",
        feedback: Literal["verbose", "plain"] = "verbose",
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        """Makes the environment.

        Args:
            rules: ``"classic"`` (the paper's), ``"rl4vlm"`` (the original) or ``"strict"``.
            hands: How hands are dealt; None is ``"classic"`` for target 12 and ``"uniform"`` for others.
            target: Value of the formula.
            obs_mode: What is observed.
            size: Side of the picture in pixels; 308 is a whole number of Qwen2.5-VL tokens.
            parsing: How action text is read.
            feedback: ``"verbose"`` adds to the observation why a token was refused; ``"plain"`` shows the formula
                alone, as the originals do.
            split: Split that ``reset`` draws from.
            render_mode: None, ``"ansi"`` or ``"rgb_array"``.

        Raises:
            UnknownOption: For a value that does not exist, or a target no hand reaches.
        """
        dealt = hands or ("classic" if target == 12 else "uniform")
        super().__init__(ezpoints(target), dealt, rules, obs_mode, size, parsing, feedback, split, render_mode)

    def _task_type(self) -> str:
        return "sum" if sum(self._game.numbers) == self.puzzle.target else "product"
