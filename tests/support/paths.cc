#include "tests/support/paths.h"

namespace memfathom {

std::filesystem::path project_directory() { return MEMFATHOM_PROJECT_DIR; }
std::filesystem::path test_data() { return project_directory() / "tests/data"; }
std::filesystem::path shared_data() { return MEMFATHOM_SHARED_DIR; }

}  // namespace memfathom
