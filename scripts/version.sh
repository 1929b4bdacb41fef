#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# version.sh: print the version, which is in lockworks.h. Check that Cargo.toml, CITATION.cff and the changelog
# have the same.
set -euo pipefail
header=$(sed -n 's/^#define LW_VERSION "\(.*\)"/\1/p' lib/include/lockworks/lockworks.h)
cargo=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
if [[ -z $header || $header != "$cargo" ]]; then
	echo "LW_VERSION in lockworks.h is \"$header\", version in Cargo.toml \"$cargo\": make them equal" >&2
	exit 1
fi
grep -q "^version: $header\$" CITATION.cff || {
	echo "CITATION.cff has not the version $header of lockworks.h: make them equal" >&2
	exit 1
}
grep -q "^## $header\$\|^## $header " CHANGELOG.md || {
	echo "CHANGELOG.md has no section \"## $header\", the version in lockworks.h" >&2
	exit 1
}
echo "$header"
