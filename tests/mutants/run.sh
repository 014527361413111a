#!/usr/bin/env bash
# Proves that the tests can fail: plants each bug of a group into a copy of the tree, one at a time, builds, and expects
# the tests that it names to fail.
#
#   run.sh [GROUP [NAME...]]      the bugs of tests/mutants/GROUP, all or those named; without a group: all groups
#   TOCSIN_SIM_SEEDS=n            seeds that the simulator tries per bug (1000)
#   TOCSIN_MUTANTS_DIR=DIR        where the copy is kept (build/mutants): the next run builds only what has changed
#
# The first line of a patch, or else the file `default` of its group, names the rung and the tests: `unit: Webhook.*`.
# Rung chaos has the options of a run there: `chaos: --faults kill --minutes 0.5`.
# What was found is written to tests/mutants/results.tsv: group, bug, rung, and the test or promise that noticed it.
# It needs what the rungs need: PostgreSQL, and for group node RabbitMQ and redis-server. One run at a time.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
mutants=$root/tests/mutants
results=$mutants/results.tsv
kept=${TOCSIN_MUTANTS_DIR:-$root/build/mutants}
copy=$kept/tree
work=$(mktemp -d "${TMPDIR:-/tmp}/tocsin-mutants.XXXXXX")
export TOCSIN_SIM_SEEDS=${TOCSIN_SIM_SEEDS:-1000}
export TOCSIN_TEST_DIR=$work/tests TOCSIN_POSTGRES_SH=$root/scripts/postgres.sh TOCSIN_BINARY=$copy/build/mutants/tocsin
mkdir -p "$copy" "$TOCSIN_TEST_DIR"
chmod 755 "$work" "$TOCSIN_TEST_DIR" # PostgreSQL may run as another user

# shellcheck disable=SC2317 # the trap calls it
cleanup() {
  "$TOCSIN_POSTGRES_SH" remove "$work/postgres" || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# Copies what differs, so that the rest need not be built again. An interrupted run may have left a bug in the copy.
refresh() {
  local file
  while IFS= read -r -d '' file; do
    [[ -f $root/$file ]] || continue
    cmp -s "$root/$file" "$copy/$file" || { mkdir -p "$(dirname "$copy/$file")" && cp "$root/$file" "$copy/$file"; }
  done < <(git -C "$root" ls-files -z --cached --others --exclude-standard)
  # A file that was moved would be built twice.
  while IFS= read -r -d '' file; do
    [[ -f $root/$file ]] || rm "$copy/$file"
  done < <(find "$copy" -path "$copy/build" -prune -o -type f -printf '%P\0')
}

start_postgres() {
  local url
  [[ -z ${TOCSIN_TEST_DATABASE:-} ]] || return 0
  url=$(TOCSIN_PG_OPTIONS='-c full_page_writes=off' "$TOCSIN_POSTGRES_SH" start "$work/postgres")
  export TOCSIN_TEST_DATABASE=${url%/*}/postgres
}

# Sets `rung` and `filter` of a patch.
read_header() {
  IFS=': ' read -r rung filter <"$1"
  [[ $rung == @(unit|fuzz|contract|integration|brokers|simulation|chaos) ]] ||
    IFS=': ' read -r rung filter <"$(dirname "$1")/default"
}

targets_of() {
  [[ $1 == chaos ]] || echo "tocsin_$1_tests"
  [[ $1 != @(contract|integration|brokers|chaos) ]] || echo tocsin # it makes their databases
}

# The preset is made for many small changes: each source of src is compiled alone, with less optimization.
build() { "$copy/scripts/build" mutants "$@" >"$work/log" 2>&1; }

# RUNG FILTER: whether these tests pass. A bug may make them wait for ever.
pass() {
  local limit=60 # of seconds
  if [[ $1 == chaos ]]; then
    rm -rf "$work/chaos"
    # shellcheck disable=SC2086 # words
    timeout 600 python3 -B "$root/tests/chaos/chaos.py" --seed 1 --folder "$work/chaos" $2 >"$work/out" 2>&1
    return
  fi
  [[ $1 == unit ]] || limit=300
  [[ $1 != simulation ]] || limit=1200
  [[ $1 == @(unit|fuzz|simulation) ]] || start_postgres
  timeout "$limit" "$copy/build/mutants/tocsin_$1_tests" --gtest_filter="$2" >"$work/out" 2>&1
}

# What noticed the bug: the test; of a simulation the promise, whether before the calm, and the seed; of chaos every
# promise that was broken.
noticed_by() {
  local seed broken when=
  if [[ $rung == chaos ]]; then
    broken=$(grep -oP '^I\d+ BROKEN, \K[^:]+' "$work/out" | sort -u | paste -sd, | sed 's/,/, /g')
    echo "${broken:-it does not end: $(tail -1 "$work/out")}"
  elif [[ $rung == simulation ]]; then
    seed=$(grep -oP -m1 '^seed \K[0-9]+' "$work/out" || true)
    broken=$(grep -m1 -A1 -E '^seed |ssert' "$work/out" | tail -1 | sed 's/^ *//')
    [[ $broken != *", between faults" ]] || when=" between faults"
    # A search has no seed. An assertion of the engine ends the process before it can tell the seed.
    if [[ -n $seed ]]; then echo "${broken%%:*}$when, $seed"
    else grep -oP -m1 '^\[  FAILED  \] \K[\w./]+' "$work/out" || echo assertion; fi
  else
    grep -oP -m1 '^\[  FAILED  \] \K[\w./]+' "$work/out" ||
      echo "$(grep -oP '^\[ RUN      \] \K[\w./]+' "$work/out" | tail -1), which does not end"
  fi
}

# PATCH: makes the copy of the files that it changes what they are. Not by `patch -R`: without the line that the bug
# deleted, its context may be found in another place.
restore() {
  local file
  while IFS= read -r file; do
    cp "$root/$file" "$copy/$file"
  done < <(sed -n 's|^+++ b/||p' "$1")
}

# PATCH: plants one bug and prints what noticed it; fails when nothing did.
plant() {
  local rung filter found status=0
  read_header "$1"
  patch -s -f -d "$copy" -p1 <"$1" || { restore "$1"; echo "DOES NOT APPLY"; return 1; }
  # shellcheck disable=SC2046 # words
  if ! build $(targets_of "$rung"); then
    found="DOES NOT BUILD: $(grep -m1 'error:' "$work/log")" status=1
  elif pass "$rung" "$filter"; then
    found="NOT NOTICED by $filter" status=1
    ! grep -q 'Running 0 tests' "$work/out" || found="NO SUCH TEST: $filter"
  else
    found=$(noticed_by)
  fi
  restore "$1"
  echo "$rung	$found"
  return "$status"
}

# GROUP NAME FOUND: replaces the line of a bug.
record() {
  { grep -v -P "^$1\t$2\t" "$results" || true; printf '%s\t%s\t%s\n' "$1" "$2" "$3"; } | sort >"$work/results"
  cp "$work/results" "$results"
}

# Without any bug the tests that the patches name must pass; chaos with each set of options.
check_unharmed() {
  local patch rung filter target run
  local -A targets=() filters=() runs=()
  for patch in "$@"; do
    read_header "$patch"
    for target in $(targets_of "$rung"); do targets[$target]=; done
    if [[ $rung == chaos ]]; then runs["chaos $filter"]=
    elif [[ :${filters[$rung]:-} != *":$filter:"* ]]; then filters[$rung]+=$filter:; fi
  done
  for rung in "${!filters[@]}"; do runs["$rung ${filters[$rung]}"]=; done
  build "${!targets[@]}" || { cat "$work/log"; return 1; }
  for run in "${!runs[@]}"; do
    pass "${run%% *}" "${run#* }" || { echo "without any planted bug:"; cat "$work/out"; return 1; }
  done
}

patches=()
for patch in "$mutants"/"${1:-}"*/*.patch; do
  [[ $# -eq 0 || $patch == "$mutants/$1/"* ]] || continue
  [[ $# -lt 2 || " ${*:2} " == *" $(basename "$patch" .patch) "* ]] || continue
  patches+=("$patch")
done
[[ -f ${patches[0]:-} ]] || { echo "no such bugs: $*" >&2; exit 2; }
touch "$results"
refresh
check_unharmed "${patches[@]}"
unnoticed=0 n=0
for patch in "${patches[@]}"; do
  group=$(basename "$(dirname "$patch")") name=$(basename "$patch" .patch)
  n=$((n + 1))
  found=$(plant "$patch") || unnoticed=1
  printf '%d/%d %-45s %s\n' "$n" "${#patches[@]}" "$name" "$found"
  record "$group" "$name" "$found"
done
exit "$unnoticed"
