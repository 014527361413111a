"""Results of the comparison as JSON Lines: reading them, medians, tables."""
import json
import statistics

NOISY_CORES = 0.5  # used by other programs while a run went on

# Per workload: (field of a result, heading, how the rounds become one).
LATENESS = [("p50", "p50 ms", "median"), ("p90", "p90 ms", "median"), ("p99", "p99 ms", "median"),
            ("p999", "p99.9 ms", "median"), ("max", "max ms", "median")]
FAULTS = [("early", "early", "sum"), ("lost", "lost", "sum"), ("duplicates", "twice", "sum")]
CREATES = [("create_batch_per_s", "batch creates/s", "median"), ("create_single_per_s", "single creates/s", "median")]
CANCELS = [("cancels_per_s", "cancels/s", "median")]
ANSWERS = [("p50_ms", "p50 ms", "median"), ("p99_ms", "p99 ms", "median")]
COLUMNS = {
    "w1": LATENESS + FAULTS,
    "w2": [*CREATES, ("drain_per_s", "drain/s", "median"), ("drain_cpu_s", "drain CPU s", "median"), *FAULTS],
    "w3": [("max_rate", "jobs/s held", "median"), ("p50", "p50 ms", "median"), ("p99", "p99 ms", "median")],
    "w4": [("preload_per_s", "preload/s", "median"), ("mem_mb", "server MB", "median"), *LATENESS, *FAULTS],
    "w5": [*CANCELS, ("refused", "refused", "sum"), ("fired_though_cancelled", "fired all the same", "sum")],
    "w6": [("cpu_s_per_min", "CPU s/min", "median"), ("server_cpu", "server", "median"),
           ("worker_cpu", "worker", "median"), ("server_mb", "server MB", "median")],
    "ceiling": CREATES + CANCELS,
    "w2wrk": [CREATES[1], *ANSWERS, ("healthz_per_s", "GET /healthz/s", "median")],
    "w5wrk": [*CANCELS, *ANSWERS, ("preload_per_s", "preload/s", "median")],
}
TITLES = {
    "w1": "W1 precision: lateness of jobs due at random milliseconds",
    "w2": "W2 throughput: creates, then all due at one instant",
    "w3": "W3 sustained: the highest rate held with p99 below a second",
    "w4": "W4 depth: W1 on top of pending jobs",
    "w5": "W5 cancels one by one, 32 in flight",
    "w6": "W6 idle: pending jobs, none due",
    "ceiling": "The harness's own client against a server that does nothing",
    "w2wrk": "Single creates sent by wrk, 32 connections",
    "w5wrk": "Cancels sent by wrk, 32 connections",
}
STORED = ("ts", "round", "system", "workload", "others_cores", "error", "result", "versions")
NOT_STORED_OF_RESULT = ("steps", "note")


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def stored(line):
    """What is worth keeping of a line."""
    kept = {key: line[key] for key in STORED if key in line}
    if "result" in kept:
        kept["result"] = {key: value for key, value in kept["result"].items() if key not in NOT_STORED_OF_RESULT}
    return kept


def write_stored(lines, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(stored(line), separators=(",", ":")) + "\n" for line in lines)


def runs_of(lines, system, workload):
    return [line for line in lines if line.get("system") == system and line.get("workload") == workload
            and line.get("result") and line["result"].get("supported") is not False]


def is_noisy(line):
    return line.get("others_cores", 0) > NOISY_CORES


def quiet_runs(runs):
    """Noisy runs are left out where at least two quiet ones remain."""
    quiet = [run for run in runs if not is_noisy(run)]
    return quiet if len(quiet) >= 2 else runs


def value_of(runs, field, how="median"):
    values = [run["result"][field] for run in runs if isinstance(run["result"].get(field), (int, float))]
    if not values:
        return None
    return sum(values) if how == "sum" else statistics.median(values)


def systems_of(lines):
    return list(dict.fromkeys(line["system"] for line in lines if "system" in line))


def number(value):
    if value is None:
        return "–"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def markdown(rows):
    """Rows of cells, the first one the heading, with columns of equal width."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    align = [str.ljust] + [str.rjust] * (len(widths) - 1)
    texts = ["| " + " | ".join(fit(cell, width) for fit, cell, width in zip(align, row, widths)) + " |" for row in rows]
    rule = "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    return "\n".join([texts[0], rule, *texts[1:]])


def median_table(lines, workload):
    rows = [["system", *(heading for _, heading, _ in COLUMNS[workload]), "runs used"]]
    for system in systems_of(lines):
        runs = runs_of(lines, system, workload)
        if runs:
            used = quiet_runs(runs)
            cells = [number(value_of(runs if how == "sum" else used, field, how))
                     for field, _, how in COLUMNS[workload]]
            rows.append([system, *cells, f"{len(used)} of {len(runs)}"])
    return markdown(rows) if len(rows) > 1 else None


def ratio_table(lines, workload, against):
    """What each system reached over what `against` did in the same round: the median over the rounds, and each."""
    fields = [(field, heading) for field, heading, how in COLUMNS[workload] if how == "median"]
    rows = [[f"in units of {against}", *(heading.removesuffix(" ms") for _, heading in fields)]]
    rounds = sorted({run["round"] for run in runs_of(lines, against, workload)})
    for system in systems_of(lines):
        cells, is_empty = [], True
        for field, _ in fields:
            ratios = []
            for n in rounds:
                pair = [value_of([run for run in runs_of(lines, name, workload) if run["round"] == n], field)
                        for name in (system, against)]
                if None not in pair and pair[1]:
                    ratios.append(pair[0] / pair[1])
            is_empty = is_empty and not ratios
            each = f" ({', '.join(f'{ratio:.2f}' for ratio in ratios)})" if len(ratios) > 1 else ""
            cells.append(f"{statistics.median(ratios):.2f}{each}" if ratios else "–")
        if not is_empty and system != against:
            rows.append([system, *cells])
    return markdown(rows) if len(rows) > 1 else None


def report(lines, against):
    for workload, title in TITLES.items():
        table = median_table(lines, workload)
        if table:
            print(f"\n## {title}\n\n{table}")
            ratios = ratio_table(lines, workload, against)
            if ratios:
                print(f"\n{ratios}")
    failed = [line for line in lines if "error" in line]
    if failed:
        print("\n## Failed\n")
        for line in failed:
            print(f"- round {line['round']}, {line['workload']} {line['system']}: {line['error']}")
