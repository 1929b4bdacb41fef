#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Check format, spelling, language, links and the version: everything that needs no build. All checks
# run, and those that fail are named at the end.
set -uo pipefail
failed=()

check() { # name, command...
	local name=$1
	shift
	"$@" || failed+=("$name")
}

known() { # patterns: files that git has, or would
	git ls-files -z --cached --others --exclude-standard -- "$@"
}

clang_format() {
	known '*.[ch]' '*.cc' '*.cpp' '*.hpp' | xargs -0 -n 40 -P 2 clang-format --dry-run -Werror
}

bash_scripts() {
	git grep -lzE --untracked '^#!.*/bash$' -- ':!LICENSES'
}

# The guests' shell is that of busybox; their files are sourced, or start with its name.
guest_scripts() {
	known crates/kernel/guest/init 'crates/kernel/guest/*.sh'
}

shellcheck_bash() {
	bash_scripts | xargs -0 shellcheck
}

shellcheck_guest() {
	guest_scripts | xargs -0 shellcheck --shell=dash --exclude=SC1091
}

shfmt_all() {
	{ bash_scripts && guest_scripts; } | xargs -0 shfmt -d
}

spelling() {
	known . | xargs -0 codespell
}

python_tool() { # tool of scripts/requirements.txt, its arguments; Python files follow
	local tools
	tools=$(scripts/tools.sh python) && known '*.py' | xargs -0 "$tools/bin/$1" "${@:2}"
}

silent_unless_failed() { # command...
	"$@" &>"$scratch/output" || {
		cat "$scratch/output"
		return 1
	}
}

unit_tests() { # directory of a tool of ours
	silent_unless_failed env --chdir="$1" /usr/bin/python3 -m unittest -q
}

machete() {
	local tools
	tools=$(scripts/tools.sh machete) &&
		silent_unless_failed "$tools/bin/cargo-machete" --skip-target-dir
}

# The version is in lockworks.h; Cargo and the changelog repeat it.
version() {
	local header cargo
	header=$(sed -n 's/^#define LW_VERSION "\(.*\)"/\1/p' lib/include/lockworks/lockworks.h)
	cargo=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
	if [[ -z $header || $header != "$cargo" ]]; then
		echo "LW_VERSION in lockworks.h is \"$header\", version in Cargo.toml \"$cargo\": make them equal"
		return 1
	fi
	grep -q "^## $header\$\|^## $header " CHANGELOG.md || {
		echo "CHANGELOG.md has no section \"## $header\", the version in lockworks.h"
		return 1
	}
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check clang-format clang_format
check rustfmt "${CARGO:-cargo}" fmt --all --check
check shellcheck shellcheck_bash
check 'shellcheck of guests' shellcheck_guest
check shfmt shfmt_all
check codespell spelling
check ruff python_tool ruff check --quiet --no-cache
check 'ruff format' python_tool ruff format --quiet --no-cache --diff
check mypy python_tool mypy --no-error-summary
check 'unused dependencies' machete
check 'tests of scripts' unit_tests scripts
check 'tests of scripts/docs' unit_tests scripts/docs
check 'tests of scripts/prose' unit_tests scripts/prose
check prose scripts/prose/prose.py
check includes scripts/includes.py
check links /usr/bin/python3 scripts/docs/documents.py --links
check version version
if ((${#failed[@]})); then
	(IFS=, && echo "make test-format: failed: ${failed[*]}" >&2)
	exit 1
fi
