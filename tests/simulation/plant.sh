#!/usr/bin/env bash
# Proves that the simulator can fail: plants every bug of tests/simulation/bugs into a copy of the tree, one at a time,
# and expects a broken promise within a thousand seeds. Prints which promise it was and how many seeds it took.
#
#   tests/simulation/plant.sh [NAME...]     some bugs, or all
#   tests/simulation/plant.sh --table       what was found so far, as the table of docs/testing.md
#   TOCSIN_SIM_SEEDS=n                      seeds to try per bug (default 1000)
#
# The copy stays in build/plant: the next run builds only what has changed.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
copy=$root/build/plant/tree
results=$root/build/plant/results # name, promise, seeds
export TOCSIN_SIM_SEEDS=${TOCSIN_SIM_SEEDS:-1000}

table() {
  echo '| bug | promise that broke | seeds |'
  echo '|---|---|---|'
  sort "$results" | awk -F '\t' '{ gsub("_", " ", $1); printf "| %s | `%s` | %s |\n", $1, $2, $3 }'
}

# Only what differs is copied, so that the rest need not be built again.
refresh() {
  local file
  while IFS= read -r -d '' file; do
    [[ -f $root/$file ]] || continue
    cmp -s "$root/$file" "$copy/$file" || { mkdir -p "$(dirname "$copy/$file")" && cp "$root/$file" "$copy/$file"; }
  done < <(git -C "$root" ls-files -z --cached --others --exclude-standard)
  [[ -f $copy/build/release/build.ninja ]] ||
    cmake -S "$copy" -B "$copy/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release >"$root/build/plant/log"
}

build() {
  cmake --build "$copy/build/release" --target tocsin_simulation_tests >"$root/build/plant/log" 2>&1 && return
  cat "$root/build/plant/log"
  return 1
}

simulate() {
  "$copy/build/release/tocsin_simulation_tests" --gtest_filter='*KeepsEveryPromise*' >"$root/build/plant/out" 2>&1
}

# One bug: builds, looks for the promise that breaks, and takes it out again.
plant() {
  local name=$1 seed broken promise
  patch -s -f -d "$copy" -p1 <"$root/tests/simulation/bugs/$name.patch"
  build
  if simulate; then
    seed=$TOCSIN_SIM_SEEDS promise='not noticed' broken='NOT NOTICED'
  else
    seed=$(grep -oP -m1 '^seed \K[0-9]+' "$root/build/plant/out" || true)
    broken=$(grep -m1 -A1 -E '^seed |ssert' "$root/build/plant/out" | tail -1 | sed 's/^ *//')
    promise=${broken%%:*}
    # An assertion of the engine ends the process before it can tell the seed.
    [[ -n $seed ]] || { seed=- promise=assertion; }
  fi
  patch -s -f -R -d "$copy" -p1 <"$root/tests/simulation/bugs/$name.patch"
  printf '%-45s seed %-4s %s\n' "$name" "${seed:--}" "$broken"
  sed -i "/^$name\t/d" "$results"
  printf '%s\t%s\t%s\n' "$name" "$promise" "$seed" >>"$results"
  [[ $broken != 'NOT NOTICED' ]]
}

mkdir -p "$copy"
touch "$results"
[[ ${1:-} != --table ]] || { table; exit; }
refresh
if (($# == 0)); then
  mapfile -t names < <(cd "$root/tests/simulation/bugs" && printf '%s\n' *.patch | sed 's/\.patch$//')
else
  names=("$@")
fi
build
simulate || { echo "without any planted bug:"; cat "$root/build/plant/out"; exit 1; }
unnoticed=0
for i in "${!names[@]}"; do
  printf '%2d/%d ' "$((i + 1))" "${#names[@]}"
  plant "${names[$i]}" || unnoticed=1
done
exit "$unnoticed"
