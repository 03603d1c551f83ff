"""``SEEDTrainer(GRPOTrainer)``: GRPO plus hindsight self-distillation.

What it changes, and nothing else:

1. ``_generate_and_score_completions`` is one round: play episodes, write skills about them, lay out rows, let TRL pad
   and score them, then put in trajectory advantages and the teacher's columns.
2. ``_generate`` and ``_calculate_rewards`` hand the finished rows and returns to TRL.
3. ``_get_per_token_logps_and_entropies`` remembers the student's scores and uses larger chunks without gradient.
4. ``_compute_loss`` scores the same tokens as teacher, lets TRL compute its loss, and adds the distillation term.

With ``opd_coef=0`` it is GRPO on the same rows. It owns TRL's hooks and the order of the steps; the steps are done by
the parts that :class:`~seed_trainer.run.SEEDRun` builds. None of them asks the trainer where it stands; they are handed
the :class:`~seed_trainer.settings.schedules.Moment`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor

from seed_envs.trajectory import Trajectory
from seed_trainer.acting.play import block_tasks, task_names, with_streams
from seed_trainer.acting.sampling import own_randomness
from seed_trainer.learning.aggregation import fillers_undone, round_counts, share_counts
from seed_trainer.learning.batches import build_rows, filler_target, with_fillers
from seed_trainer.learning.idle import moves_weights, zero_loss
from seed_trainer.learning.rounds import Block, episode_advantages_N, row_advantages_B
from seed_trainer.learning.scorer import Batch
from seed_trainer.learning.scores import batch_scores, distilled_mask, loss_mask
from seed_trainer.run import SEEDRun
from seed_trainer.settings import schedules
from seed_trainer.settings.schedules import Moment
from seed_trainer.watching import measures
from seed_trainer.watching.gradients import log_gradients


class SEEDTrainer(SEEDRun):
    """Trains a language model on an environment with GRPO and hindsight self-distillation.

    Its arguments are those of :class:`~seed_trainer.run.SEEDRun`.
    """

    _block: Block | None = None
    _fields: Batch = {}
    _captured: list[tuple[Tensor, Tensor]] | None = None
    _tag_names = ["seed", "grpo", "trl"]
    _name = "SEED"
    _paper = {"title": "SEED: Self-Evolving On-Policy Distillation", "id": "2607.14777"}

    # ------------------------------------------------------------------------------------------------- the whole step

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Batch:
        """Make one round's training batch, in the order of the paper's Algorithm 1."""
        moment = self.moment
        block = Block(self._play(inputs), self.num_generations)  # sample with theta_old
        block.advantages_N = episode_advantages_N(block, self.args)  # A = (R - mu) / sigma
        block.rows = build_rows(block.episodes, self.args.rollout_layout)
        if schedules.distills(self.args, moment.round_index) or self.args.adv_shaping != "none":
            with self.clock("skills"):  # s = A_theta_old(episode, outcome), or a control's
                block.skills = self.analyst.teaching_skills(block.episodes, block.group_size, moment)
            self._splice(block)  # h~ = H(h, s), same history, same response tokens
        block.rows = with_fillers(block.rows, self._filler_target(len(block.rows)))
        batch = self._score(block)  # l_old and l_ref by TRL
        batch["advantages"] = row_advantages_B(block, self.args).to(self.accelerator.device)
        if block.skills:
            batch.update(self.teaching.columns(block, batch, moment))  # m, teacher prompts, l_T if a snapshot
        if self._idle(batch, moment):
            batch["idle"] = torch.ones((), device=self.accelerator.device)
        self._watch(block, batch, moment)
        return batch

    def _compute_loss(self, model: Any, inputs: Batch) -> Tensor:
        """Return ``L_rl + lambda Agg_m[g (sg(l_T) - l)]`` for one mini-batch."""
        if "idle" in inputs:
            return zero_loss(self.model)
        moment = self.moment
        distils = "opd_mask" in inputs and schedules.distills(self.args, moment.round_index)
        # l_T: skill in the prompt, no gradient; with shaped advantages alone it was needed once, for the round
        teacher = self.scorer.teacher(model, inputs) if distils else inputs.get("teacher_logps")
        with self._capture() as captured, fillers_undone(self, inputs) as undone:
            # L_rl, scoring the student once
            loss: Tensor = super()._compute_loss(model, undone)  # type: ignore[no-untyped-call]
        ((student, entropies),) = captured  # exactly one scoring of the student
        scores = batch_scores(inputs, self.gate_rule, student, entropies, teacher)
        self.recorder.take(scores, inputs)
        if not distils:
            return loss
        opd = self.teaching.loss(model, scores, inputs)  # Agg_m[g (sg(l_T) - l)] with g = sg(sigmoid(beta D))
        self.gates.log(scores, float(opd.detach()) * self.current_gradient_accumulation_steps, inputs, moment)
        if schedules.compares_gradients(self.args, moment.round_index):
            log_gradients(self.sink, self.model, loss, self.args.opd_coef * opd)
        loss = loss + self.args.opd_coef * opd
        if "skill_answer_ids" in inputs:
            loss = loss + self.args.skill_reward_coef * self.teaching.skill_loss(inputs)
        return loss

    def _prepare_inputs(self, generation_batch: Any) -> Batch:
        """Return a micro-batch; where that began a round, count first what its loss is a mean over."""
        held = self._buffered_inputs
        inputs: Batch = super()._prepare_inputs(generation_batch)
        if self._buffered_inputs is not held and self._buffered_inputs is not None:
            self._count(self._buffered_inputs)
        return inputs

    # ---------------------------------------------------------------------------------------------- steps of one round

    def _play(self, inputs: list[dict[str, Any]]) -> list[Trajectory]:
        with self.clock("rollout"):
            skill_for = self.analyst.advice if self.args.actor_skill != "none" else None
            tasks = block_tasks(inputs, self.num_generations)
            everyone: list[str] = gather_object(task_names(tasks))
            before = everyone[: self.accelerator.process_index * len(tasks)]
            tasks = with_streams(tasks, self.moment.stream("play"), before)
            return self.actor.play(tasks, self.actor.decoding(self.args.temperature), skill_for)

    def _splice(self, block: Block) -> None:
        for episode in self.teaching.splice(block.rows, block.skills):
            block.skills[episode].reason = "overflow"
        if self.args.adv_step_skill_coef:
            self.teaching.splice_steps(block.rows, block.skills)

    def _filler_target(self, rows: int) -> int:
        counts = self.accelerator.gather(torch.tensor([rows], device=self.accelerator.device)).tolist()
        return filler_target(counts, self.args.steps_per_generation, self.num_generations)

    def _score(self, block: Block) -> Batch:
        """Let TRL pad the rows and score them; its own reward statistics and log rows are thrown away.

        TRL would render and process the pictures of prompts again, and knows none inside a completion: it is told of
        none, and every scoring gets what was read of them once.
        """
        self._block = block
        self._fields = self.encoder.picture_fields([row.images or [] for row in block.rows], self.accelerator.device)
        inputs: list[dict[str, Any]] = [{"prompt": [{"role": "user", "content": ""}]} for _ in block.rows]
        logs, self._logs = self._logs, measures.scratch_logs()
        try:
            with self.clock("scoring"):
                batch: Batch = super()._generate_and_score_completions(inputs)
        finally:
            self._logs, self._block = logs, None
        batch.update(self._fields)
        self._fields = {}
        device = self.accelerator.device
        batch["row"] = torch.arange(len(block.rows), device=device)
        batch["episode"] = torch.tensor([row.episode for row in block.rows], device=device)
        return {**batch, **self.gates.columns(block, device)}

    def _count(self, parts: list[Batch]) -> None:
        """Give the micro-batches of a round the units of ``Agg`` and the factor that fillers take from TRL's mean."""
        counts = round_counts(self.loss_type, list(map(loss_mask, parts)), list(map(distilled_mask, parts)))
        share_counts(parts, self.accelerator.gather(counts[None]).sum(0))

    def _idle(self, batch: Batch, moment: Moment) -> bool:
        """Return whether the gradient of the whole round is exactly zero, on every process."""
        if self.beta or self._entropy_bonus_enabled or self.aux_loss_enabled:
            return False
        moves = moves_weights(batch, schedules.distills(self.args, moment.round_index))
        return not bool(self.accelerator.gather(moves[None]).any())

    def _watch(self, block: Block, batch: Batch, moment: Moment) -> None:
        measures.log_round(self.sink, block, batch)
        if self.log_completions:
            measures.log_table(self._logs, block)
        with self.clock("records"):
            self.recorder.begin(block, batch, moment)
        if block.skills and "opd_mask" not in batch:
            self.gates.log_untaught(moment)
        if self.staleness.due(block, moment):
            with self.clock("staleness"), own_randomness(self.generator):
                self.staleness.measure(block, batch, moment)
        self.analyst.weights.remember(self.scorer.unwrapped, moment.round_index)

    # ----------------------------------------------------------------------------------------------------- TRL's hooks

    def _get_per_token_logps_and_entropies(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("batch_size") is not None:
            # TRL's chunk is per_device_train_batch_size rows, which is one row per forward in the turn layout.
            kwargs["batch_size"] = max(kwargs["batch_size"], math.ceil(len(args[0]) / self.args.steps_per_generation))
        kwargs = self.scorer.seeing(args[0], {**kwargs, **self._fields})
        result = super()._get_per_token_logps_and_entropies(model, *args, **kwargs)
        if self._captured is not None:
            self._captured.append((result[0], result[1].detach()))
        return result

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        """Hand the rows of the round to TRL instead of generating."""
        rows = self._current.rows
        logprobs = [row.logprobs for row in rows] if self.use_vllm else None
        measures.log_tokens(self.sink, self.state, self.accelerator, rows)
        return (
            [row.prompt_ids for row in rows],
            [row.completion_ids for row in rows],
            [row.mask for row in rows],
            [[{"role": "assistant", "content": ""}] for _ in rows],
            logprobs,
            {},
            None,
            [],
        )

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> Tensor:
        returns = self._current.returns_N[[row.episode for row in self._current.rows]]
        gathered: Tensor = self.accelerator.gather(returns[:, None].to(self.accelerator.device))
        return gathered

    @property
    def _current(self) -> Block:
        if self._block is None:
            raise RuntimeError("TRL asked for completions outside a SEED round; trl>=1.16,<1.17 is supported")
        return self._block

    @contextmanager
    def _capture(self) -> Iterator[list[tuple[Tensor, Tensor]]]:
        """Remember what the scoring function returns inside the block."""
        captured: list[tuple[Tensor, Tensor]] = []
        self._captured = captured
        try:
            yield captured
        finally:
            self._captured = None
