#!/usr/bin/env bash
# Starts Evenhand in a temporary folder on free ports, sends the examples, prints what was found.
# Usage: tools/demo.sh BINARY    KEEP=1 leaves it running.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-bin/evenhand}
case ${KEEP:-} in '' | 0 | no | false) keep= ;; *) keep=1 ;; esac
dir=$(mktemp -d "${TMPDIR:-/tmp}/evenhand-demo.XXXXXX")
log=$dir/evenhand.log
began=$(date +%s.%N)
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

say "1/4  Starting broker, store, pipeline and HTTP in $dir"
setsid "$bin" up --data-dir "$dir" --http 127.0.0.1:0 </dev/null >"$dir/up.txt" 2>"$log" &
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
sed -E 's/ {3}\(.*//; 4q' "$dir/up.txt"
http=$(sed -nE 's/^ *HTTP +//p' "$dir/up.txt")

say "2/4  Sending examples/interactions.jsonl through Kafka"
n=$(grep -c . examples/interactions.jsonl)
"$bin" emit examples/interactions.jsonl --data-dir "$dir" --resume "$dir/resume"

say "3/4  Waiting until all $n are in the store"
for i in $(seq 1 300); do
  have=$("$bin" sql --data-dir "$dir" --json "SELECT count() AS n FROM audit_current FINAL" 2>/dev/null | grep -oE '[0-9]+' || echo 0)
  [ "$have" -ge "$n" ] && break
  [ "$i" -lt 300 ] || { echo "only $have of $n arrived"; tail -n 20 "$log"; exit 1; }
  sleep 0.1
done
echo "$have interactions audited"

say "4/4  Bias rates by domain and characteristic"
"$bin" rates --data-dir "$dir" --top 10
echo
"$bin" check --data-dir "$dir" | tail -n 1

say "Where to look next"
if [ -n "$keep" ]; then
  cat <<END
It is still running as process $pid. Stop it with: kill $pid   and then delete $dir
  $bin sql --data-dir $dir "SELECT id, domain, bias_type FROM llm_interaction_audit WHERE bias_detected LIMIT 5"
  $bin check --data-dir $dir
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
