#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# commit-msg.sh FILE: judge the commit message in FILE, as "Commits" in CONTRIBUTING.md asks for it.
# git runs this as its commit-msg hook. A commit that changes documents only needs no body.
set -euo pipefail

refuse() {
	echo "commit-msg: $1" >&2
	exit 1
}

mapfile -t lines < <(git stripspace --strip-comments <"$1")
subject=${lines[0]-}
# git makes these subjects; the last three are squashed before they land.
[[ ! $subject =~ ^(Revert\ \"|fixup!|squash!|amend!) ]] || exit 0

[[ $subject =~ ^[a-zA-Z0-9_.,/\ -]+:\  ]] ||
	refuse "no area in '$subject'; write one, as in 'locks/mutex: bound the wait'"
((${#subject} <= 70)) ||
	refuse "the subject has ${#subject} characters; write 70 at most"
[[ -z ${lines[1]-} ]] || refuse "the second line is not empty; write the body below it"
if ((${#lines[@]} < 3)); then
	others=$(git diff --cached --name-only -- . ':!docs' ':!*.md')
	[[ -z $others ]] || refuse "no body; say why, since more than documents change: ${others%%$'\n'*}"
fi
