#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# tools.sh python: print the directory of a virtual environment with what requirements.txt lists.
# If the user's cache has none of these versions yet, make it, with Debian's Python and the network.
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

# Two checkouts may share the cache.
exec 9>"$cache/lock"
flock 9
"$1"
