"""Puts a sample of faults into the core and says which of them no test notices."""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections import Counter
from configparser import ConfigParser
from pathlib import Path

from scripts.mutation.faults import Fault, faults_of

HERE = Path(__file__).resolve().parent


def read_core(path: Path) -> dict[str, list[str]]:
    """The modules of the core, each with the test files that watch over it."""
    parser = ConfigParser(interpolation=None)
    parser.read(path, encoding="utf-8")
    return {module: parser[module]["tests"].split() for module in parser.sections()}


def read_equivalents(path: Path) -> dict[str, str]:
    """Faults that change nothing a caller can see: name and reason, which stands indented below the name."""
    found: dict[str, str] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            found[name] = f"{found[name]} {line.strip()}".strip()
        elif line and not line.startswith("#"):
            name = line
            found[name] = ""
    return found


def sample(faults: list[Fault], size: int, seed: int) -> list[Fault]:
    """Faults by the rank of a hash of their names: other faults stay in the sample when code changes elsewhere."""
    ranked = sorted(faults, key=lambda fault: hashlib.sha256(f"{seed} {fault.name}".encode()).digest())
    return sorted(ranked[:size], key=lambda fault: (fault.path, fault.number))


def main() -> int:
    """Run the sample; exit code 1 when too few faults are noticed, 2 when the lists do not fit the code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=300, help="number of faults (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default 0)")
    parser.add_argument("--at-least", type=float, default=0.95, help="share that must be noticed (default 0.95)")
    parser.add_argument("--only", default="", help="of these, only those in modules whose path contains this text")
    parser.add_argument("--core", type=Path, default=HERE / "core.ini", help="list of modules and their tests")
    parser.add_argument("--list", action="store_true", help="print the sample and run nothing")
    options = parser.parse_args()
    core = read_core(options.core)
    equivalents = read_equivalents(HERE / "equivalents.txt")
    faults = [fault for path in core for fault in faults_of(path, Path(path).read_text(encoding="utf-8"))]
    gone = equivalents.keys() - {fault.name for fault in faults} if options.core == HERE / "core.ini" else set()
    if gone or not all(equivalents.values()):
        print("equivalents.txt names faults that are gone, or gives no reason:", *sorted(gone), sep="\n  ")
        return 2
    chosen = [fault for fault in sample(faults, options.sample, options.seed) if options.only in fault.path]
    if options.list:
        print(*(f"{fault.path}:{fault.line} {fault.name}" for fault in chosen), sep="\n")
        return 0
    return run_sample(chosen, core, equivalents, options.at_least)


def run_sample(chosen: list[Fault], core: dict[str, list[str]], equivalents: dict[str, str], at_least: float) -> int:
    """Run the faults one after the other and print what became of them."""
    from scripts.mutation.run import CPU_USUAL, load_libraries, run_tests

    load_libraries([fault.path for fault in chosen])
    outcomes: dict[str, Counter[str]] = {fault.path: Counter() for fault in chosen}
    killers: dict[str, list[str]] = {}
    survivors: list[Fault] = []
    log = Path(tempfile.mkdtemp(prefix="mutation-log-")) / "log"
    for number, fault in enumerate(chosen, start=1):
        began = time.monotonic()
        if fault.name in equivalents:
            outcome, killer = "equivalent", equivalents[fault.name]
        else:
            known = killers.setdefault(fault.path, [])
            outcome, killer = run_tests([*known[:8], *core[fault.path]], fault, log)
            if "::" in killer:
                known[:] = [killer, *(test for test in known if test != killer)]
            if outcome == "passed":
                survivors.append(fault)
            if outcome == "hung" and run_tests([killer or core[fault.path][0]], None, log, CPU_USUAL)[0] != "passed":
                print(f"{killer} is too slow here without a fault, so that it shows nothing: {fault.name}")
                return 2
        outcomes[fault.path][outcome] += 1
        seconds = time.monotonic() - began
        print(f"{number}/{len(chosen)} {outcome} in {seconds:.0f} s: {fault.name}  [{killer}]", flush=True)
    # A test that fails without any fault proves nothing: those that noticed one must pass on the real modules.
    noticed = sorted({test for tests in killers.values() for test in tests})
    if noticed and run_tests(noticed, None, log)[0] != "passed":
        print(f"tests fail without a fault, so nothing is shown:\n{log.read_text(encoding='utf-8')[-3000:]}")
        return 2
    return report(outcomes, survivors, at_least)


def report(outcomes: dict[str, Counter[str]], survivors: list[Fault], at_least: float) -> int:
    """Print what became of the faults, module by module and together; 1 when too few were noticed."""
    total = sum(outcomes.values(), Counter[str]())
    print()
    for module, counts in outcomes.items():
        print(f"{_share(counts):6.1%} of {counts.total():3} in {module}: {dict(counts)}")
    print(f"\n{total.total()} faults: {dict(total)}; noticed or equivalent: {_share(total):.1%}")
    for fault in survivors:
        print(f"  survived: {fault.path}:{fault.line}  {fault.name}")
    return int(_share(total) < at_least)


def _share(counts: Counter[str]) -> float:
    return 1 - counts["passed"] / max(counts.total(), 1)


if __name__ == "__main__":
    sys.exit(main())
