#!/usr/bin/env python3
"""Checks the planted bugs of tests/mutants without building them.

check_mutants.py [ROOT]. Every patch applies, and has a line in results.tsv that names a test which exists and which the
patch's filter selects: a filter that no longer selects it would let the bug pass unnoticed. Prints one line per
offence; exit 1 when there are any.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

TEST = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
# [INSTANCE/]SUITE[/TYPE].NAME[/VALUE]
FULL_NAME = re.compile(r"(?:\w+/)?(\w+)(?:/\w+)?\.(\w+)(?:/\w+)?$")
RUNGS = {"unit", "fuzz", "contract", "integration", "brokers", "simulation", "chaos"}
OTHER_EVIDENCE = {"simulation", "chaos"}  # their lines name broken promises


def header(patch):
    """The rung and the filter: the first line of a patch, or else of the file `default` of its group."""
    for path in (patch, patch.parent / "default"):
        if path.exists():
            rung, _, pattern = path.read_text(encoding="utf-8").split("\n", 1)[0].partition(": ")
            if rung in RUNGS:
                return rung, pattern
    return None, None


def selects(pattern, test):
    """As --gtest_filter does: patterns between colons; those after a minus are left out."""
    wanted, _, unwanted = pattern.partition("-")

    def matches(patterns):
        return any(fnmatch.fnmatchcase(test, each) for each in patterns.split(":"))

    return matches(wanted or "*") and not (unwanted and matches(unwanted))


def applies(patch, root):
    command = ["patch", "-s", "-f", "-p1", "--dry-run", "-d", str(root), "-i", str(patch)]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0


def evidence_mistake(patch, recorded, tests):
    """What is wrong with the recorded line of a patch; None: nothing."""
    rung, pattern = header(patch)
    if rung is None:
        return "names no rung"
    if recorded is None:
        return "has no line in results.tsv"
    noticed_in, found = recorded
    if noticed_in != rung:
        return f"names rung {rung}, but was recorded for {noticed_in}"
    if rung in OTHER_EVIDENCE:
        return None
    name = found.partition(",")[0]
    parts = FULL_NAME.match(name)
    if not parts or parts.groups() not in tests:
        return f"was noticed by {name}, which is no test"
    return None if selects(pattern, name) else f"was noticed by {name}, which its filter {pattern} leaves out"


def main(root):
    mutants = root / "tests/mutants"
    lines = [line.split("\t") for line in (mutants / "results.tsv").read_text(encoding="utf-8").splitlines()]
    recorded = {(group, name): (rung, found) for group, name, rung, found in lines}
    sources = (root / "tests").rglob("*.cc")
    tests = {match.groups() for path in sources for match in TEST.finditer(path.read_text(encoding="utf-8"))}
    mistakes = []
    for patch in sorted(mutants.glob("*/*.patch")):
        key = (patch.parent.name, patch.stem)
        if not applies(patch, root):
            mistakes.append(f"{'/'.join(key)} does not apply")
        if mistake := evidence_mistake(patch, recorded.pop(key, None), tests):
            mistakes.append(f"{'/'.join(key)} {mistake}")
    mistakes += [f"{'/'.join(key)} of results.tsv is no patch" for key in recorded]
    print("\n".join(mistakes), end="\n" if mistakes else "")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()))
