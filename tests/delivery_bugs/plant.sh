#!/usr/bin/env bash
# Proves that the tests of delivery can fail: plants every bug of tests/delivery_bugs/bugs into a copy of the tree, one
# at a time, and expects a test to fail. The first line of a patch names the rung and the tests that ought to notice.
#
#   tests/delivery_bugs/plant.sh [NAME...]     some bugs, or all
#   TOCSIN_PLANT_DIR=DIR                       keeps the copy there: the next run builds only what has changed
#
# It needs what the rungs need: PostgreSQL, RabbitMQ, redis-server.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
bugs=$root/tests/delivery_bugs/bugs
work=$(mktemp -d "${TMPDIR:-/tmp}/tocsin-plant.XXXXXX")
copy=${TOCSIN_PLANT_DIR:-$work/tree}
export TOCSIN_TEST_DIR=$work/tests TOCSIN_POSTGRES_SH=$root/scripts/postgres.sh TOCSIN_BINARY=$copy/build/release/tocsin
mkdir -p "$copy" "$TOCSIN_TEST_DIR"
chmod 755 "$work" "$TOCSIN_TEST_DIR" # PostgreSQL may run as another user

cleanup() {
  "$TOCSIN_POSTGRES_SH" remove "$work/postgres"
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# What differs is copied, and is newer than what was built of it.
git -C "$root" ls-files -z | while IFS= read -r -d '' file; do
  cmp -s "$root/$file" "$copy/$file" && continue
  mkdir -p "$(dirname "$copy/$file")"
  cp "$root/$file" "$copy/$file"
done

build() { "$copy/scripts/build" release "$@" >"$work/log" 2>&1; }

# RUNG FILTER: whether these tests pass. A bug may make them wait for ever.
pass() {
  local limit=60 # of seconds
  [[ $1 != @(integration|brokers) ]] || limit=300
  timeout "$limit" "$copy/build/release/tocsin_$1_tests" --gtest_filter="$2" >"$work/out" 2>&1
}

url=$(TOCSIN_PG_OPTIONS='-c full_page_writes=off' "$TOCSIN_POSTGRES_SH" start "$work/postgres")
export TOCSIN_TEST_DATABASE=${url%/*}/postgres

chosen=()
declare -A filters=()
for patch in "$bugs"/*.patch; do
  [[ $# -eq 0 || " $* " == *" $(basename "$patch" .patch) "* ]] || continue
  chosen+=("$patch")
  IFS=': ' read -r rung filter <"$patch"
  filters[$rung]+=$filter:
done

# What a rung runs.
targets_of() {
  echo "tocsin_$1_tests"
  [[ $1 != @(integration|brokers) ]] || echo tocsin
}

# shellcheck disable=SC2046 # words
build $(for rung in "${!filters[@]}"; do targets_of "$rung"; done) || { cat "$work/log"; exit 1; }
for rung in "${!filters[@]}"; do
  pass "$rung" "${filters[$rung]}" || { echo "without any planted bug:"; cat "$work/out"; exit 1; }
done

unnoticed=0 n=0
for patch in "${chosen[@]}"; do
  name=$(basename "$patch" .patch)
  IFS=': ' read -r rung filter <"$patch"
  patch -s -f -d "$copy" -p1 <"$patch"
  n=$((n + 1))
  # shellcheck disable=SC2046 # words
  if ! build $(targets_of "$rung"); then
    printf '%d/%d %-45s DOES NOT BUILD: %s\n' "$n" "${#chosen[@]}" "$name" "$(grep -m1 'error:' "$work/log")"
    unnoticed=1
  elif pass "$rung" "$filter"; then
    printf '%d/%d %-45s NOT NOTICED by %s %s\n' "$n" "${#chosen[@]}" "$name" "$rung" "$filter"
    unnoticed=1
  else
    failed=$(grep -oP -m1 '^\[  FAILED  \] \K[\w./]+' "$work/out" || tail -1 "$work/out")
    printf '%d/%d %-45s %s %s\n' "$n" "${#chosen[@]}" "$name" "$rung" "$failed"
  fi
  patch -s -f -R -d "$copy" -p1 <"$patch"
done
exit "$unnoticed"
