#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# release.sh: test that all that names version and licence agrees, and write the files of a release into
# build/release. From the same commit, the source archive is the same to the bit.
set -euo pipefail
fail() {
	echo "release: $*" >&2
	exit 1
}

version=$(scripts/version.sh)
name=lockworks-$version
changed=$(git status --porcelain | cut -c4- | paste -sd ' ')
[[ -z $changed ]] || fail "not committed: $changed; commit or remove them"
tagged=$(git rev-parse --quiet --verify "v$version^{commit}" || true)
[[ -z $tagged || $tagged == $(git rev-parse HEAD) ]] ||
	fail "v$version is the tag of another commit, $tagged: check that out, or choose the next version"
[[ $(grep '^license =' Cargo.toml) == $(grep '^license =' python/pyproject.toml) ]] ||
	fail "Cargo.toml and python/pyproject.toml name different licences"
cargo metadata --locked --format-version 1 >/dev/null
[[ -n $tagged ]] || echo "release: this commit has no tag; its tag will be v$version"
grep -Eq "^## $version - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md || {
	undated="CHANGELOG.md has no line '## $version - YEAR-MONTH-DAY'"
	[[ -z $tagged ]] || fail "v$version is tagged, but $undated"
	echo "release: a trial, as $undated"
}

cargo install --quiet --locked --root build/cargo cargo-cyclonedx@0.5.9 cargo-deny@0.20.2
export PATH=$PWD/build/cargo/bin:$PATH
cargo deny --log-level error check licenses bans sources

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
make() {
	command "${MAKE:-make}" --no-print-directory "$@"
}
make archive dist-c deb rpm wheel static
cargo package --quiet --locked -p lockworks

# The archive must be enough to build from.
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
tar --extract --file "build/archive/$name.tar.gz" --directory "$unpacked"
make --silent --directory="$unpacked/$name" lib
# Bills of materials: of the command, and of the crate for others.
for part in cli:lockworks-cli lockworks:lockworks; do
	cargo cyclonedx --quiet --format json --spec-version 1.5 --target all \
		--manifest-path "$unpacked/$name/crates/${part%:*}/Cargo.toml"
	# Cargo names crates by paths, which are no part of a bill of materials.
	sed -i "s|$unpacked/$name/||g" "$unpacked/$name/crates/${part%:*}/${part#*:}.cdx.json"
done
# Nor does it know the script.
echarts=$(grep -oE 'version="[0-9.]+"' crates/ui/src/plot/echarts.min.js | sed -n 1p | cut -d'"' -f2)

out=$PWD/build/release
rm -rf "$out"
mkdir -p "$out"
jq --arg purl "pkg:npm/echarts@$echarts" '.components += [{
		type: "library", name: "echarts", version: $purl | split("@")[1], purl: $purl, "bom-ref": $purl,
		licenses: [{expression: "Apache-2.0"}]}]' \
	"$unpacked/$name/crates/cli/lockworks-cli.cdx.json" >"$out/$name.cdx.json"
cp "$unpacked/$name/crates/lockworks/lockworks.cdx.json" "$out/$name-crate.cdx.json"
cp build/archive/"$name".tar.gz build/static/"$name"-linux-*.tar.gz build/dist/"$name"-*manylinux*.whl \
	build/deb/*_"$version"_*.deb "${CARGO_TARGET_DIR:-target}/package/$name.crate" \
	build/dist-c/lockworks-c-"$version".* \
	build/rpm/*-"$version"-*.rpm "$out"
cd "$out"
sha256sum -- * >SHA256SUMS
sha256sum --check --quiet SHA256SUMS

cat <<END

build/release has the files of Lockworks $version. Upload, in this order:
  the tag: git push origin HEAD v$version; its workflow builds, signs and attests all files in a draft of the release
  the crate, to crates.io: cargo publish -p lockworks
  the wheel, to PyPI: twine upload build/release/*.whl
  the recipes of build/dist-c, to the registries of vcpkg and Conan
  the other files: to the release of v$version, if the workflow has not put them there
END
