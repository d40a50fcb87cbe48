#!/usr/bin/env bash
# A local broker to play with, in .test_cluster beside this script.
#
#   bash run_cluster.sh          stop, clean, install and build what is missing, start, prove it, say what to type next
#   bash run_cluster.sh start    the same without cleaning: data is kept
#   bash run_cluster.sh stop | status | logs | clean
#
# Needs bash and Node.js 20.19 or later with npm. EASTGUARD_CLIENT_PORT and EASTGUARD_HTTP_PORT choose other ports.

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
dir="$root/.test_cluster"
pid_file="$dir/broker-1.pid"
log_file="$dir/broker-1.log"
data_dir="$dir/broker-1"
client_port="${EASTGUARD_CLIENT_PORT:-2921}"
http_port="${EASTGUARD_HTTP_PORT:-2924}"
server="$root/build/src/cli/eastguard.js"
cli="$root/build/src/cli/eg-cli.js"
ready_within_s=30
stop_within_s=20

say() { printf '%s\n' "$*"; }
fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

# The broker's process id, if it runs and is ours: ids are used again, so the command line is looked at too.
our_pid() {
  local pid command
  [[ -f "$pid_file" ]] || return 1
  pid="$(<"$pid_file")"
  [[ "$pid" =~ ^[0-9]+$ ]] && kill -0 "$pid" 2>/dev/null || return 1
  if [[ -r "/proc/$pid/cmdline" ]]; then
    command="$(tr '\0' ' ' <"/proc/$pid/cmdline")"
  else
    command="$(ps -p "$pid" -o command= 2>/dev/null || true)"
  fi
  [[ "$command" == *"$server server"*"$data_dir"* ]] || return 1
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

port_is_free() {
  node -e '
    const server = require("node:net").createServer()
    server.once("error", () => process.exit(1))
    server.listen({ port: Number(process.argv[1]), host: "127.0.0.1", exclusive: true }, () => server.close())
  ' "$1"
}

is_ready() {
  node -e '
    require("node:http")
      .get({ host: "127.0.0.1", port: Number(process.argv[1]), path: "/readyz", timeout: 2000 }, (answer) =>
        process.exit(answer.statusCode === 200 ? 0 : 1))
      .on("error", () => process.exit(1))
      .on("timeout", () => process.exit(1))
  ' "$http_port"
}

show_log_and_fail() {
  say "$1; the end of its log ($log_file):" >&2
  tail -n 20 "$log_file" >&2 || true
  exit 1
}

start() {
  local pid deadline
  if pid="$(our_pid)"; then
    say "the broker runs already (process $pid)"
    return
  fi
  install_and_build
  for port in "$client_port" "$http_port"; do
    port_is_free "$port" ||
      fail "port $port on 127.0.0.1 is in use by another program. Stop it, or choose another port with EASTGUARD_CLIENT_PORT or EASTGUARD_HTTP_PORT."
  done
  mkdir -p "$data_dir"
  say "starting one broker"
  # Its own session, so that Ctrl-C in this terminal does not reach it.
  local prefix=()
  if command -v setsid >/dev/null 2>&1; then prefix=(setsid); fi
  (
    cd "$dir"
    exec ${prefix[@]+"${prefix[@]}"} node "$server" server --data-dir "$data_dir" \
      --client-port "$client_port" --http-port "$http_port" \
      </dev/null >>"$log_file" 2>&1
  ) &
  pid=$!
  printf '%s' "$pid" >"$pid_file"
  deadline=$((SECONDS + ready_within_s))
  until is_ready; do
    kill -0 "$pid" 2>/dev/null || show_log_and_fail "the broker ended while starting"
    ((SECONDS < deadline)) || show_log_and_fail "the broker was not ready within $ready_within_s s"
    sleep 0.1
  done
  say "the broker is ready (process $pid)"
}

# One record in and out again, as a user would do it.
prove() {
  local topic="hello" message="Hello EastGuard!" seen
  local eg=(node "$cli" --seeds "127.0.0.1:$client_port")
  "${eg[@]}" create-topic "$topic" --if-not-exists --partitions 4 >/dev/null
  "${eg[@]}" publish "$topic" user123 "$message" >/dev/null
  seen="$("${eg[@]}" consume "$topic" earliest --raw | tail -n 1)"
  [[ "$seen" == "$message" ]] || fail "published '$message' but consumed '$seen'; see $log_file"
  say "proof: published one record to '$topic' and consumed it"
}

next_steps() {
  local seeds=""
  if [[ "$client_port" != 2921 ]]; then seeds=" --seeds 127.0.0.1:$client_port"; fi
  cat <<TEXT

What to type next:

  ./eg-cli$seeds                                   a prompt; try 'help'
  ./eg-cli$seeds create-topic my_topic
  ./eg-cli$seeds publish my_topic user123 "Hello EastGuard!"
  ./eg-cli$seeds consume my_topic earliest 1

In a program:

  import { EastGuard } from 'eastguard'
  const client = new EastGuard({ seeds: ['127.0.0.1:$client_port'] })

A broker of your own, and its configuration:

  node build/src/cli/eastguard.js server --data-dir ./data --client-port 3921 --http-port 3924
  node build/src/cli/eastguard.js config show

Health:  http://127.0.0.1:$http_port/readyz     log: bash run_cluster.sh logs     stop: bash run_cluster.sh stop
TEXT
}

stop() {
  local pid deadline
  if ! pid="$(our_pid)"; then
    rm -f "$pid_file"
    say "no broker runs"
    return
  fi
  kill -TERM "$pid"
  deadline=$((SECONDS + stop_within_s))
  while kill -0 "$pid" 2>/dev/null; do
    if ((SECONDS >= deadline)); then
      say "the broker (process $pid) did not stop within $stop_within_s s; killing it"
      kill -KILL "$pid" 2>/dev/null || true
      break
    fi
    sleep 0.1
  done
  rm -f "$pid_file"
  say "stopped the broker (process $pid)"
}

clean() {
  stop
  rm -rf "$dir"
  say "removed $dir"
}

status() {
  local pid
  if ! pid="$(our_pid)"; then
    say "no broker runs"
    return 1
  fi
  say "the broker runs (process $pid), data in $data_dir"
  node "$cli" --seeds "127.0.0.1:$client_port" describe-cluster
}

case "${1-}" in
  '')
    clean
    start
    prove
    next_steps
    ;;
  start)
    start
    next_steps
    ;;
  stop) stop ;;
  clean) clean ;;
  status) status ;;
  logs) if [[ -f "$log_file" ]]; then cat "$log_file"; else fail "there is no log yet: $log_file"; fi ;;
  *) fail "usage: bash run_cluster.sh [start | stop | status | clean | logs]" ;;
esac
