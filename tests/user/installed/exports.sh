#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# exports.sh LIBRARY MAP INCLUDES: checks that the shared library exports what the map lists, under
# the map's version, and that this is what the public headers declare.
set -euo pipefail
library=$1 map=$2
read -ra includes <<<"$3"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

awk '/^LOCKWORKS/ { version = $1 } /^\tlw_/ { sub(";", "", $1); print $1 "@@" version }' "$map" |
	sort >"$scratch/listed"
nm -D --with-symbol-versions --defined-only "$library" | awk '$2 != "A" { print $3 }' |
	sort >"$scratch/exported"

header='#include <lockworks/lockworks.h>'
gcc "${includes[@]}" -fsyntax-only -aux-info "$scratch/functions" -x c - <<<"$header"
{
	# lw_user_: of the library's own parts, hidden
	sed -n 's/.* extern .*\b\(lw_[a-z0-9_]*\) (.*/\1/p' "$scratch/functions" | grep -v ^lw_user_
	gcc "${includes[@]}" -E -P -x c - <<<"$header" | sed -n 's/^extern const .*\b\(lw_[a-z_]*\)\[.*/\1/p
		s/.*visibility("default"))) [a-zA-Z_]* \(lw_[a-z_]*\);.*/\1/p'
} | sort -u >"$scratch/declared"

diff --label "$map" --label "exported by $library" -u "$scratch"/{listed,exported}
diff --label "$map" --label 'declared by the headers' -u \
	<(sed 's/@.*//' "$scratch/listed" | sort) "$scratch/declared"
