#!/usr/bin/env bash
# Measures speed and memory and prints the figures of docs/benchmarks.md.
# Usage: tools/bench.sh [BINARY [PART...]]   parts: micro scan backlog days split judge low inline lists rollup trends; all by default
# N (200000) events of backlog, days, split, judge and scan; ROWS (1000000) of lists and trends; SECONDS_LOW (30); BENCHTIME (300ms); LITELLM: the command of its proxy.
set -uo pipefail
cd "$(dirname "$0")/.."
bin=${1:-bin/evenhand}
[ $# -gt 0 ] && shift
parts=("$@")
n=${N:-200000} rows=${ROWS:-1000000} low=${SECONDS_LOW:-30} benchtime=${BENCHTIME:-300ms}
failed=()
export CGO_ENABLED=${CGO_ENABLED:-0}
[ -x "$bin" ] || { echo "$bin is not there; run: make build"; exit 2; }
tool=$(mktemp -d "${TMPDIR:-/tmp}/evenhand-bench.XXXXXX")
trap 'rm -rf "$tool"' EXIT
go build -o "$tool/bench" ./bench || exit 1

# part NAME COMMAND...: runs a part that is wanted and shows the command, so that it can be repeated.
part() {
  local name=$1
  shift
  if [ ${#parts[@]} -gt 0 ] && [[ " ${parts[*]} " != *" $name "* ]]; then return; fi
  [ "$1" = micro ] || printf '\n%s: %s\n' "$name" "go run ./bench ${*:2}"
  "$@" || failed+=("$name")
}

# micro PACKAGE PATTERN: Go benchmarks, their result lines only.
micro() {
  local out rc=0
  printf '\nmicro: %s\n' "go test -run '^$' -bench '$2' $1"
  out=$(go test -run '^$' -bench "$2" -benchtime "$benchtime" -timeout 10m "$1" 2>&1) || rc=$?
  if [ $rc -ne 0 ]; then
    echo "$out"
  else
    grep -E '^(Benchmark|--- SKIP)' <<<"$out"
  fi
  return $rc
}

echo "$(uname -srm), $(nproc) processors, $(go version | cut -d' ' -f3), $("$bin" version), load $(cut -d' ' -f1-3 /proc/loadavg)"
part micro micro ./detectors/scan '^Benchmark(Scan|ScanCold|StdlibLoop)$'
part micro micro ./ingest '^Benchmark(Decode|EncodingJSON)$'
part micro micro ./detectors/terms '^BenchmarkEvaluate$'
part micro micro ./sinks/stream '^BenchmarkMessages$'
part scan "$tool/bench" scan -bin "$bin" -n "$n"
part backlog "$tool/bench" backlog -bin "$bin" -n "$n"
part days "$tool/bench" backlog -bin "$bin" -n "$n" -days 28
part split "$tool/bench" split -bin "$bin" -n "$n"
part judge "$tool/bench" judge -bin "$bin" -n "$n"
part low "$tool/bench" low -bin "$bin" -seconds "$low"
part inline "$tool/bench" inline -bin "$bin" -n 4000 -rate 100 -litellm "${LITELLM:-}"
part lists "$tool/bench" lists -bin "$bin" -rows "$rows"
part rollup "$tool/bench" rollup -bin "$bin" -events 1000000
part trends "$tool/bench" trends -rows "$rows"

if [ ${#failed[@]} -gt 0 ]; then
  printf '\nFAILED: %s\n' "${failed[*]}"
  exit 1
fi
