"""``seed/Points24-v0``: four cards, one formula with the value 24."""

from __future__ import annotations

from typing import ClassVar, Literal

from seed_envs.vision.ezpoints.game_env import CardGameEnv
from seed_envs.vision.ezpoints.rules import points24


class Points24Env(CardGameEnv):
    """Points24: build a formula with the value 24 from four playing cards, one token per step.

    ## Description
    Four cards lie on the table. The player writes a formula token by token and ends it with ``=``. It wins if its value
    is exactly the target and every card was used once.

    ## Task and data
    A task is a hand of four cards of any rank, faces counting 10 and aces 1. 26.9 % of such hands have no solution;
    only hands with one are dealt. Splits: ``train`` (drawn), ``validation`` and ``test`` (fixed panels of 256 hands),
    and ``all`` (one hand for every solvable set of values). Train, validation and test never share a set of values.
    ``options={"task_id": "cards/H5-S7-D2-CK"}`` plays named cards.

    ## Action space
    Text: one of ``1`` to ``10``, ``+``, ``-``, ``*``, ``/``, ``(``, ``)``, ``=``.

    ## Observation space
    As for EZPoints: ``text`` and ``image``, or a string with ``obs_mode="text"``.

    ## Reward
    10 for a win. Otherwise 0; under ``rules="rl4vlm"`` -1 for a wrong number, an over-long formula and a wrong result.

    ## Termination and truncation
    Terminated by ``=``. Truncated when an action is played on a formula of more than 20 tokens (stop reason
    ``turn_limit``), and by the registered limit of 20 steps.

    ## Info
    As for EZPoints, under ``info["points24"]``.

    ## Oracle
    The shortest completion among all formulas without signs or redundant parentheses; the first solution found when the
    formula is still empty.

    ## Arguments
    As ``EZPointsEnv``, without ``hands``.

    ## Registered versions
    ``seed/Points24-v0``: classic rules, target 24, 20 steps.

    ## Differences from the original
    Division is exact, so ``8/(3-8/3)`` wins. Digits are not joined, there is no power and no floor division, and no
    text is ever evaluated; the original's ``eval`` can be made to hang by a formula. Hands without a solution are not
    dealt. Signs may stand before a number or a parenthesis under ``classic`` and ``rl4vlm``, as the original pays them
    (``- 6 + 5 * 6 * 1 =``). The cards lie in one row there, with the formula on two lines below, as in the original;
    ``strict`` shows them larger, in two rows. The rest is as for EZPoints.

    ## References and asset credits
    Game: gym_cards of RL4VLM (Zhai et al., 2024; MIT). All pictures are drawn by code in this package.
    """

    name: ClassVar[str] = "points24"

    def __init__(
        self,
        rules: Literal["classic", "strict", "rl4vlm"] = "classic",
        target: int = 24,
        obs_mode: Literal["both", "image", "text"] = "both",
        size: Literal[308, 300] = 308,
        parsing: Literal["exact", "substring"] = "exact",
        feedback: Literal["verbose", "plain"] = "verbose",
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        """Makes the environment.

        Args:
            rules: ``"classic"``, ``"rl4vlm"`` or ``"strict"``.
            target: Value of the formula.
            obs_mode: What is observed.
            size: Side of the picture in pixels.
            parsing: How action text is read.
            feedback: Whether the observation says why a token was refused.
            split: Split that ``reset`` draws from.
            render_mode: None, ``"ansi"`` or ``"rgb_array"``.

        Raises:
            UnknownOption: For a value that does not exist, or a target no hand reaches.
        """
        super().__init__(points24(target), "uniform", rules, obs_mode, size, parsing, feedback, split, render_mode)
