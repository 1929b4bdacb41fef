# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Builds the examples, which make dist-c puts beside this file, with the package, and runs them."""

from pathlib import Path

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Examples(ConanFile):
    """The examples in C and C++."""

    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self) -> None:
        self.requires(self.tested_reference_str)

    def layout(self) -> None:
        cmake_layout(self)

    def build(self) -> None:
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self) -> None:
        for program in ["latencies", "queue"] if can_run(self) else []:
            self.run(str(Path(self.cpp.build.bindir).resolve() / program), env="conanrun")
