#!/usr/bin/env bash
# Runs the scripts against instances of this checkout, which share one database and one
# Redis: a sale, baskets, waiting and retries against three of them, of which it kills one
# during the retries; limits against three that have few permits; and the orders of expiry.js
# against three whose orders last seconds, of which it kills one, too. It stops everything it
# has started.
#
#   loadtest/run.sh [K6 ARGUMENTS]
#
# SHOP_DATABASE and SHOP_REDIS name stores that run already; without them it is SQLite in a
# temporary folder and a redis-server from PATH. SCRIPTS is what to run (all), INSTANCES how
# many instances (3). PERMITS and CUSTOMER_RATE are those of limits.js (4 and 10), ORDER_TTL
# is how long unpaid orders last (3s). The scripts read their own settings.
#
# Exit code: that of k6, the worst of all: 0 proved, 99 failed, 110 inconclusive; 2 if
# something is missing, 1 if a store or an instance did not come up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all="oversell baskets waiting retries limits expiry"
read -ra scripts <<<"${SCRIPTS:-$all}"
instances=${INSTANCES:-3}
ttl=${ORDER_TTL:-3s}
export PERMITS=${PERMITS:-4} CUSTOMER_RATE=${CUSTOMER_RATE:-10}
redis=
shops=()
dir=$(mktemp -d)

say() { printf 'loadtest: %s\n' "$*" >&2; }

# signal NAME PID: send it, if the process is a child of this one: the number of one that has gone may be somebody else's.
signal() {
  [[ $(ps -o ppid= -p "$2" 2>/dev/null) -eq $$ ]] && kill "-$1" "$2" 2>/dev/null
}

# stop PID...: ask all of them to end, and end those that have not within 10 seconds.
stop() {
  local pid until=$((SECONDS + 10))
  for pid; do signal TERM "$pid" || true; done
  for pid; do
    while signal 0 "$pid" && ((SECONDS < until)); do sleep 0.1; done
    signal KILL "$pid" || true
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

# await PID WHAT COMMAND...: run COMMAND until it succeeds, for two minutes, while PID lives.
await() {
  local pid=$1 what=$2 until=$((SECONDS + 120))
  shift 2
  while ((SECONDS < until)) && kill -0 "$pid" 2>/dev/null; do
    "$@" 2>/dev/null && return
    sleep 0.1
  done
  say "$what did not come up"
  exit 1
}

for script in "${scripts[@]}"; do
  [[ " $all " == *" $script "* ]] || { say "SCRIPTS=${SCRIPTS:-}: there is no $script"; exit 2; }
done

mkdir -p .bin out
say "building shop and k6"
make --no-print-directory build >&2
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

started=0

# serve FLAGS...: start instances, and name them in shops and urls.
serve() {
  local i port
  ((${#shops[@]} == 0)) || stop "${shops[@]}"
  shops=()
  urls=()
  for ((i = 0; i < instances; i++)); do
    port=$(free_port)
    started=$((started + 1))
    .bin/shop serve --listen "127.0.0.1:$port" --instance "shop-$started" "$@" >"$dir/shop-$started.log" 2>&1 &
    shops+=($!)
    urls+=("http://127.0.0.1:$port")
    await $! "shop-$started on port $port" get "http://127.0.0.1:$port/readyz"
  done
  await "${shops[0]}" "the members of the cluster" gathered
}

# gathered: whether the first instance knows all of them, which is how k6 gets to know them.
gathered() {
  mapfile -t members < <(.bin/shop cluster members --url "${urls[0]}" 2>/dev/null | awk 'NR > 1 { print "http://" $2 }')
  ((${#members[@]} == instances))
}

comma() { local IFS=,; echo "$*"; }

# wanted SCRIPT...: whether any of them is to be run.
wanted() {
  local script
  for script; do
    [[ " ${scripts[*]} " != *" $script "* ]] || return 0
  done
  return 1
}

worst=0

# run SCRIPT K6 ARGUMENTS...: run it if it is wanted, remember the worst that k6 said, and end
# if that is no verdict.
run() {
  local script=$1 code=0
  wanted "$script" || return 0
  shift
  BASE_URLS=$(comma "${members[@]}") OUT=out K6_NO_USAGE_REPORT=true \
    timeout --foreground 1200 .bin/k6 run --quiet --no-color "$@" "loadtest/$script.js" || code=$?
  # A run that k6 marked as inconclusive may have crossed a threshold too: that weighs more.
  if ((code == 110)) && grep -q '"verdict": "failed"' out/k6-summary.json; then code=99; fi
  ((code != 99)) || grep -h -m 1 -E '"level":"(WARN|ERROR)"' "$dir"/shop-*.log >&2 || true
  ((code == 0 || code == 99 || code == 110)) || exit "$code"
  ((worst == 99 || code == 0)) || worst=$code
}

# killing: pass on what k6 says, and kill an instance when it says for the first time that it is time.
killing() {
  local line victim=${shops[0]}
  while IFS= read -r line; do
    if [[ -n $victim && $line =~ [0-9]+' '(orders placed|keys used) ]]; then
      signal KILL "$victim"
      victim=
      say "${BASH_REMATCH[0]}; kill -9 of the first instance"
    else
      printf '%s\n' "$line" >&2
    fi
  done
}

# run_killing SCRIPT K6 ARGUMENTS...: the same, and kill an instance meanwhile, which is the first.
run_killing() {
  wanted "$1" || return 0
  disown "${shops[0]}" # whose death is no news
  # Whatever the environment says of logs: killing waits for one. The script finds out whether the instance is dead.
  SURVIVORS=$(comma "${urls[@]:1}") K6_LOG_OUTPUT=stderr K6_LOG_FORMAT= run "$@" 2> >(killing)
}

.bin/shop migrate --create >"$dir/migrate.log" 2>&1
rm -f out/k6-*.json out/loadtest.html

if wanted oversell baskets waiting retries; then
  serve
  say "$instances instances: ${urls[*]}"
  for ((sale = 1; sale <= 3; sale++)); do # an unsafe baseline that does not oversell at once gets more chances
    before=$worst
    run oversell "$@"
    ((worst == 110 && sale < 3)) || break
    worst=$before
  done
  [[ ! -s out/loadtest.html ]] || say "report: out/loadtest.html"
  run baskets "$@"
  run waiting "$@"
  ((instances > 1)) || { instances=2 && serve; } # somebody has to be left
  run_killing retries "$@"
fi
if wanted limits; then
  serve --permits "$PERMITS" --customer-rate "$CUSTOMER_RATE"
  say "$instances instances with $PERMITS permits in all: ${urls[*]}"
  run limits "$@"
fi
if wanted expiry; then
  ((instances > 1)) || instances=2
  serve --order-ttl "$ttl"
  say "$instances instances whose orders last $ttl: ${urls[*]}"
  run_killing expiry "$@"
fi
exit "$worst"
