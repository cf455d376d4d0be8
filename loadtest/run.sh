#!/usr/bin/env bash
# Runs the flash sale of oversell.js against three instances of this checkout, which share
# one database and one Redis, and stops everything it has started.
#
#   loadtest/run.sh [K6 ARGUMENTS]
#
# SHOP_DATABASE and SHOP_REDIS name stores that run already; without them it is SQLite in a
# temporary folder and a redis-server from PATH. INSTANCES is how many instances (3).
# STRATEGIES, STOCK, ATTEMPTS and BUYERS are those of oversell.js.
#
# Exit code: that of k6, 0 proved, 99 failed, 110 inconclusive; 2 if something is missing,
# 1 if a store or an instance did not come up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

instances=${INSTANCES:-3}
redis=
shops=()
dir=$(mktemp -d)

say() { printf 'loadtest: %s\n' "$*" >&2; }

# stop PID...: ask all of them to end, and end those that have not within 10 seconds.
stop() {
  local pid until=$((SECONDS + 10))
  kill "$@" 2>/dev/null || true
  for pid; do
    while kill -0 "$pid" 2>/dev/null && ((SECONDS < until)); do sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}

finish() {
  local code=$?
  trap - EXIT
  # The instances first: they give back what they hold in Redis.
  ((${#shops[@]} == 0)) || stop "${shops[@]}"
  [[ -z $redis ]] || stop "$redis"
  if ((code == 1)); then # nothing else has told why
    for log in "$dir"/*.log; do
      [[ ! -s $log ]] || { say "the end of $(basename "$log"):"; tail -n 5 "$log" >&2; }
    done
  fi
  rm -rf "$dir"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# free_port prints a port of 127.0.0.1 on which nothing listens.
free_port() {
  local port
  for _ in {1..100}; do
    port=$((RANDOM % 20000 + 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
  return 1
}

# get URL: whether it answers 200.
get() {
  local address=${1#http://} status
  exec 3<>"/dev/tcp/${address%%:*}/$(cut -d: -f2 <<<"${address%%/*}")" || return 1
  printf 'GET /%s HTTP/1.0\r\n\r\n' "${address#*/}" >&3
  read -r -t 3 _ status _ <&3 || status=
  exec 3<&-
  [[ $status == 200 ]]
}

redis_answers() {
  local reply
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'PING\r\n' >&3
  read -r -t 3 reply <&3 || reply=
  exec 3<&-
  [[ $reply == +PONG* ]]
}

# await PID WHAT COMMAND...: run COMMAND until it succeeds, for 30 seconds, while PID lives.
await() {
  local pid=$1 what=$2 until=$((SECONDS + 30))
  shift 2
  while ((SECONDS < until)) && kill -0 "$pid" 2>/dev/null; do
    "$@" 2>/dev/null && return
    sleep 0.1
  done
  say "$what did not come up"
  exit 1
}

mkdir -p .bin out
say "building shop and k6"
CGO_ENABLED=0 go build -o .bin/shop ./cmd/shop
[[ -x .bin/k6 && .bin/k6 -nt loadtest/go.sum ]] || (cd loadtest && go build -o ../.bin/k6 go.k6.io/k6/v2)

if [[ -z ${SHOP_REDIS:-} ]]; then
  command -v redis-server >/dev/null || { say "redis-server is missing: install it (apt-get install redis-server) or set SHOP_REDIS"; exit 2; }
  port=$(free_port)
  redis-server --bind 127.0.0.1 --port "$port" --save '' --appendonly no --maxmemory-policy noeviction --dir "$dir" >"$dir/redis.log" 2>&1 &
  redis=$!
  await $! "redis-server on port $port" redis_answers "$port"
  export SHOP_REDIS=redis://127.0.0.1:$port/0
fi
export SHOP_DATABASE=${SHOP_DATABASE:-sqlite:$dir/shop.db}

.bin/shop migrate >"$dir/migrate.log" 2>&1
urls=()
for ((i = 1; i <= instances; i++)); do
  port=$(free_port)
  .bin/shop serve --listen "127.0.0.1:$port" --instance "shop-$i" >"$dir/shop-$i.log" 2>&1 &
  shops+=($!)
  urls+=("http://127.0.0.1:$port")
  await $! "shop-$i on port $port" get "http://127.0.0.1:$port/readyz"
done

say "selling through $instances instances: ${urls[*]}"
rm -f out/k6-summary.json out/loadtest.html
code=0
BASE_URLS=$(IFS=,; echo "${urls[*]}") OUT=out K6_NO_USAGE_REPORT=true \
  timeout --foreground 300 .bin/k6 run --quiet --no-color "$@" loadtest/oversell.js || code=$?
if ((code == 99)); then grep -h -m 1 -E '"level":"(WARN|ERROR)"' "$dir"/shop-*.log >&2 || true; fi
# A run that k6 marked as inconclusive may have crossed a threshold too: that weighs more.
if ((code == 110)) && grep -q '"verdict": "failed"' out/k6-summary.json; then code=99; fi
[[ -s out/loadtest.html ]] && say "report: out/loadtest.html"
exit "$code"
