# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# A port of the archive of make dist-c, which writes address and checksum into it.
set(VCPKG_BUILD_TYPE release)
set(VCPKG_POLICY_MISMATCHED_NUMBER_OF_BINARIES enabled)
vcpkg_download_distfile(archive
	URLS "@archive@"
	FILENAME "lockworks-c-@version@.tar.gz"
	SHA512 @sha512@
)
vcpkg_extract_source_archive(source ARCHIVE "${archive}")
vcpkg_cmake_configure(SOURCE_PATH "${source}" OPTIONS -DLOCKWORKS_CMAKE_DIR=share/${PORT})
vcpkg_cmake_install()
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE" "${source}/LICENSES/BSD-2-Clause.txt"
	"${source}/LICENSES/GPL-2.0-only.txt")
