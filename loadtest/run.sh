#!/usr/bin/env bash
# Runs the flash sale of oversell.js against three instances of this checkout, which share
# one database and one Redis, and then leaves the orders of expiry.js unpaid at three others,
# of which it kills one. It stops everything it has started.
#
#   loadtest/run.sh [K6 ARGUMENTS]
#
# SHOP_DATABASE and SHOP_REDIS name stores that run already; without them it is SQLite in a
# temporary folder and a redis-server from PATH. INSTANCES is how many instances (3).
# STRATEGIES, STOCK, ATTEMPTS and BUYERS are those of oversell.js. ORDER_TTL is how long
# unpaid orders last (3s), UNPAID how many there are (100).
#
# Exit code: that of k6, the worse of the two: 0 proved, 99 failed, 110 inconclusive; 2 if something is missing,
# 1 if a store or an instance did not come up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

instances=${INSTANCES:-3}
ttl=${ORDER_TTL:-3s}
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

# serve FIRST LAST FLAGS...: start instances, and name them in shops and urls.
serve() {
  local first=$1 last=$2 i port
  shift 2
  shops=()
  urls=()
  for ((i = first; i <= last; i++)); do
    port=$(free_port)
    .bin/shop serve --listen "127.0.0.1:$port" --instance "shop-$i" "$@" >"$dir/shop-$i.log" 2>&1 &
    shops+=($!)
    urls+=("http://127.0.0.1:$port")
    await $! "shop-$i on port $port" get "http://127.0.0.1:$port/readyz"
  done
}

comma() { local IFS=,; echo "$*"; }

# run SCRIPT K6 ARGUMENTS...
run() {
  local script=$1
  shift
  OUT=out K6_NO_USAGE_REPORT=true timeout --foreground 300 .bin/k6 run --quiet --no-color "$@" "loadtest/$script"
}

warnings() { grep -h -m 1 -E '"level":"(WARN|ERROR)"' "$dir"/shop-*.log >&2 || true; }

.bin/shop migrate >"$dir/migrate.log" 2>&1
rm -f out/k6-summary.json out/loadtest.html out/k6-expiry.json

serve 1 "$instances"
say "selling through $instances instances: ${urls[*]}"
sold=0
BASE_URLS=$(comma "${urls[@]}") run oversell.js "$@" || sold=$?
((sold != 99)) || warnings
# A run that k6 marked as inconclusive may have crossed a threshold too: that weighs more.
if ((sold == 110)) && grep -q '"verdict": "failed"' out/k6-summary.json; then sold=99; fi
[[ -s out/loadtest.html ]] && say "report: out/loadtest.html"
((sold == 0 || sold == 99 || sold == 110)) || exit "$sold"
stop "${shops[@]}"

# killing: pass on what k6 says, and kill an instance when all orders are placed.
killing() {
  local line
  while IFS= read -r line; do
    if [[ $line =~ [0-9]+' orders placed' ]]; then
      kill -9 "${shops[0]}"
      say "${BASH_REMATCH[0]}; kill -9 of the first instance"
    else
      printf '%s\n' "$line" >&2
    fi
  done
}

((instances > 1)) || instances=2 # somebody has to be left
serve $((instances + 1)) $((2 * instances)) --order-ttl "$ttl"
disown "${shops[0]}" # whose death is no news
say "leaving orders unpaid for $ttl at $instances instances: ${urls[*]}"
expired=0
BASE_URLS=$(comma "${urls[@]}") SURVIVORS=$(comma "${urls[@]:1}") run expiry.js "$@" 2> >(killing) || expired=$?
((expired != 99)) || warnings
((expired == 0 || sold == 99)) && exit "$sold"
exit "$expired"
