#!/usr/bin/env bash
# Proves that the simulator can fail: plants every bug of tests/simulation/bugs into a copy of the tree, one at a time,
# and expects a broken promise within a thousand seeds. Prints which promise it was and how many seeds it took.
#
#   tests/simulation/plant.sh [NAME...]     some bugs, or all
#   TOCSIN_SIM_SEEDS=n                      seeds to try per bug (default 1000)
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
export TOCSIN_SIM_SEEDS=${TOCSIN_SIM_SEEDS:-1000}
copy=$(mktemp -d "${TMPDIR:-/tmp}/tocsin-plant.XXXXXX")
trap 'rm -rf "$copy"' EXIT

git -C "$root" ls-files -z |
  (cd "$root" && tar -c --null -T -) | tar -x -C "$copy"
cmake -S "$copy" -B "$copy/build" -G Ninja -DCMAKE_BUILD_TYPE=Release >"$copy/log"

build() {
  cmake --build "$copy/build" --target tocsin_simulation_tests >"$copy/log" 2>&1 && return
  cat "$copy/log"
  exit 1
}
simulate() { "$copy/build/tocsin_simulation_tests" --gtest_filter='*KeepsEveryPromise*' >"$copy/out" 2>&1; }

build
simulate || { echo "without any planted bug:"; cat "$copy/out"; exit 1; }

unnoticed=0
for patch in "$root"/tests/simulation/bugs/*.patch; do
  name=$(basename "$patch" .patch)
  [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
  patch -s -d "$copy" -p1 <"$patch"
  build
  if simulate; then
    printf '%-40s NOT NOTICED in %s seeds\n' "$name" "$TOCSIN_SIM_SEEDS"
    unnoticed=1
  else
    seed=$(grep -oP -m1 '^seed \K[0-9]+' "$copy/out" || true)
    broken=$(grep -m1 -A1 -E '^seed |ssert' "$copy/out" | tail -1 | sed 's/^ *//')
    printf '%-40s seed %-4s %s\n' "$name" "${seed:--}" "$broken"
  fi
  patch -s -R -d "$copy" -p1 <"$patch"
done
exit "$unnoticed"
