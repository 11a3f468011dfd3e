#!/usr/bin/env bash
# Runs every suite and prints go test's lines, skipped tests with their reason, and each suite's seconds.
# Usage: tools/test.sh [SUITE...]   suites: see below; without one, all of them
set -uo pipefail
cd "$(dirname "$0")/.."
suites=(setup engine unit store facts kafka bus e2e clients crash race fuzz)
export GOFLAGS="${GOFLAGS:-} -pgo=off" # a profile is for what is run, not tested: with it every dependency is compiled twice
export GOGC="${GOGC:-400}" # compilers and tests live short: memory is cheaper than looking for garbage
logs=$(mktemp -d "${TMPDIR:-/tmp}/evenhand-test.XXXXXX")
# What the tests store lies in memory where there is room: looking for places on a disk takes longer than the tests.
memory=
if [ -z "${TMPDIR:-}" ] && [ "$(awk '/^MemAvailable/ {print $2}' /proc/meminfo 2>/dev/null || echo 0)" -gt $((16 << 20)) ] &&
  [ "$(df --output=avail /dev/shm 2>/dev/null | tail -n 1 || echo 0)" -gt $((8 << 20)) ]; then
  memory=$(mktemp -d /dev/shm/ev.XXXX)
  trap 'rm -rf "$memory"' EXIT
  if cp /bin/true "$memory/" && "$memory/true"; then export TMPDIR=$memory; fi # programs run there, too, which hardened systems forbid
fi

# suite NAME COMMAND...: the whole output goes to a log; what matters of it is shown when it has ended.
suite() {
  local name=$1 log=$logs/$1.log start=$SECONDS rc=0
  shift
  if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then return; fi
  echo "== $name begins"
  "$@" >"$log" 2>&1 || rc=$?
  printf '%-7s %5d s  %s\n' "$name" $((SECONDS - start)) "$([ $rc -eq 0 ] && echo passed || echo FAILED)" >"$logs/$name.result"
  {
    echo "== $(cat "$logs/$name.result")"
    grep -E '^(ok|FAIL|panic:|fuzz: elapsed|\{"broker"|\?|engine:|clients:|Kafka )|^ *--- (FAIL|SKIP)' -A1 "$log" | grep -vE '^(--$|=== |PASS$|\? )' || true
    if [ $rc -ne 0 ]; then
      echo "-- $name failed (status $rc); the end of its log:"
      grep -vE '^(=== (RUN|PAUSE|CONT|NAME)|--- PASS|    --- PASS|PASS$)' "$log" | tail -n 60
    fi
  } >"$logs/$name.shown"
  cat "$logs/$name.shown"
}

setup() {
  for need in go npm javac mvn python3 curl gcc; do
    command -v $need >/dev/null || { echo "setup: $need is not installed (Go 1.26, npm, a JDK 17, Maven, Python 3.11 with venv, curl and gcc are needed by the tests)"; return 1; }
  done
  tools/engine/fetch.sh && tools/kafka/kafka.sh install && CGO_ENABLED=0 go build -o bin/evenhand ./cmd/evenhand && go vet ./...
}

wanted=("$@")
gotest() { CGO_ENABLED=0 go test -v -timeout 60m "$@"; } # the longest package takes 10 minutes, on processors without AVX-512 and beside the other lane 30
unit=(./audit/... ./bench ./detectors/... ./ingest/... ./guard/... ./client/... ./examples/... ./gateway/... ./pipeline/... ./sinks ./sinks/linear/... ./sinks/webhook/... ./sinks/evaluations/... ./sinks/trackertest/... ./internal/config/... ./internal/secret/... ./internal/failpoint/... ./internal/reply ./internal/wait/... ./internal/places ./internal/priority ./internal/seal ./internal/toolcall ./internal/layers/... ./internal/llm/... ./judge ./judge/agreement/... ./judge/compliance/... ./judge/hybrid/... ./judge/mend/... ./judge/replay/... ./internal/obs/... ./internal/kafkaconn/... ./schemas/... ./alarm/stats/... ./alarm/sim/...)
engine=(./internal/embedded/engine/...)
store=(./auth/... ./internal/chconn/... ./store/... ./sinks/clickhouse/... ./sinks/file/... ./dashboards/... ./repair/... ./retry/... ./rollup/... ./retention/... ./remediation/... ./internal/jobs/... ./alarm ./graph/... ./gates/...)
facts=(./facts/... ./judge/lane/...) # of the store, too, beside other things than its other packages
kafka=(./internal/embedded/broker/... ./internal/arbiter/... ./sources/... ./sinks/stream/... ./join/...)
# packages with goroutines; the rule packs have none and take minutes under the detector, as do a few tests beside them that only compute and that unit runs
computed='^(TestShipped(RealTexts|States|Sentences)|TestEveryProcessorSaysTheSame|TestEarlyExits|TestStrangers|TestOtherLanguages|TestLanguages|TestHarmfulTextsAreSuspicious|TestShortTextsAreReadWhole|TestTheEncoderFindsASentence(AmongOthers|InALongAnswer))$'
race=(./auth/... ./detectors ./detectors/classifier ./detectors/classifier/encoder ./detectors/scan ./detectors/terms ./pipeline/... ./ingest/... ./guard/... ./client/... ./gateway/... ./internal/llm/... ./judge/hybrid/... ./judge/mend/... ./internal/obs/... ./internal/kafkaconn/... ./internal/jobs/... ./internal/bus/... ./internal/arbiter/... ./retry/... ./facts/... ./remediation/... ./sinks/linear/... ./sinks/webhook/... ./sinks/evaluations/... ./sources/... ./sinks/stream/... ./join/... ./alarm ./graph/... ./gates/...)
kafka() { gotest -p 1 "${kafka[@]}" && gotest -tags failpoints -run TestKilled ./join; }
clients() { tools/kafka/kafka.sh install && tools/clients/install.sh && gotest -parallel 4 ./tools/clients; }
# behind COMMAND...: a running system beside it goes first, whose own lowered threads (internal/priority) are as high as this.
behind() ( renice -n 10 $BASHPID >/dev/null; "$@" )
# What mostly waits (for brokers, processes, clocks) runs beside what mostly computes.
waiting() {
  suite e2e gotest -p 1 ./cmd/...
  suite kafka kafka
  suite facts gotest -p 1 "${facts[@]}" # so both lanes take about as long
  suite bus env CGO_ENABLED=0 go test -v -short -timeout 20m ./internal/bus/...
  suite clients clients
  suite crash env LONG= tools/crash.sh
  suite fuzz tools/fuzz.sh "${FUZZTIME:-3s}" # so both lanes take about as long
}
computing() {
  suite unit behind gotest "${unit[@]}"
  suite store gotest -p 1 "${store[@]}"
  suite race env CGO_ENABLED=1 go test -race -short -skip "$computed" -timeout 60m "${race[@]}"
}
suite setup setup
if ! grep -qs FAILED "$logs/setup.result"; then
  suite engine gotest -p 1 "${engine[@]}" # alone: it waits no longer for an engine than the program does
  set -m # each lane in a process group of its own, so that an interrupt ends all of it
  waiting </dev/null &
  computing </dev/null &
  set +m
  trap 'kill -- $(jobs -p | sed s/^/-/) 2>/dev/null; exit 130' INT TERM
  wait
fi

echo
failed=0
for name in "${wanted[@]:-${suites[@]}}"; do
  cat "$logs/$name.result" 2>/dev/null || echo "$name did not end"
  grep -qs passed "$logs/$name.result" || failed=1
done
if [ $failed -ne 0 ]; then
  echo "logs: $logs"
  exit 1
fi
rm -rf "$logs"
