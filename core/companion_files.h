// Companion files: modules and programs that are installed together with this code.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace memfathom {

// The library or program that this code is in, then the running program: another one where
// libmemfathom was loaded, by `memfathom` or by Python. None twice.
std::vector<std::filesystem::path> own_binaries();

// Where the file `name` of these binaries may be, best place first: beside one, in the bin of its
// prefix (a build tree) or in PREFIX/FOLDER/memfathom (an installation). None twice.
std::vector<std::filesystem::path> companion_places(std::span<const std::filesystem::path> binaries,
                                                    std::string_view folder, std::string_view name);

// Where a Python package of these binaries' prefixes has the file `name`:
// PREFIX/lib/python3.X/site-packages/PACKAGE, for every Python of a prefix whose package has it,
// the newest first. The wheels of the CUDA module install it there, beside the packages of NVIDIA
// whose libraries it needs.
std::vector<std::filesystem::path> python_package_places(
    std::span<const std::filesystem::path> binaries, std::string_view package,
    std::string_view name);

}  // namespace memfathom
