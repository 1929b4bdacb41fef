#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# container-test.sh: build the image of packaging/Containerfile, and use it. No registry of images is
# needed: the base of both stages is made from Debian's packages, with the Rust and crates of this machine.
set -euo pipefail
storage=$(mktemp -d)
trap 'rm -rf "$storage"' EXIT
export BUILDAH_ISOLATION=chroot
buildah() {
	command buildah --root "$storage/images" --runroot "$storage/run" --storage-driver vfs "$@"
}
version=$(scripts/version.sh)

mmdebstrap --quiet --variant=minbase --include=ca-certificates,gcc,g++,libc6-dev,make bookworm "$storage/debian.tar"
buildah build --quiet --tag base --file - "$storage" <<'END'
FROM scratch
ADD debian.tar /
ENV PATH=/rust/bin:/usr/sbin:/usr/bin CARGO_NET_OFFLINE=true
END
rm "$storage/debian.tar"
cargo fetch --quiet --locked
buildah build --quiet --tag lockworks --file packaging/Containerfile --pull=never \
	--build-arg RUST=base --build-arg DEBIAN=base --build-arg VERSION="$version" \
	--volume "$(rustc --print sysroot)":/rust:ro \
	--volume "${CARGO_HOME:-$HOME/.cargo}/registry":/root/.cargo/registry:ro .

container=$(buildah from --pull=never lockworks)
inside() {
	buildah run "$container" -- "$@"
}
[[ $(inside id --user) != 0 ]]
inside lockworks --version | grep -F "lockworks $version+"
inside env LOCKWORKS_VERBOSE=1 lockworks run --lock mutex -- apt-get --version 2>&1 | grep "'mutex' serves"
inside lockworks profile -- apt-get --version >/dev/null
inside lockworks torture --lock mutex --threads 2 --seconds 0.1 --rounds 1 >/dev/null
inside lockworks sim --lock cna --threads 4 >/dev/null
inside lockworks check --lock ticket --quick >/dev/null
echo 'the image was built and used'
