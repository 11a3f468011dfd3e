#!/usr/bin/env bash
# Builds evenhand with failpoints and lets tools/crash kill it, its broker and its store under load.
# The last line is one JSON object; the exit status is 0 when nothing was lost or doubled.
#
#   tools/crash.sh            one round on the embedded broker, every failpoint at least once
#   LONG=1 tools/crash.sh     60 minutes: rounds on the embedded broker, then on three real ones of
#                             which one is killed and one hangs (a JVM 17 and Maven)
#   FOR=20m BROKER=kafka3 tools/crash.sh   anything between
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p bin
export CGO_ENABLED=0
go build -tags failpoints -o bin/evenhand-crash ./cmd/evenhand
go build -o bin/crash ./tools/crash
args=(-bin bin/evenhand-crash)
if [ -n "${LONG:-}" ]; then
  args+=(-for "${FOR:-60m}" -broker "${BROKER:-embedded,kafka3}" -absent 2m)
else
  args+=(-for "${FOR:-0s}" -broker "${BROKER:-embedded}")
fi
exec bin/crash "${args[@]}"
