# Shared by the scripts; sourced, never run.
# shellcheck shell=bash
set -euo pipefail

# shellcheck disable=SC2034 # used by those who source this
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

port_is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Below the range the kernel hands out to outgoing connections, so that none of those takes the port in between.
free_port() {
  local port
  for _ in {1..100}; do
    port=$((20000 + RANDOM % 12000))
    port_is_taken "$port" || { echo "$port"; return; }
  done
  die "found no free port"
}

# A compiler of this code takes up to 1.5 GB: fewer jobs where memory is short.
build_jobs() {
  local by_memory cores
  cores=$(nproc)
  by_memory=$(awk '/^MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo)
  ((by_memory >= 1)) || by_memory=1
  echo "${TOCSIN_JOBS:-$((by_memory < cores ? by_memory : cores))}"
}

# The value of one field of the JSON object on standard input.
json_field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
