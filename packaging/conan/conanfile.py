# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A recipe of the archive of make dist-c, which writes version, address and checksum into it."""

from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, cmake_layout
from conan.tools.files import copy, get, rmdir


class Lockworks(ConanFile):
    """The C library, shared or static."""

    name = "lockworks"
    version = "@version@"
    description = "Scalable NUMA-aware locks"
    license = "BSD-2-Clause OR GPL-2.0-only"
    package_type = "library"
    languages = "C"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}  # noqa: RUF012
    default_options = {"shared": False}  # noqa: RUF012
    generators = "CMakeToolchain"

    def validate(self) -> None:
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("Lockworks needs Linux")

    def layout(self) -> None:
        cmake_layout(self, src_folder="src")

    def source(self) -> None:
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def build(self) -> None:
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self) -> None:
        CMake(self).install()
        folder = Path(self.package_folder)
        copy(self, "LICENSE*", self.source_folder, folder / "licenses")
        for directory in ["cmake", "cps", "pkgconfig"]:  # Conan makes its own
            rmdir(self, folder / "lib" / directory)

    def package_info(self) -> None:
        self.cpp_info.libs = ["lockworks"]
        self.cpp_info.system_libs = ["pthread"]
