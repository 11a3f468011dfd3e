#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time each (default 30s).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}
grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | while read -r file; do
  pkg=./$(dirname "$file")
  grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //' | while read -r target; do
    echo "$pkg $target"
    go test -run='^$' -fuzz="^$target\$" -fuzztime="$time" "$pkg" </dev/null
  done
done
