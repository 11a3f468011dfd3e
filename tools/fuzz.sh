#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time each (default 30s).
#
# Go before 1.27 now and then reports its own time limit as a failure (go.dev/issue/75804): "context deadline
# exceeded" and no failing input. A target that ends so is asked again, three times at most; any other end stands.
# A new input is made smaller in 20 tries: by default Go takes up to a minute for each, which is all of a short run.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
cache=$(go env GOCACHE)/fuzz

fuzz() { # PACKAGE TARGET: as `go test -fuzz` does, by the package's program that is linked once for all its targets
  (cd "$1" && "$scratch/fuzz.test" -test.run='^$' -test.fuzz="^$2\$" -test.fuzztime="$time" -test.fuzzminimizetime=20x -test.fuzzcachedir="$cache/$(go list)" </dev/null 2>&1) | tee "$log"
}

only_the_limit() {
  grep -qx '    context deadline exceeded' "$log" && ! grep -qiE 'failing input|panic:|hung or terminated|_test\.go:' "$log"
}

grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | xargs -n 1 dirname | sort -u | while read -r pkg; do
  go test -c -fuzz=. -o "$scratch/fuzz.test" "$pkg" </dev/null
  grep -ohE '^func Fuzz[A-Za-z0-9_]+' "$pkg"/*_test.go | sed 's/^func //' | while read -r target; do
    for try in 1 2 3; do
      echo "$pkg $target"
      fuzz "$pkg" "$target" && break
      { [ "$try" -lt 3 ] && only_the_limit; } || exit 1
    done
  done
done
