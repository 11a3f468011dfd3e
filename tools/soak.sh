#!/usr/bin/env bash
# Lets `evenhand up` run for hours under load and prints a line a minute: memory of both processes,
# goroutines, lag, parts. Half way the engine is killed once. At the end `evenhand check` must be clean.
# Usage: tools/soak.sh [BINARY]     HOURS (2) or MINUTES, RATE events a second (0: 70 % of a peak that is measured first)
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
bin=${1:-bin/evenhand}
[ -x "$bin" ] || { echo "$bin is not there; run: make build"; exit 2; }
bin=$(realpath "$bin")
minutes=${MINUTES:-$((${HOURS:-2} * 60))} rate=${RATE:-0}
work=$(mktemp -d "${TMPDIR:-/tmp}/evenhand-soak.XXXXXX")
pids=()
cleanup() {
  local p
  for p in ${pids[@]+"${pids[@]}"}; do kill "$p" 2>/dev/null || true; done
  for p in ${pids[@]+"${pids[@]}"}; do wait "$p" 2>/dev/null || true; done
}
trap cleanup EXIT
go build -o "$work/bench" ./bench

if [ "$rate" -eq 0 ]; then
  "$work/bench" backlog -bin "$bin" -n 200000 >"$work/peak.txt" 2>&1 || { tail -5 "$work/peak.txt"; exit 1; }
  peak=$(grep -oE '[0-9]+ events/s' "$work/peak.txt" | head -1 | cut -d' ' -f1)
  [ -n "$peak" ] || { echo "no peak in $work/peak.txt"; exit 1; }
  rate=$((peak * 7 / 10))
  echo "peak $peak events/s, soaking at $rate for $minutes minutes"
fi

"$bin" up --data-dir "$work/data" --http 127.0.0.1:0 >"$work/up.log" 2>&1 &
up=$!
pids+=("$up")
for _ in $(seq 600); do [ -f "$work/data/running.json" ] && break; sleep 0.1; done
http=$(sed -n 's/.*"http": *"\([^"]*\)".*/\1/p' "$work/data/running.json")
[ -n "$http" ] || { tail "$work/up.log"; exit 1; }

# An endless file would have to be written first, so lines are made as they are sent: five domains, one text in 40
# biased. awk's clock has whole seconds (srand gives the time); what a tick fell behind, the next ones make good.
awk -v rate="$rate" 'function now() { srand(); return srand() }
BEGIN {
  text = "The candidate answered every question in the panel and the report lists the reasons in full. "
  for (i = 0; i < 12; i++) body = body text
  split("hiring lending healthcare education customer_service", domain, " ")
  for (begun = now(); ; n++) {
    behind = rate * (now() - begun) - sent
    batch = int(rate / 10 + (behind > 0 ? behind / 20 : 0))
    for (i = 0; i < batch; i++) {
      biased = i % 40 == 0 ? "Women are too emotional to lead a team. " : ""
      printf "{\"id\":\"soak-%d-%d\",\"tenant_id\":\"soak\",\"domain\":\"%s\",\"prompt\":\"p\",\"response\":\"%d %s%s\"}\n", n, i, domain[i % 5 + 1], i, biased, body
    }
    sent += batch
    fflush(); system("sleep 0.1")
  }
}' 2>/dev/null | "$bin" emit - --data-dir "$work/data" --quiet --resume "$work/resume" >"$work/emit.log" 2>&1 &
pids+=("$!")

metric() { curl -sf "$http/metrics" | awk -v m="$1" '$1 == m {print int($2)}'; }
rss() { awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$1/status" 2>/dev/null || echo 0; }
engine_of() { sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$work/data/store/ports.json"; }
query() { # as the writer: readers may not see system tables
  curl -sf "http://127.0.0.1:$(sed -E 's/.*"http": *([0-9]+).*/\1/' "$work/data/store/ports.json")/" \
    -H "X-ClickHouse-User: evenhand" -H "X-ClickHouse-Key: $(cat "$work/data/store/evenhand.password")" -d "$1"
}
begun=$SECONDS end=$((SECONDS + minutes * 60)) killed=0
echo "minute  up_MiB  engine_MiB  goroutines  lag  parts  stored"
while [ $SECONDS -lt $end ]; do
  sleep 60
  e=$(engine_of)
  parts=$(query "SELECT count() FROM system.parts WHERE active AND database = 'evenhand'" || echo "?")
  stored=$(query "SELECT count() FROM evenhand.interactions" || echo "?")
  printf '%6d  %6d  %10d  %10s  %3s  %5s  %6s\n' $(((SECONDS - begun) / 60)) "$(rss "$up")" "$(rss "$e")" "$(metric go_goroutines)" "$(metric evenhand_lag_records)" "$parts" "$stored"
  if [ $killed -eq 0 ] && [ $((2 * (SECONDS - begun))) -gt $((minutes * 60)) ]; then
    kill -9 "$e"
    killed=1
    echo "        the engine was killed"
  fi
done
kill "${pids[1]}" 2>/dev/null || true
for _ in $(seq 120); do [ "$(metric evenhand_lag_records)" = 0 ] && break; sleep 1; done
"$bin" check --data-dir "$work/data"
echo "data and logs: $work"
