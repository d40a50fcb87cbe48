#!/usr/bin/env bash
# A local cluster of three brokers to play with, in .test_cluster beside this script.
#
#   bash run_cluster.sh                 stop, wipe, install and build what is missing, start three brokers, prove it
#   bash run_cluster.sh start [N]       start what does not run, or broker N; data is kept
#   bash run_cluster.sh add             one broker more, which joins
#   bash run_cluster.sh stop [N]        stop all, or broker N, in order
#   bash run_cluster.sh kill N          end broker N with SIGKILL, as a crash would
#   bash run_cluster.sh status | logs [N]
#   bash run_cluster.sh clean [N]       stop all, or broker N, and remove the data
#
# Broker N has the ports of broker 1 plus 10 for each before it. EASTGUARD_CLIENT_PORT, EASTGUARD_CLUSTER_PORT,
# EASTGUARD_DATA_PORT and EASTGUARD_HTTP_PORT choose those of broker 1; a cluster then keeps them. Needs bash and Node.js 20.19 or later with npm.

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
dir="${EASTGUARD_TEST_CLUSTER:-$root/.test_cluster}"
client_port="${EASTGUARD_CLIENT_PORT:-2921}"
cluster_port="${EASTGUARD_CLUSTER_PORT:-2922}"
data_port="${EASTGUARD_DATA_PORT:-2923}"
http_port="${EASTGUARD_HTTP_PORT:-2924}"
# A cluster that is there keeps its ports, whoever asks.
ports_file="$dir/ports"
if (($# > 0)) && [[ -f "$ports_file" ]]; then read -r client_port cluster_port data_port http_port <"$ports_file"; fi
# One that was made before there was a data port has three.
if [[ -z "$http_port" ]]; then http_port="$data_port" data_port=$((client_port + 2)); fi
# A broker refuses variables with this prefix that it does not know, and this one is ours.
unset EASTGUARD_TEST_CLUSTER
server="$root/build/src/cli/eastguard.js"
cli="$root/build/src/cli/eg-cli.js"
brokers=3
# Without any news of what it is at.
ready_within_s=60
tell_after_s=3
# In which nothing changes that it lacks.
settled_within_s=120
stop_within_s=20

say() { printf '%s\n' "$*"; }
fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

port_of() { printf '%s' $(($1 + 10 * ($2 - 1))); }
client_of() { port_of "$client_port" "$1"; }
cluster_of() { port_of "$cluster_port" "$1"; }
data_of() { port_of "$data_port" "$1"; }
http_of() { port_of "$http_port" "$1"; }
log_of() { printf '%s' "$dir/broker-$1.log"; }
pid_file_of() { printf '%s' "$dir/broker-$1.pid"; }

# The numbers of the brokers that have data here, in order.
known() {
  local path
  for path in "$dir"/broker-*/; do
    [[ -d "$path" ]] && basename "$path"
  done | sed 's/^broker-//' | grep -E '^[0-9]+$' | sort -n || true
}

# It has told its directory which cluster it belongs to; before that it can be nobody's seed.
has_cluster() { grep -qs '"cluster": *{' "$dir/broker-$1/node.json"; }

running() {
  local n
  for n in $(known); do
    if our_pid "$n" >/dev/null; then say "$n"; fi
  done
}

# The process id of broker $1, if it runs and is ours: ids are used again, so the command line is looked at too.
our_pid() {
  local pid command file
  file="$(pid_file_of "$1")"
  [[ -f "$file" ]] || return 1
  pid="$(<"$file")"
  [[ "$pid" =~ ^[0-9]+$ ]] && kill -0 "$pid" 2>/dev/null || return 1
  if [[ -r "/proc/$pid/cmdline" ]]; then
    command="$(tr '\0' ' ' <"/proc/$pid/cmdline")"
  else
    command="$(ps -p "$pid" -o command= 2>/dev/null || true)"
  fi
  [[ "$command" == *"$server server"*"--data-dir $dir/broker-$1 "* ]] || return 1
  printf '%s' "$pid"
}

install_and_build() {
  bash "$root/scripts/check-node.sh"
  if [[ ! -f "$root/node_modules/.package-lock.json" || "$root/package-lock.json" -nt "$root/node_modules/.package-lock.json" ]]; then
    say "installing packages (once)"
    (cd "$root" && npm ci --no-audit --no-fund --loglevel=error)
  fi
  say "building"
  (cd "$root" && npm run -s build)
}

need_build() {
  [[ -f "$cli" ]] || fail "nothing is built yet: bash run_cluster.sh"
}

# Says which of the ports are in use, TCP or UDP.
ports_in_use() {
  node -e '
    const net = require("node:net"), udp = require("node:dgram")
    const host = "127.0.0.1"
    const tcp = (port) => new Promise((done) => {
      const server = net.createServer().once("error", () => done(false))
      server.listen({ port, host, exclusive: true }, () => server.close(() => done(true)))
    })
    const datagrams = (port) => new Promise((done) => {
      const socket = udp.createSocket("udp4").once("error", () => done(false))
      socket.bind({ port, address: host, exclusive: true }, () => socket.close(() => done(true)))
    })
    const [, client, cluster, data, http] = process.argv.map(Number)
    Promise.all([tcp(client), tcp(cluster), datagrams(cluster), tcp(data), tcp(http)]).then((free) => {
      const taken = [client, cluster, cluster, data, http].filter((_, i) => !free[i])
      console.log([...new Set(taken)].join(" "))
    })
  ' "$@"
}

check_ports() {
  local taken
  taken="$(ports_in_use "$(client_of "$1")" "$(cluster_of "$1")" "$(data_of "$1")" "$(http_of "$1")")"
  [[ -z "$taken" ]] ||
    fail "broker $1 cannot start: port $taken on 127.0.0.1 is in use by another program. Stop it, or choose other ports:
  EASTGUARD_CLIENT_PORT=3921 EASTGUARD_CLUSTER_PORT=3922 EASTGUARD_DATA_PORT=3923 EASTGUARD_HTTP_PORT=3924 bash run_cluster.sh"
}

# Cluster addresses of all other brokers that know the cluster. None at all: broker $1 founds one.
seeds_for() {
  local n list=""
  for n in $(known); do
    if [[ "$n" != "$1" ]] && has_cluster "$n"; then list+=",127.0.0.1:$(cluster_of "$n")"; fi
  done
  printf '%s' "${list#,}"
}

launch() {
  local n="$1" seeds prefix=()
  mkdir -p "$dir/broker-$n"
  printf '%s %s %s %s\n' "$client_port" "$cluster_port" "$data_port" "$http_port" >"$ports_file"
  seeds="$(seeds_for "$n")"
  # Its own session, so that Ctrl-C in this terminal does not reach it.
  if command -v setsid >/dev/null 2>&1; then prefix=(setsid); fi
  (
    cd "$dir"
    exec ${prefix[@]+"${prefix[@]}"} node "$server" server --data-dir "$dir/broker-$n" \
      --client-port "$(client_of "$n")" --cluster-port "$(cluster_of "$n")" --data-port "$(data_of "$n")" --http-port "$(http_of "$n")" \
      --display-name "broker-$n" --host-label "broker-$n" --join-seed-nodes "$seeds" \
      </dev/null >>"$(log_of "$n")" 2>&1
  ) &
  printf '%s' "$!" >"$(pid_file_of "$n")"
}

# Prints why not.
is_ready() {
  node -e '
    require("node:http")
      .get({ host: "127.0.0.1", port: Number(process.argv[1]), path: "/readyz", timeout: 2000 }, (answer) => {
        if (answer.statusCode === 200) process.exit(0)
        answer.on("data", (text) => process.stdout.write(text)).on("end", () => process.exit(1))
      })
      .on("error", () => process.exit(1))
      .on("timeout", () => process.exit(1))
  ' "$(http_of "$1")"
}

show_log_and_fail() {
  say "$2; the end of its log ($(log_of "$1")):" >&2
  tail -n 20 "$(log_of "$1")" >&2 || true
  exit 1
}

wait_until_ready() {
  local n="$1" pid began=$SECONDS moved=$SECONDS why last="" told=""
  pid="$(<"$(pid_file_of "$n")")"
  until why="$(is_ready "$n")"; do
    kill -0 "$pid" 2>/dev/null || show_log_and_fail "$n" "broker $n ended while starting"
    # A start that is slow (many ranges, a busy machine) says how far it is; one that says nothing new may be stuck.
    if [[ "$why" != "$last" ]]; then last="$why" moved=$SECONDS; fi
    ((SECONDS - moved < ready_within_s)) || show_log_and_fail "$n" "broker $n is not ready, and for $ready_within_s s it was at the same${why:+ ($why)}"
    if [[ "$why" != "$told" ]] && ((SECONDS - began >= tell_after_s)); then
      say "broker $n is not ready yet: $why"
      told="$why" began=$SECONDS
    fi
    sleep 0.1
  done
  say "broker $n is ready on 127.0.0.1:$(client_of "$n") (process $pid)"
}

# Client addresses of the brokers that run, or of all when none does.
client_seeds() {
  local n list=""
  for n in $(running); do list+=",127.0.0.1:$(client_of "$n")"; done
  if [[ -z "$list" ]]; then for n in $(known); do list+=",127.0.0.1:$(client_of "$n")"; done; fi
  printf '%s' "${list#,}"
}

eg() { node "$cli" --seeds "$(client_seeds)" "$@"; }

# What the cluster lacks, in one line.
lacks() {
  eg --json describe-cluster 2>/dev/null | node -e '
    const { unsettled } = JSON.parse(require("node:fs").readFileSync(0, "utf8"))
    process.stdout.write(unsettled.join("; "))
  ' 2>/dev/null || true
}

# With many ranges on a busy machine it takes long: as long as something changes it goes on.
wait_until_settled() {
  local before now
  say "waiting until the metadata is spread over the brokers, and ranges have their replicas"
  before="$(lacks)"
  until eg describe-cluster --wait "$settled_within_s"; do
    now="$(lacks)"
    if [[ "$now" == "$before" ]]; then return 1; fi
    say "waiting for $settled_within_s s more, since something has changed"
    before="$now"
  done
}

start_all() {
  local n begun=""
  install_and_build
  for ((n = 1; n <= brokers; n++)); do mkdir -p "$dir/broker-$n"; done
  for n in $(known); do
    if our_pid "$n" >/dev/null; then say "broker $n runs already"; else begun+=" $n"; fi
  done
  for n in $begun; do check_ports "$n"; done
  # Those that know one another need one another, so they start together; new ones come one by one and get their numbers in order.
  for n in $begun; do if has_cluster "$n"; then say "starting broker $n" && launch "$n"; fi; done
  for n in $begun; do
    if ! has_cluster "$n"; then say "starting broker $n, which is new" && launch "$n"; fi
    wait_until_ready "$n"
  done
}

start_one() {
  if our_pid "$1" >/dev/null; then
    say "broker $1 runs already"
    return
  fi
  install_and_build
  check_ports "$1"
  say "starting broker $1"
  launch "$1"
  wait_until_ready "$1"
}

add() {
  local last
  need_build
  [[ -n "$(running)" ]] || fail "no broker runs that a new one could join: bash run_cluster.sh start"
  last="$(known | tail -n 1)"
  start_one $((last + 1))
  wait_until_settled
}

# One record in and out again, as a user would do it.
prove() {
  local topic="hello" message="Hello EastGuard!" seen
  eg create-topic "$topic" --if-not-exists --partitions 4 >/dev/null 2>&1
  eg publish "$topic" user123 "$message" >/dev/null
  seen="$(eg consume "$topic" earliest --raw | tail -n 1)"
  [[ "$seen" == "$message" ]] || fail "published '$message' but consumed '$seen'; see bash run_cluster.sh logs"
  say "proof: published one record to '$topic' and consumed it"
}

next_steps() {
  local list quoted
  list="$(client_seeds)"
  quoted="'${list//,/\', \'}'"
  cat <<TEXT

What to type next. With all brokers as seeds any of them may be down:

  export EASTGUARD_SEEDS=$list
  ./eg-cli                                         a prompt; try 'help'
  ./eg-cli create-topic my_topic
  ./eg-cli publish my_topic user123 "Hello EastGuard!"
  ./eg-cli consume my_topic earliest 1

In a program:

  import { EastGuard } from 'eastguard'
  const client = new EastGuard({ seeds: [$quoted] })

Lose a broker, get it back, add one:

  bash run_cluster.sh kill 2
  bash run_cluster.sh status
  bash run_cluster.sh start 2
  bash run_cluster.sh add

Health:  http://127.0.0.1:$http_port/readyz     logs: bash run_cluster.sh logs     stop: bash run_cluster.sh stop
TEXT
}

# Brokers that stop together cannot hand over to one another, so nobody waits for the one before.
stop_these() {
  local n pid deadline stopping=""
  for n in "$@"; do
    if pid="$(our_pid "$n")"; then
      kill -TERM "$pid" 2>/dev/null || true
      stopping+=" $n"
    fi
  done
  if [[ -z "$stopping" ]]; then
    if (($# == 1)); then say "broker $1 does not run"; else say "no broker runs"; fi
  fi
  deadline=$((SECONDS + stop_within_s))
  for n in $stopping; do
    pid="$(<"$(pid_file_of "$n")")"
    while kill -0 "$pid" 2>/dev/null; do
      if ((SECONDS >= deadline)); then
        say "broker $n (process $pid) did not stop within $stop_within_s s; killing it"
        kill -KILL "$pid" 2>/dev/null || true
        break
      fi
      sleep 0.1
    done
    rm -f "$(pid_file_of "$n")"
    say "stopped broker $n (process $pid)"
  done
}

kill_one() {
  local pid
  pid="$(our_pid "$1")" || fail "broker $1 does not run"
  kill -KILL "$pid"
  while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
  rm -f "$(pid_file_of "$1")"
  say "killed broker $1 (process $pid); 'bash run_cluster.sh start $1' brings it back"
}

clean_one() {
  stop_these "$1"
  rm -rf "$dir/broker-$1" "$(log_of "$1")" "$(pid_file_of "$1")"
  say "removed $dir/broker-$1"
}

clean_all() {
  # shellcheck disable=SC2046
  stop_these $(known)
  rm -rf "$dir"
  say "removed $dir"
}

status() {
  local n pid any=""
  need_build
  for n in $(known); do
    if pid="$(our_pid "$n")"; then
      any=yes
      say "broker $n runs (process $pid), data in $dir/broker-$n"
    else
      say "broker $n does not run, data in $dir/broker-$n"
    fi
  done
  if [[ -z "$any" ]]; then
    say "no broker runs"
    return 1
  fi
  eg describe-cluster
}

logs() {
  local n
  if (($# > 0)); then
    [[ -f "$(log_of "$1")" ]] || fail "there is no log yet: $(log_of "$1")"
    cat "$(log_of "$1")"
    return
  fi
  [[ -n "$(known)" ]] || fail "there is no log yet in $dir"
  for n in $(known); do
    say "== broker $n: $(log_of "$n")"
    cat "$(log_of "$n")" 2>/dev/null || true
  done
}

usage="usage: bash run_cluster.sh [start [N] | add | stop [N] | kill N | status | logs [N] | clean [N]]"
number="${2-}"
if (($# > 2)) || [[ -n "$number" && ! "$number" =~ ^[1-9][0-9]?$ ]]; then fail "$usage"; fi
if [[ -n "$number" ]]; then
  [[ -d "$dir/broker-$number" || ("$1" == start && "$number" -le "$brokers") ]] ||
    fail "there is no broker $number here; those that are: $(known | tr '\n' ' ')"
fi

case "${1-}${number:+ N}" in
  '')
    if [[ -d "$dir" ]]; then
      say "this wipes the data of the last cluster, in $dir ('bash run_cluster.sh start' keeps it)"
      clean_all
    fi
    start_all
    wait_until_settled
    prove
    next_steps
    ;;
  start)
    start_all
    wait_until_settled
    next_steps
    ;;
  'start N') start_one "$number" ;;
  add) add ;;
  # shellcheck disable=SC2046
  stop) stop_these $(known) ;;
  'stop N') stop_these "$number" ;;
  'kill N') kill_one "$number" ;;
  clean) clean_all ;;
  'clean N') clean_one "$number" ;;
  status) status ;;
  logs) logs ;;
  'logs N') logs "$number" ;;
  *) fail "$usage" ;;
esac
