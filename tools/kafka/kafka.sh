#!/usr/bin/env bash
# A real Apache Kafka broker (KRaft, no ZooKeeper) on 127.0.0.1, for the contract and fault tests.
# Linux (uses /proc, setsid, flock), bash, java 17+, mvn.
#
#   kafka.sh install            resolve the jars into the cache (once; done by start when needed)
#   kafka.sh start              one broker; returns when it answers (data of the last run is kept)
#   kafka.sh start3             three brokers, replication 3, min.insync.replicas 2; also brings
#                               back the brokers that stop/kill took away
#   kafka.sh stop [N]           clean shutdown (of broker N only)
#   kafka.sh kill [N]           kill -9 (of broker N only), for fault tests
#   kafka.sh pause N|resume N   SIGSTOP / SIGCONT of broker N: a hung, not a dead broker
#   kafka.sh status             one line per broker; exit 0 when all that were started are running
#   kafka.sh bootstrap          prints the bootstrap list, e.g. 127.0.0.1:19092
#   kafka.sh wipe               stop everything of this port and delete its data
#   kafka.sh run CLASS ARGS..   an admin tool, e.g.  run org.apache.kafka.tools.TopicCommand --list \
#                                                        --bootstrap-server 127.0.0.1:19092
#
# Environment:
#   KAFKA_HOME_DIR  jars, data and logs   (default ${XDG_CACHE_HOME:-$HOME/.cache}/evenhand/kafka)
#   KAFKA_PORT      broker N listens on KAFKA_PORT+N-1, its controller on KAFKA_PORT+100+N-1 (19092);
#                   each port has its own data, so two ports are two independent clusters
#   KAFKA_HEAP      JVM heap of a broker  (512m; 384m each in the 3-broker mode)
#   KAFKA_EXTRA     more server.properties lines (they win over ours), read at each start
#   KAFKA_SASL      "user:password": a second listener on KAFKA_PORT+50+N-1 that wants SASL/PLAIN
#   KAFKA_WAIT      seconds to wait for readiness (60)
#   KAFKA_CLUSTER_ID  16 bytes in base64 (a fixed one)
#   JAVA_HOME, MVN  which java (17 or newer) / which mvn
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${KAFKA_HOME_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/evenhand/kafka}
port=${KAFKA_PORT:-19092}
wait_s=${KAFKA_WAIT:-60}
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
pom=$here/kafka-pom.xml
run=$home/run-$port
cluster_id=${KAFKA_CLUSTER_ID:-a2Fma2EtdGVzdC1rcmFmdA}   # any 16 bytes, base64

die() { echo "kafka.sh: $*" >&2; exit 1; }

case $port in ''|*[!0-9]*) die "KAFKA_PORT is not a number: $port";; esac
mkdir -p "$home"
home=$(cd "$home" && pwd); run=$home/run-$port

# One install / start / stop at a time per cache and port.
lock() { exec 9>"$home/.lock-$1"; flock -w 300 9 || die "another kafka.sh holds the lock $1"; }
unlock() { exec 9>&-; }

version() { sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$pom" | head -1; }
jars() { echo "$home/jars-$(version)"; }

install() {
  [ -f "$pom" ] || die "$pom is missing (it belongs beside this script)"
  local dir; dir=$(jars)
  [ -f "$dir/.complete" ] && return 0
  command -v "$java" >/dev/null || die "no java (17 or newer) found"
  command -v "${MVN:-mvn}" >/dev/null || die "no mvn found"
  lock install
  if [ ! -f "$dir/.complete" ]; then
    rm -rf "$dir" "$dir.part"
    cp "$pom" "$home/pom.xml"           # so that mvn leaves nothing beside the script
    "${MVN:-mvn}" -q -B -f "$home/pom.xml" dependency:copy-dependencies \
      -DincludeScope=runtime -DoutputDirectory="$dir.part" >"$home/install.log" 2>&1 \
      || { tail -5 "$home/install.log" >&2; die "mvn could not resolve the jars (see install.log in the cache)"; }
    mv "$dir.part" "$dir"; touch "$dir/.complete"
  fi
  unlock
}

node_dir() { echo "$run/node$1"; }
pid_of() {   # prints the pid of broker N if it is really ours and alive
  local f p; f=$(node_dir "$1")/pid
  [ -s "$f" ] || return 1
  p=$(cat "$f"); [ -r "/proc/$p/cmdline" ] || return 1
  grep -qaF "$(node_dir "$1")/server.properties" "/proc/$p/cmdline" 2>/dev/null || return 1
  echo "$p"
}
nodes() { local d; for d in "$run"/node*/; do [ -d "$d" ] && d=${d%/} && echo "${d##*node}"; done; return 0; }
size() { if [ -f "$run/size" ]; then cat "$run/size"; else echo 0; fi; }

write_config() {   # N COUNT
  local n=$1 count=$2 dir voters="" i listeners protocols adv
  dir=$(node_dir "$n"); mkdir -p "$dir"
  for ((i = 1; i <= count; i++)); do voters+="${voters:+,}$i@127.0.0.1:$((port + 99 + i))"; done
  adv="PLAINTEXT://127.0.0.1:$((port + n - 1))"
  protocols="PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
  if [ -n "${KAFKA_SASL:-}" ]; then
    adv+=",SASL://127.0.0.1:$((port + 49 + n))"; protocols+=",SASL:SASL_PLAINTEXT"
  fi
  listeners="$adv,CONTROLLER://127.0.0.1:$((port + 99 + n))"
  local rf=1 isr=1
  if [ "$count" -ge 3 ]; then rf=3 isr=2; fi
  {
    cat <<EOF
process.roles=broker,controller
node.id=$n
controller.quorum.voters=$voters
controller.listener.names=CONTROLLER
listeners=$listeners
advertised.listeners=$adv
listener.security.protocol.map=$protocols
inter.broker.listener.name=PLAINTEXT
log.dirs=$dir/data
num.partitions=4
default.replication.factor=$rf
min.insync.replicas=$isr
offsets.topic.replication.factor=$rf
offsets.topic.num.partitions=8
transaction.state.log.replication.factor=$rf
transaction.state.log.min.isr=$isr
transaction.state.log.num.partitions=8
share.coordinator.state.topic.replication.factor=$rf
share.coordinator.state.topic.min.isr=$isr
share.coordinator.state.topic.num.partitions=4
auto.create.topics.enable=false
unclean.leader.election.enable=false
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=6000
broker.heartbeat.interval.ms=1000
log.retention.check.interval.ms=5000
log.cleaner.dedupe.buffer.size=16777216
num.network.threads=2
num.io.threads=4
controlled.shutdown.enable=true
EOF
    if [ -n "${KAFKA_SASL:-}" ]; then
      local u=${KAFKA_SASL%%:*} w=${KAFKA_SASL#*:}
      echo "sasl.enabled.mechanisms=PLAIN"
      echo "listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=\"$u\" password=\"$w\" user_$u=\"$w\";"
    fi
    [ -z "${KAFKA_EXTRA:-}" ] || printf '%s\n' "$KAFKA_EXTRA"
  } >"$dir/server.properties"
  cat >"$dir/log4j2.yaml" <<'EOF'
Configuration:
  Appenders:
    Console: { name: OUT, PatternLayout: { pattern: "%d{ISO8601} %p %c{1} %m%n" } }
  Loggers:
    Root: { level: WARN, AppenderRef: { ref: OUT } }
    Logger:
      - { name: kafka.server.KafkaRaftServer, level: INFO }
      - { name: org.apache.kafka.common.utils.AppInfoParser, level: ERROR }
EOF
}

classpath() { echo "$(jars)/*"; }

jvm() { "$java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx128m -cp "$(classpath)" "$@"; }

format() {   # N: only once per data directory
  local dir; dir=$(node_dir "$1")
  [ -f "$dir/data/meta.properties" ] && return 0
  jvm kafka.tools.StorageTool format -t "$cluster_id" -c "$dir/server.properties" >"$dir/format.log" 2>&1 \
    || { tail -5 "$dir/format.log" >&2; die "format of broker $1 failed"; }
}

launch() {   # N HEAP
  local dir; dir=$(node_dir "$1")
  [ -f "$dir/broker.log" ] && mv "$dir/broker.log" "$dir/broker.log.1"
  : >"$dir/broker.log"
  # no inherited stdin/stdout/stderr/lock: a caller that waits on our pipes must not wait on the broker
  setsid "$java" -Xms128m -Xmx"$2" -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -Djava.net.preferIPv4Stack=true \
    -Djava.awt.headless=true -Dlog4j2.configurationFile="$dir/log4j2.yaml" \
    -cp "$(classpath)" kafka.Kafka "$dir/server.properties" </dev/null >>"$dir/broker.log" 2>&1 9>&- &
  echo $! >"$dir/pid"
}

open() { (exec 3<>"/dev/tcp/127.0.0.1/$((port + $1 - 1))") 2>/dev/null; }
port_closed() {   # N: waits a little: a killed JVM's threads outlive its main thread for a moment
  local i; for ((i = 0; i < 100; i++)); do open "$1" || return 0; sleep 0.1; done; return 1
}

ready() {   # N: unfenced and serving (this line comes after the broker's acceptors are open)
  grep -q "Kafka Server started" "$(node_dir "$1")/broker.log" 2>/dev/null && open "$1"
}

wait_ready() {
  local n=$1 end=$((SECONDS + wait_s)) gone=0
  until ready "$n"; do
    # a just forked child is not java yet: only gone for 3 s counts
    if pid_of "$n" >/dev/null; then gone=0; else gone=$((gone + 1)); fi
    [ $gone -lt 30 ] || { tail -15 "$(node_dir "$n")/broker.log" >&2; die "broker $n ended while starting"; }
    [ $SECONDS -lt $end ] || { tail -15 "$(node_dir "$n")/broker.log" >&2; die "broker $n not ready after ${wait_s}s"; }
    sleep 0.1
  done
}

start() {   # COUNT
  local count=$1 n heap=${KAFKA_HEAP:-512m} started=()
  install
  lock "$port"
  [ "$count" -lt 3 ] || heap=${KAFKA_HEAP:-384m}
  local have; have=$(size)
  [ "$have" = 0 ] || [ "$have" = "$count" ] || die "port $port holds a cluster of $have broker(s); use another KAFKA_PORT, or wipe"
  mkdir -p "$run"; echo "$count" >"$run/size"
  for ((n = 1; n <= count; n++)); do
    pid_of "$n" >/dev/null && continue
    port_closed "$n" || die "127.0.0.1:$((port + n - 1)) is taken by another process"
    write_config "$n" "$count"; format "$n"; started+=("$n")
  done
  for n in ${started[@]+"${started[@]}"}; do launch "$n" "$heap"; done
  for ((n = 1; n <= count; n++)); do wait_ready "$n"; done
  unlock
  bootstrap
}

end() {   # SIGNAL N
  local p n=$2 i
  p=$(pid_of "$n") || { rm -f "$(node_dir "$n")/pid"; return 0; }
  kill -CONT "$p" 2>/dev/null || true
  kill "-$1" "$p" 2>/dev/null || true
  for ((i = 0; i < 300; i++)); do [ -d "/proc/$p" ] || break; grep -q '^State:.*Z' "/proc/$p/status" 2>/dev/null && break; sleep 0.1; done
  if pid_of "$n" >/dev/null; then kill -9 "$p" 2>/dev/null || true; fi
  port_closed "$n" || true
  rm -f "$(node_dir "$n")/pid"
}

each() {   # SIGNAL [N]: all at once when no N, so that a 3-broker quorum goes down together
  local n pids=()
  if [ -n "${2:-}" ]; then [ -d "$(node_dir "$2")" ] || die "no broker $2 on port $port"; end "$1" "$2"; return; fi
  for n in $(nodes); do end "$1" "$n" & pids+=($!); done
  for n in ${pids[@]+"${pids[@]}"}; do wait "$n"; done
}

signal_one() { local p; [ -n "${2:-}" ] || die "which broker?"; p=$(pid_of "$2") || die "broker $2 is not running"; kill "-$1" "$p"; }

bootstrap() { local n out="" c; c=$(size); [ "$c" != 0 ] || c=1; for ((n = 1; n <= c; n++)); do out+="${out:+,}127.0.0.1:$((port + n - 1))"; done; echo "$out"; }

status() {
  local n p rc=0 any=0
  for n in $(nodes); do
    any=1
    if p=$(pid_of "$n"); then
      echo "broker $n 127.0.0.1:$((port + n - 1)) pid $p rss $(awk '/VmRSS/{printf "%d MiB", $2/1024}' "/proc/$p/status") $(ready "$n" && echo ready || echo "not ready")"
    else echo "broker $n 127.0.0.1:$((port + n - 1)) down"; rc=3; fi
  done
  if [ $any = 0 ]; then echo "no broker was started on port $port"; rc=3; fi
  return $rc
}

cmd=${1:-}; shift || true
case $cmd in
  install)   install; echo "Kafka $(version) in $(jars)" ;;
  start)     start 1 ;;
  start3)    start 3 ;;
  stop)      lock "$port"; each TERM "${1:-}" ;;
  kill)      lock "$port"; each KILL "${1:-}" ;;
  pause)     signal_one STOP "${1:-}" ;;
  resume)    signal_one CONT "${1:-}" ;;
  status)    status ;;
  bootstrap) bootstrap ;;
  wipe)      lock "$port"; each KILL; rm -rf "$run" ;;
  run)       install; [ $# -gt 0 ] || die "run which class?"; exec "$java" -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.level=ERROR -cp "$(classpath)" "$@" ;;
  *)         sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
