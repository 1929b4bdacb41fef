#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Print a directory whose bin/ has tools that Debian does not have. If the user's cache has none of
# these versions yet, install them there; that needs the network.
# tools.sh python: what requirements.txt lists, in a virtual environment of Debian's Python.
# tools.sh machete: cargo-machete, which finds unused dependencies. To build it takes a minute or two.
set -euo pipefail
cd "$(dirname "$0")"

cache=${LOCKWORKS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lockworks}/tools
mkdir -p "$cache"

# A virtual environment is tied to the version of Python that made it.
python() {
	local versions directory
	versions=$(/usr/bin/python3 --version && cat requirements.txt)
	directory=$cache/python-$(sha256sum <<<"$versions" | cut -c -16)
	if [[ ! -e $directory/complete ]]; then
		echo "setup: installing scripts/requirements.txt from PyPI into $directory" >&2
		/usr/bin/python3 -m venv --clear "$directory" >&2
		"$directory/bin/pip" install --quiet --disable-pip-version-check --no-deps \
			--only-binary :all: --requirement requirements.txt >&2
		touch "$directory/complete"
	fi
	echo "$directory"
}

machete() {
	local version=0.9.2 directory
	directory=$cache/cargo-machete-$version
	if [[ ! -x $directory/bin/cargo-machete ]]; then
		echo "setup: building cargo-machete $version in $directory, which takes a minute or two" >&2
		"${CARGO:-cargo}" install --quiet --locked --version "=$version" --root "$directory" \
			cargo-machete >&2
	fi
	echo "$directory"
}

# Two checkouts may share the cache.
exec 9>"$cache/lock"
flock 9
"$1"
