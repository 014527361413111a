#!/usr/bin/env python3
"""Compares Tocsin with other systems that keep delayed jobs, and with what the client itself can do.

Alternating rounds: in each round every workload runs on every system, one after the other, each round beginning with
another system. Results are appended to a file of JSON Lines; a summary over all rounds in that file is printed at the
end. The harness is found in TOCSIN_PEERS, or in a folder `peers` beside the recorded data. PEERS_ROOT: where it keeps
its servers' data. NODE: the Node.js to run it with. TOCSIN_BINARY: the program to measure.
"""
import argparse
import datetime
import json
import os
import pathlib
import signal
import sys

import harness
import results

OUT = harness.ROOT / "build" / "peers.jsonl"
STORE = harness.ROOT / "docs" / "bench" / "peers.jsonl"
LOG = harness.ROOT / "build" / "peers.log"

SYSTEMS = ("tocsin-noop tocsin-webhook tocsin-pull pg-poll graphile-worker pg-boss bullmq-pg bullmq-everysec "
           "bullmq-always bullmq-hz100 zset-1s zset-lua zset-lua-always beanstalkd rabbitmq celery").split()
WRK, CEILING = ["w2wrk", "w5wrk"], ["ceiling"]
WORKLOADS = ["w1", "w2", "w3", "w4", "w5", "w6"]

# As in the harness's own run.sh: the first rate that W3 tries, and what shows nothing new or cannot be done.
FIRST_RATE = {"pg-poll": 15000, "graphile-worker": 12000, "pg-boss": 6000, "bullmq-pg": 500, "bullmq-everysec": 5000,
              "bullmq-always": 4000, "zset-lua": 12000, "beanstalkd": 4000, "rabbitmq": 6000, "celery": 500,
              "tocsin-noop": 15000, "tocsin-webhook": 3000, "tocsin-pull": 6000}
DEPTH = {"celery": 100000}  # its worker keeps every pending task in memory
LEFT_OUT = {"bullmq-always": {"w4", "w6"}, "bullmq-hz100": {"w2", "w3", "w5"},
            "zset-1s": {"w3"},  # its p99 is a second by construction
            "zset-lua-always": {"w3", "w4", "w6"}, "rabbitmq": {"w5"}}


def words(text):
    return [word for word in text.replace(",", " ").split() if word]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="dev peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=words, default=SYSTEMS, help=f"of {' '.join(SYSTEMS)}; all")
    parser.add_argument("--workloads", type=words, help="of w1 precision, w2 throughput, w3 sustained rate, w4 depth, "
                        "w5 cancel, w6 idle; all, unless --ceiling or --wrk is given")
    parser.add_argument("--ceiling", action="store_true", help="also the harness's client against a server that does "
                        "nothing: where a system comes near, the client is what was measured")
    parser.add_argument("--wrk", action="store_true", help="also single creates and cancels sent by wrk, which is "
                        "no limit; Tocsin only")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--params", type=json.loads, default={}, metavar="JSON",
                        help='parameters per workload, such as {"w1":{"n":500}}')
    parser.add_argument("--against", default="tocsin-noop", metavar="SYSTEM", help="what the ratios divide by")
    parser.add_argument("--out", type=pathlib.Path, default=OUT, help="results are appended; build/peers.jsonl")
    parser.add_argument("--store", action="store_true", help="at the end write what is worth keeping of --out to "
                        "docs/bench/peers.jsonl, where scripts/plot reads it")
    parser.add_argument("--quiet-wait", type=int, default=120, metavar="S",
                        help="longest wait for a quiet machine before each run")
    arguments = parser.parse_args()
    if arguments.workloads is None:
        arguments.workloads = [] if arguments.ceiling or arguments.wrk else WORKLOADS
    unknown = set(arguments.workloads) - set(WORKLOADS) | set(arguments.systems) - set(SYSTEMS)
    if unknown:
        parser.error(f"unknown: {' '.join(sorted(unknown))}")
    return arguments


def parameters(system, workload, given):
    default = {"w3": {"hint": FIRST_RATE.get(system, 2000)}, "w4": {"depth": DEPTH.get(system, 1000000)}}
    return {**default.get(workload, {}), **given.get(workload, {})}


def runs_of_round(arguments, number):
    """(workload, system), each round beginning with another system."""
    turn = (number - 1) % len(arguments.systems)
    for workload in arguments.workloads:
        for system in arguments.systems[turn:] + arguments.systems[:turn]:
            if workload not in LEFT_OUT.get(system, ()):
                yield workload, system
    if arguments.ceiling:
        yield from ((workload, "nothing") for workload in CEILING)
    if arguments.wrk:
        yield from ((workload, "tocsin-noop") for workload in WRK)


def describe(line):
    if "error" in line:
        return f"failed: {line['error']}"
    fields = [(heading, line["result"].get(field)) for field, heading, _ in results.COLUMNS[line["workload"]]]
    text = ", ".join(f"{heading} {results.number(value)}" for heading, value in fields if value is not None)
    noise = f"; others used {line['others_cores']} cores" if results.is_noisy(line) else ""
    return f"{text} ({line['took_s']:.0f} s{noise})"


def run_rounds(arguments, binary, done_before):
    if arguments.rounds and not binary.is_file() and any(s.startswith("tocsin-") for s in arguments.systems):
        raise harness.HarnessError(f"no program {binary}")
    first = done_before + 1
    total = sum(1 for n in range(arguments.rounds) for _ in runs_of_round(arguments, first + n))
    count = 0
    for number in range(first, first + arguments.rounds):
        for workload, system in runs_of_round(arguments, number):
            count += 1
            given = parameters(system, workload, arguments.params)
            lines = harness.run(system, workload, number, given, arguments.quiet_wait, binary, LOG)
            if not lines:
                lines = [{"ts": datetime.datetime.now(datetime.timezone.utc).isoformat(), "round": number,
                          "system": system, "workload": workload, "error": f"no result; see {LOG}"}]
            if count == 1:
                lines.insert(0, {"ts": lines[0]["ts"], "round": number, "versions": harness.versions(LOG, binary)})
            with open(arguments.out, "a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
            for line in lines:
                if "workload" in line:
                    print(f"{count}/{total} round {number} {workload:<7} {system:<15} {describe(line)}", flush=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is stopped, too
    arguments = parse_arguments()
    if arguments.rounds > 0:
        source = harness.find_source()
        harness.refresh_copy(source)
        harness.set_up()
    binary = pathlib.Path(os.environ.get("TOCSIN_BINARY") or harness.ROOT / "build/release/tocsin").resolve()
    arguments.out = arguments.out.resolve()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    before = results.read(arguments.out) if arguments.out.is_file() else []
    run_rounds(arguments, binary, max((line["round"] for line in before), default=0))
    lines = results.read(arguments.out)
    results.report(lines, arguments.against)
    if arguments.store:
        results.write_stored(lines, STORE)
        print(f"\nStored in {STORE.relative_to(harness.ROOT)}")
    return 1 if any("error" in line for line in lines[len(before):]) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except harness.HarnessError as error:
        sys.exit(f"dev peers: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
