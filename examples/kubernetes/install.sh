#!/usr/bin/env bash
# Installs the chart with values.yaml. You need a cluster, a PostgreSQL, a Redis, a bucket, and an image built from
# deploy/docker/Dockerfile. CATALOG_URL is postgres://…?sslmode=verify-full, and LIMITER_URL is rediss://….
set -euo pipefail
cd "$(dirname "$0")/../.."

# 32 random bytes. Back the Secret up: every API key is void without them.
pepper=$(mktemp)
trap 'rm -f "$pepper"' EXIT
head -c 32 /dev/urandom > "$pepper"
kubectl create secret generic maxsimd --from-file=key-pepper="$pepper" \
  --from-literal=catalog-url="$CATALOG_URL" --from-literal=limiter-url="$LIMITER_URL"
helm install maxsimd deploy/helm/maxsimd --values examples/kubernetes/values.yaml --wait

# A first tenant and its key.
kubectl exec maxsimd-0 -- /opt/maxsimd/entrypoint.sh tenant create --name first
