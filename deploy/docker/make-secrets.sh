#!/bin/sh
# Makes the secrets of deploy/compose.yaml: deploy/docker/make-secrets.sh [folder, deploy/secrets unless given]
# The files are open to all, as the users inside the containers are not those of this host; the folder keeps others out.
set -eu
folder=${1:-$(dirname "$0")/../secrets}
mkdir -m 0700 "$folder" || {
  echo "$folder exists: its secrets are in use, and remain" >&2
  exit 1
}
cd "$folder"
random() { head -c "$1" /dev/urandom | od -An -tx1 | tr -d ' \n'; }

postgres=$(random 16)
redis=$(random 16)
access=$(random 10)
secret=$(random 20)

# Keep the pepper beyond the containers: without it no API key is valid.
head -c 32 /dev/urandom > key-pepper
printf %s "$postgres" > postgres-password
printf %s "postgres://maxsimd:$postgres@postgres:5432/maxsimd" > catalog-url
printf %s "redis://:$redis@redis:6379" > limiter-url
printf 'requirepass %s\n' "$redis" > redis.conf
printf '[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$access" "$secret" > aws-credentials
cat > seaweedfs.json << END
{
  "identities": [
    {
      "name": "maxsimd",
      "credentials": [{ "accessKey": "$access", "secretKey": "$secret" }],
      "actions": ["Read:maxsimd", "Write:maxsimd"]
    }
  ]
}
END
chmod 0644 ./*
