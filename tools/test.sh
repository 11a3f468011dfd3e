#!/usr/bin/env bash
# Runs every suite and prints go test's lines, skipped tests with their reason, and each suite's seconds.
# Usage: tools/test.sh [SUITE...]   suites: setup unit store kafka bus e2e clients crash race fuzz
set -uo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:-} -pgo=off" # a profile is for what is run, not tested: with it every dependency is compiled twice
logs=$(mktemp -d "${TMPDIR:-/tmp}/evenhand-test.XXXXXX")
failed=0 summary=()

# suite NAME COMMAND...: the whole output goes to a log; what matters of it is shown.
suite() {
  local name=$1 log=$logs/$1.log start=$SECONDS rc=0
  shift
  if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then return; fi
  echo "== $name"
  "$@" >"$log" 2>&1 || rc=$?
  grep -E '^(ok|FAIL|panic:|fuzz: elapsed|\{"broker"|\?|engine:|clients:|Kafka )|^ *--- (FAIL|SKIP)' -A1 "$log" | grep -vE '^(--$|=== |PASS$|\? )' || true
  if [ $rc -ne 0 ]; then
    failed=1
    echo "-- $name failed (status $rc); the end of its log:"
    grep -vE '^(=== (RUN|PAUSE|CONT|NAME)|--- PASS|    --- PASS|PASS$)' "$log" | tail -n 60
  fi
  summary+=("$(printf '%-7s %5d s  %s' "$name" $((SECONDS - start)) "$([ $rc -eq 0 ] && echo passed || echo FAILED)")")
}

setup() {
  for need in go npm javac mvn python3 curl; do
    command -v $need >/dev/null || { echo "setup: $need is not installed (Go 1.26, npm, a JDK 17, Maven, Python 3.11 with venv and curl are needed by the tests)"; return 1; }
  done
  tools/engine/fetch.sh && tools/kafka/kafka.sh install && CGO_ENABLED=0 go build -o bin/evenhand ./cmd/evenhand && go vet ./...
}

wanted=("$@")
gotest() { CGO_ENABLED=0 go test -v -timeout 30m "$@"; } # the longest package takes 10 minutes, on slow processors without AVX-512 20
unit=(./audit/... ./bench ./detectors/... ./ingest/... ./guard/... ./client/... ./examples/... ./gateway/... ./pipeline/... ./sinks ./sinks/linear/... ./sinks/webhook/... ./sinks/evaluations/... ./sinks/trackertest/... ./internal/config/... ./internal/secret/... ./internal/failpoint/... ./internal/reply ./internal/wait/... ./internal/layers/... ./internal/llm/... ./judge ./judge/agreement/... ./judge/compliance/... ./judge/hybrid/... ./judge/mend/... ./judge/replay/... ./internal/obs/... ./internal/kafkaconn/... ./schemas/... ./alarm/stats/... ./alarm/sim/...)
store=(./auth/... ./internal/chconn/... ./internal/embedded/engine/... ./store/... ./sinks/clickhouse/... ./sinks/file/... ./dashboards/... ./repair/... ./retry/... ./facts/... ./judge/lane/... ./rollup/... ./retention/... ./remediation/... ./internal/jobs/... ./alarm ./graph/... ./gates/...)
kafka=(./internal/embedded/broker/... ./internal/arbiter/... ./sources/... ./sinks/stream/... ./join/...)
# packages with goroutines; the rule packs have none and take minutes under the detector
race=(./auth/... ./detectors ./detectors/classifier ./detectors/classifier/encoder ./detectors/scan ./detectors/terms ./pipeline/... ./ingest/... ./guard/... ./client/... ./gateway/... ./internal/llm/... ./judge/hybrid/... ./judge/mend/... ./internal/obs/... ./internal/kafkaconn/... ./internal/jobs/... ./internal/bus/... ./internal/arbiter/... ./retry/... ./facts/... ./remediation/... ./sinks/linear/... ./sinks/webhook/... ./sinks/evaluations/... ./sources/... ./sinks/stream/... ./join/... ./alarm ./graph/... ./gates/...)
kafka() { gotest -p 1 "${kafka[@]}" && gotest -tags failpoints -run TestKilled ./join; }
clients() { tools/kafka/kafka.sh install && tools/clients/install.sh && gotest -parallel 4 ./tools/clients; }
suite setup setup
[ $failed -eq 0 ] || { printf '%s\n' "${summary[@]}"; exit 1; }
suite unit gotest "${unit[@]}"
suite store gotest -p 1 "${store[@]}"
suite kafka kafka
suite bus env CGO_ENABLED=0 go test -v -short -timeout 10m ./internal/bus/...
suite e2e gotest -p 1 ./cmd/...
suite clients clients
suite crash env LONG= tools/crash.sh
suite race env CGO_ENABLED=1 go test -race -short -timeout 15m "${race[@]}"
suite fuzz tools/fuzz.sh "${FUZZTIME:-3s}"

echo
printf '%s\n' "${summary[@]}"
if [ $failed -ne 0 ]; then
  echo "logs: $logs"
  exit 1
fi
rm -rf "$logs"
