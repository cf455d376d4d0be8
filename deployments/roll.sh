#!/usr/bin/env bash
# Replaces the instances of a stack that runs by new ones of this checkout, one after the other, so that the shop sells
# all the time: a new one starts and is ready, then an old one stops, which finishes its requests first.
#
#   deployments/roll.sh
#
# The schema is brought up to date first; an instance of the version before works with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

SHOP_VERSION=${SHOP_VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo unknown)}
export SHOP_VERSION
compose() { docker compose -f deployments/docker-compose.yml "$@"; }

mapfile -t old < <(compose ps --quiet shop)
((${#old[@]})) || { echo "roll: no instance runs" >&2; exit 1; }
compose build --quiet shop
compose run --rm --no-deps migrate
for id in "${old[@]}"; do
  compose up --detach --no-deps --no-recreate --no-build --wait --scale "shop=$((${#old[@]} + 1))" shop
  docker stop --time 45 "$id" >/dev/null
  docker rm "$id" >/dev/null
done
