"""How an answer becomes a token: verl-agent's lenient reading and the exact one."""

from __future__ import annotations

from collections.abc import Sequence

MAX_TOKEN_CHARS = 20
_KEY = '"action":'


def read_classic(answer: str, tokens: Sequence[str]) -> tuple[str, str]:
    """Reads a whole answer as verl-agent does, for comparison with published numbers.

    What follows ``"action":`` is searched for every token; without that key the last character alone is searched.
    "10" is taken out first. So 11 reads as 1, and a later remark that holds a digit spoils the answer.

    Args:
        answer: The model's reply.
        tokens: The puzzle's tokens.

    Returns:
        The token, or ``""`` and the reason.
    """
    lowered = answer.lower()
    start = lowered.find(_KEY)
    text = lowered[start:] if start >= 0 else lowered[-1:]
    found = ["10"] if "10" in text and "10" in tokens else []
    text = text.replace("10", "")
    found += [token for token in tokens if token != "10" and token in text]
    if len(found) == 1:
        return found[0], ""
    where = "after the key" if start >= 0 else 'at the end (there is no "action": key)'
    return "", f"expected exactly one token {where}, found {', '.join(found) or 'none'}"


def read_exact(action: str, tokens: Sequence[str]) -> tuple[str, str]:
    """Accepts exactly one token, blanks around it allowed.

    Args:
        action: The action text.
        tokens: The puzzle's tokens.

    Returns:
        The token, or ``""`` and the reason.
    """
    if len(action) > MAX_TOKEN_CHARS:
        return "", f"action has {len(action)} characters; expected one of {' '.join(tokens)}"
    token = action.strip()
    return (token, "") if token in tokens else ("", f"unknown action {token!r}; expected one of {' '.join(tokens)}")
