#!/usr/bin/env bash
# Starts Evenhand in a temporary folder on free ports, sends the examples, prints what was found; then a
# simulated month in which a rate rises, and the breach that it is.
# Usage: tools/demo.sh BINARY HISTORY    HISTORY is tools/history, built. KEEP=1 leaves it running.
# LINEAR_STUB=http://127.0.0.1:PORT, a stand-in for Linear: the breach becomes an issue there. Trackers that your environment names are told nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-bin/evenhand} history=${2:-bin/history}
case ${KEEP:-} in '' | 0 | no | false) keep= ;; *) keep=1 ;; esac
dir=$(mktemp -d "${TMPDIR:-/tmp}/evenhand-demo.XXXXXX")
log=$dir/evenhand.log
began=$(date +%s.%N)
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

unset "${!EVENHAND_LINEAR_@}" "${!EVENHAND_WEBHOOK_@}"
if [ -n "${LINEAR_STUB:-}" ]; then
  export EVENHAND_LINEAR_ENDPOINT=$LINEAR_STUB/graphql EVENHAND_LINEAR_API_KEY=${LINEAR_STUB_KEY:-lin_api_test} EVENHAND_LINEAR_TEAM=${LINEAR_STUB_TEAM:-BIAS}
fi
say "1/6  Starting broker, store, pipeline and HTTP in $dir"
setsid "$bin" up --data-dir "$dir" --http 127.0.0.1:0 --set jobs.alarms.schedule=off </dev/null >"$dir/up.txt" 2>"$log" &
pid=$!
ended() {
  kill -TERM "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  rm -rf "$dir"
}
trap 'rc=$?; if [ $rc -ne 0 ] || [ -z "$keep" ]; then ended; fi; exit $rc' EXIT
trap 'exit 130' INT TERM
until grep -qs '^Send something' "$dir/up.txt"; do
  kill -0 "$pid" 2>/dev/null || { echo "evenhand did not start:"; cat "$dir/up.txt"; tail -n 20 "$log"; exit 1; }
  sleep 0.1
done
sed -nE 's/ {3}\(.*//; /^Evenhand is up|^ *(HTTP|Kafka|ClickHouse) /p' "$dir/up.txt"
http=$(sed -nE 's/^ *HTTP +//p' "$dir/up.txt")

say "2/6  Sending examples/interactions.jsonl through Kafka"
n=$(grep -c . examples/interactions.jsonl)
"$bin" emit examples/interactions.jsonl --data-dir "$dir" --resume "$dir/resume"

# arrived N: waits until N interactions are in the store.
arrived() {
  local i have
  for i in $(seq 1 600); do
    have=$("$bin" sql --data-dir "$dir" --json "SELECT count() AS n FROM audit_current FINAL" 2>/dev/null | grep -oE '[0-9]+' || echo 0)
    [ "$have" -ge "$1" ] && break
    [ "$i" -lt 600 ] || { echo "only $have of $1 arrived"; tail -n 20 "$log"; exit 1; }
    sleep 0.1
  done
  echo "$have interactions audited"
}
say "3/6  Waiting until all $n are in the store"
arrived "$n"

say "4/6  Bias rates by domain and characteristic"
"$bin" rates --data-dir "$dir" --top 10

say "5/6  Sending a simulated month of tenant meridian: since yesterday answers about age are biased more often"
"$history" >"$dir/history.jsonl"
month=$(grep -c . "$dir/history.jsonl")
"$bin" emit "$dir/history.jsonl" --data-dir "$dir" --resume "$dir/resume-history"
arrived $((n + month))

say "6/6  Rollups and alarms (elsewhere both run by themselves, every few minutes)"
"$bin" jobs run rollup --data-dir "$dir"
"$bin" jobs run alarms --data-dir "$dir"
echo
"$bin" alarms list --data-dir "$dir"
if [ -n "${LINEAR_STUB:-}" ]; then
  say "     Remediation: what Linear was told"
  "$bin" jobs run remediation --data-dir "$dir"
  for i in $(seq 1 300); do
    [ "$("$bin" sql --data-dir "$dir" --json "SELECT countIf(state = 'sent') AS sent, count() AS n FROM tickets FINAL" | grep -oE '[0-9]+' | sort -u | wc -l)" -eq 1 ] && break
    sleep 0.1
  done
  "$bin" tickets list --data-dir "$dir"
fi
echo
"$bin" check --data-dir "$dir" | tail -n 1

say "Where to look next"
if [ -n "$keep" ]; then
  cat <<END
It is still running as process $pid. Stop it with: kill $pid   and then delete $dir
  $bin sql --data-dir $dir "SELECT id, domain, bias_type FROM llm_interaction_audit WHERE bias_detected LIMIT 5"
  $bin check --data-dir $dir
  $bin alarms show ID --data-dir $dir      with an ID of the breaches above
  curl -s $http/readyz
  curl -s '$http/analyze-bias?domain=hr' -d '{"llm_response":"Women are too emotional to lead."}'
END
else
  cat <<'END'
  make demo KEEP=1            leave it running and look around
  bin/evenhand up             your own, with data that stays
  bin/evenhand rules list     what is looked for; 'rules explain ID' says why
  README.md                   how your applications send their interactions
END
fi
printf '\nDone in %.0f s.\n' "$(echo "$(date +%s.%N) $began" | awk '{print $1 - $2}')"
