// Where tests find files: the project's own test data, and the reference data that is not part of
// it.
#pragma once

#include <filesystem>

namespace memfathom {

std::filesystem::path project_directory();
std::filesystem::path test_data();
std::filesystem::path shared_data();

}  // namespace memfathom
