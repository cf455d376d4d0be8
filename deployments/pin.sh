#!/usr/bin/env bash
# Pins every image that the deployments name to the digest that its tag has now: NAME:TAG becomes NAME:TAG@sha256:..., for all platforms of
# the image. Run it before a release, and commit what it changes. It needs docker with buildx, and the registries.
#
#   deployments/pin.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

files=(Dockerfile docker-compose.yml kubernetes/overlays/dev/stores.yaml)
# An image that the project builds has the tag local; a stage of the Dockerfile has none.
mapfile -t images < <(sed -nE 's/^ *(FROM( --platform=[^ ]+)?|(- )?image:) +([^ @]+:[^ @]+)(@[^ ]+)?( .*)?$/\4/p' "${files[@]}" | grep -v ':local$' | sort -u)
for image in "${images[@]}"; do
  digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image")
  [[ $digest == sha256:* ]] || { echo "pin: $image has no digest: $digest" >&2; exit 1; }
  sed -i -E "s#([ ])${image//./\\.}(@sha256:[0-9a-f]+)?( |\$)#\1$image@$digest\3#" "${files[@]}"
  echo "$image@$digest"
done
