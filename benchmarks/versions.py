"""What a result was made with: package versions, git commit, hardware. Reads, never guesses: unknown is null."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import seed_envs

_PACKAGES = ("gymnasium", "numpy", "Pillow", "torch", "transformers", "httpx", "ray")


@functools.lru_cache(maxsize=1)
def describe_software() -> dict[str, Any]:
    """Versions of Python, this project and what may take part in a run, and the checkout's commit."""
    versions = {name: _version(name) for name in _PACKAGES}
    return {
        "seed_envs": seed_envs.__version__,
        "python": platform.python_version(),
        "packages": {name: version for name, version in versions.items() if version},
        "git": git_commit(Path(__file__).resolve().parent),
    }


def describe_hardware() -> dict[str, Any]:
    """Processor, cores available to this process, memory, GPUs (only when torch is already loaded)."""
    torch = sys.modules.get("torch")
    gpus: list[str] = []
    if torch is not None and torch.cuda.is_available():
        gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": cores,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpus": gpus,
    }


def git_commit(folder: Path) -> dict[str, Any] | None:
    """Commit and whether tracked files differ from it; None outside a checkout of this project."""
    commit = _git(folder, "rev-parse", "HEAD")
    tracked = _git(folder, "ls-files", "--error-unmatch", str(Path(__file__).resolve()))
    if not commit or not tracked:
        return None
    return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))}


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or None
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else None
