#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# wheel-test.sh: install the wheel of build/dist in a new Debian that has no compiler, and use it.
set -euo pipefail
wheel=$(ls build/dist/*.whl)
[[ $wheel == *-manylinux_* ]] || {
	echo "wheel-test: $wheel is for this machine only" >&2
	exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The system is the one of this machine, so these fit.
build/python/bin/pip download --quiet --disable-pip-version-check --only-binary :all: --dest "$work/wheels" \
	--constraint python/requirements.txt pandas
cp "$wheel" "$work/wheels"
cat >"$work/script" <<'END'
set -eu
for compiler in cc gcc clang; do
	if command -v "$compiler"; then exit 1; fi
done
python3 -m venv /tmp/environment
cd /tmp
environment/bin/pip install --quiet --disable-pip-version-check --no-index --find-links /opt/wheels lockworks
environment/bin/python -c 'import lockworks; print(lockworks.sim(lock="cna", threads=4, seeds=1))'
environment/bin/lockworks --version
END
mmdebstrap --quiet --variant=apt --include=python3-venv --customize-hook="copy-in $work/wheels /opt" \
	--customize-hook="chroot \"\$1\" sh <'$work/script'" bookworm /dev/null
echo 'the wheel was installed and used without a compiler'
