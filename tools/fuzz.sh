#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time each (default 30s).
#
# Go before 1.27 now and then reports its own time limit as a failure (go.dev/issue/75804): "context deadline
# exceeded" and no failing input. A target that ends so is asked again, three times at most; any other end stands.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fuzz() { # PACKAGE TARGET
  go test -run='^$' -fuzz="^$2\$" -fuzztime="$time" "$1" </dev/null 2>&1 | tee "$log"
}

only_the_limit() {
  grep -qx '    context deadline exceeded' "$log" && ! grep -qiE 'failing input|panic:|hung or terminated|_test\.go:' "$log"
}

grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | while read -r file; do
  pkg=$(dirname "$file")
  grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //' | while read -r target; do
    for try in 1 2 3; do
      echo "$pkg $target"
      fuzz "$pkg" "$target" && break
      { [ "$try" -lt 3 ] && only_the_limit; } || exit 1
    done
  done
done
