#!/usr/bin/env bash
# Runs every suite and prints go test's lines, skipped tests with their reason, and each suite's seconds.
# Usage: tools/test.sh [SUITE...]   suites: setup unit store kafka e2e race fuzz
set -uo pipefail
cd "$(dirname "$0")/.."
logs=$(mktemp -d "${TMPDIR:-/tmp}/evenhand-test.XXXXXX")
failed=0 summary=()

# suite NAME COMMAND...: the whole output goes to a log; what matters of it is shown.
suite() {
  local name=$1 log=$logs/$1.log start=$SECONDS rc=0
  shift
  if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then return; fi
  echo "== $name"
  "$@" >"$log" 2>&1 || rc=$?
  grep -E '^(ok|FAIL|panic:|fuzz: elapsed|\?|engine:|Kafka )|^ *--- (FAIL|SKIP)' -A1 "$log" | grep -vE '^(--$|=== |PASS$|\? )' || true
  if [ $rc -ne 0 ]; then
    failed=1
    echo "-- $name failed (status $rc); the end of its log:"
    grep -vE '^(=== (RUN|PAUSE|CONT|NAME)|--- PASS|    --- PASS|PASS$)' "$log" | tail -n 60
  fi
  summary+=("$(printf '%-6s %5d s  %s' "$name" $((SECONDS - start)) "$([ $rc -eq 0 ] && echo passed || echo FAILED)")")
}

setup() {
  for need in go npm java mvn; do
    command -v $need >/dev/null || { echo "setup: $need is not installed (Go 1.26, npm, a JVM 17 and Maven are needed by the tests)"; return 1; }
  done
  tools/engine/fetch.sh && tools/kafka/kafka.sh install && CGO_ENABLED=0 go build -o bin/evenhand ./cmd/evenhand && go vet ./...
}

wanted=("$@")
gotest() { CGO_ENABLED=0 go test -v -timeout 20m "$@"; }
unit=(./audit/... ./detectors/... ./ingest/... ./pipeline/... ./internal/config/... ./internal/layers/... ./internal/obs/... ./internal/kafkaconn/... ./schemas/...)
store=(./internal/chconn/... ./internal/embedded/engine/... ./store/... ./sinks/clickhouse/... ./dashboards/...)
kafka=(./internal/embedded/broker/... ./sources/... ./sinks/stream/...)
# packages with goroutines; the rule packs have none and take minutes under the detector
race=(./detectors ./detectors/scan ./detectors/terms ./pipeline/... ./ingest/... ./internal/obs/... ./internal/kafkaconn/... ./sources/... ./sinks/stream/...)
suite setup setup
[ $failed -eq 0 ] || { printf '%s\n' "${summary[@]}"; exit 1; }
suite unit gotest "${unit[@]}"
suite store gotest -p 1 "${store[@]}"
suite kafka gotest -p 1 "${kafka[@]}"
suite e2e gotest -p 1 ./cmd/...
suite race env CGO_ENABLED=1 go test -race -short -timeout 15m "${race[@]}"
suite fuzz tools/fuzz.sh "${FUZZTIME:-10s}"

echo
printf '%s\n' "${summary[@]}"
if [ $failed -ne 0 ]; then
  echo "logs: $logs"
  exit 1
fi
rm -rf "$logs"
