#!/usr/bin/env bash
# Runs the commands of the README against a Docker engine, and prints what the containers take while they are idle. With RESTART it restarts the engine
# by that command, and waits for every container to be healthy again. The containers and volumes are its own, of the project shop-smoke, and are deleted
# in the end. Arguments are for `up`. Exit code: that of the first command that fails.
#
#   RESTART='systemctl restart docker' deployments/smoke.sh [--no-build]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

compose() { docker compose -p shop-smoke -f deployments/docker-compose.yml "$@"; }
trap 'compose down -v >&2' EXIT
compose up -d --wait "$@" >&2
total=$(compose ps --quiet | wc -l)
for _ in {1..10}; do docker stats --no-stream --format '{{.Name}} {{.MemUsage}} {{.CPUPerc}}' $(compose ps --quiet); done |
  awk '{ memory[$1] = $2 " of " $4; sum[$1] += $5 } END { for (name in sum) printf "| %s | %s | %.1f %% |\n", name, memory[name], sum[name] / 10 }' | sort
if [[ ${RESTART-} ]]; then
  bash -c "$RESTART"
  for ((end = SECONDS + 120; SECONDS < end; )); do
    (($(compose ps --quiet --status running | xargs -r docker inspect --format '{{.State.Health.Status}}' | grep -cx healthy) == total)) && break
    sleep 0.5
  done
  ((SECONDS < end)) || { compose ps --all >&2; echo "smoke: not every container is healthy after the restart" >&2; exit 1; }
fi
compose run --rm --no-deps demo
