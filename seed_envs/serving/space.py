"""What a Hugging Face Space, or any host of containers, needs to run ``seed-serve``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from seed_envs import __version__
from seed_envs.serving.options import ServeOptions

PORT = 8000

_DOCKERFILE = """\
FROM python:3.11-slim
RUN useradd --create-home player
USER player
ENV PATH=/home/player/.local/bin:$PATH
# Beside this file: a wheel of the package, made with `python -m build --wheel`.
COPY --chown=player *.whl /home/player/
RUN pip install --no-cache-dir "$(ls /home/player/*.whl)[serve]"
EXPOSE {port}
HEALTHCHECK CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/health')"
# Players need the secret SEED_SERVE_TOKEN; with the argument --no-token everybody may play.
CMD {command}
"""

_README = """\
---
title: SEED environments
sdk: docker
app_port: {port}
pinned: false
tags:
  - openenv
---

# SEED environments

{listed}

```python
from openenv.core.generic_client import GenericEnvClient

address = "https://USER-SPACE.hf.space/{first}"
with GenericEnvClient(address, headers={{"Authorization": "Bearer TOKEN"}}).sync() as env:
    result = env.reset(seed=0)
    result = env.step({{"text": "an action"}})
```

TOKEN is the Space's secret `SEED_SERVE_TOKEN`.
"""

_OPENENV = """\
spec_version: 1
name: seed_envs
version: {version}
type: space
runtime: fastapi
app: seed_envs.serving.command:main
port: {port}
"""


def write_space(options: ServeOptions, folder: str | Path) -> list[Path]:
    """Write Dockerfile, README and ``openenv.yaml`` into a new or empty folder.

    Args:
        options: The ids, profile and limits of the server in the container.
        folder: Where.

    Returns:
        The files.

    Raises:
        FileExistsError: When the folder holds something.
    """
    target = Path(folder)
    if target.exists() and any(target.iterdir()):
        raise FileExistsError(17, "the folder is not empty; name a new one", str(target))
    target.mkdir(parents=True, exist_ok=True)
    words = ["seed-serve", *options.env_ids, "--host", "0.0.0.0", "--port", str(PORT)]
    words += ["--max-sessions", str(options.max_sessions), "--idle-seconds", f"{options.idle_seconds:g}"]
    words += ["--profile", options.profile] if options.profile else []
    words += ["--no-token"] if options.anybody else []
    for key, value in options.env_kwargs.items():
        words += ["--env-arg", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    fields = {
        "port": PORT,
        "command": shlex.join(words),
        "listed": "\n".join(f"* `/{env_id}`" for env_id in options.env_ids),
        "first": options.env_ids[0],
        "version": __version__,
    }
    written = []
    for name, text in (("Dockerfile", _DOCKERFILE), ("README.md", _README), ("openenv.yaml", _OPENENV)):
        (target / name).write_text(text.format(**fields), encoding="utf-8")
        written.append(target / name)
    return written
