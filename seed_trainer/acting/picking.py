"""From logits to the next token: temperature, top-k, top-p, and the log-probability under what was sampled from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seed_trainer.acting.sampling import Decoding
from seed_trainer.acting.streams import inverse_cdf_B


def pick_tokens(
    logits_BV: Tensor,
    decoding: Decoding,
    chance: torch.Generator | Tensor | None,
    never: Sequence[int] = (),
) -> tuple[Tensor, Tensor]:
    """Pick one token per row.

    Args:
        logits_BV: Logits of the next token.
        decoding: How to sample.
        chance: Source of randomness, or a draw of its own for every row, uniform in [0, 1).
        never: Ids that are not picked: a placeholder in a reply would stand for a picture that nobody took.

    Returns:
        Ids and log-probabilities, both shape (B,). The log-probabilities are those of the distribution sampled from,
        with the weight of ``never`` left in it, as whoever scores the tokens has it.

    Raises:
        FloatingPointError: If a logit is not a number, as after a diverged update.
    """
    if bool(logits_BV.isnan().any()):
        raise FloatingPointError(
            "the model's logits are not numbers: its weights have diverged; lower learning_rate or opd_coef, or raise "
            "beta, and go on from an earlier checkpoint"
        )
    index = torch.tensor(never, dtype=torch.long, device=logits_BV.device)
    allowed_BV = logits_BV.float().index_fill(1, index, -torch.inf)
    if decoding.temperature == 0:
        ids_B = allowed_BV.argmax(dim=-1)
        kept_BV = logits_BV.float()
    else:
        allowed_BV = _filtered(allowed_BV / decoding.temperature, decoding)
        probabilities_BV = allowed_BV.log_softmax(-1).exp()
        if isinstance(chance, Tensor):
            ids_B = inverse_cdf_B(probabilities_BV, chance)
        else:
            ids_B = torch.multinomial(probabilities_BV, 1, generator=chance).squeeze(1)
        kept_BV = allowed_BV.index_copy(1, index, logits_BV[:, index].float() / decoding.temperature)
    logps_BV = torch.log_softmax(kept_BV, dim=-1)
    return ids_B, logps_BV.gather(1, ids_B[:, None]).squeeze(1)


def _filtered(logits_BV: Tensor, decoding: Decoding) -> Tensor:
    if decoding.top_k:
        threshold = logits_BV.topk(min(decoding.top_k, logits_BV.size(-1)), dim=-1).values[:, -1:]
        logits_BV = logits_BV.masked_fill(logits_BV < threshold, -torch.inf)
    if decoding.top_p < 1.0:
        ordered, index = logits_BV.sort(dim=-1, descending=True)
        # What lies before a token decides: the token that crosses top_p is kept, and so is the first one always.
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        ordered = ordered.masked_fill(before >= decoding.top_p, -torch.inf)
        logits_BV = torch.full_like(logits_BV, -torch.inf).scatter(1, index, ordered)
    return logits_BV
