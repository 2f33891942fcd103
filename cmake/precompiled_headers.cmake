# Precompiled headers: two sets, each compiled once for all targets that use it. A third of the time of a cold build is spent on
# parsing the standard library, and a second per test on gtest and gmock.
#
# Every source still includes what it uses: clang-tidy reads it without these headers (scripts/lint), and a build with
# -DMEMFATHOM_PCH=OFF does without them. Heavy headers that few sources use stay out: a set costs time in every source that loads
# it (nlohmann/json.hpp: 0.4 s).
option(MEMFATHOM_PCH "Precompile the headers that most sources include (GCC only)" ON)
# Clang writes time stamps into them, which a compiler cache brings from another clone.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(MEMFATHOM_PCH OFF)
endif()

set(MEMFATHOM_STD_HEADERS <algorithm> <array> <charconv> <cmath> <cstdint> <functional> <limits> <map> <memory> <optional>
                          <ostream> <span> <string> <string_view> <utility> <vector>)

# memfathom_use_library_headers(target): the standard library, for the project's libraries.
function(memfathom_use_library_headers target)
  if(NOT MEMFATHOM_PCH)
    return()
  endif()
  if(NOT TARGET memfathom_library_headers)
    set(source "${PROJECT_BINARY_DIR}/library_headers.cc")
    file(CONFIGURE OUTPUT "${source}" CONTENT "")
    add_library(memfathom_library_headers OBJECT EXCLUDE_FROM_ALL "${source}")
    memfathom_flags(memfathom_library_headers)
    target_precompile_headers(memfathom_library_headers PRIVATE ${MEMFATHOM_STD_HEADERS})
  endif()
  target_precompile_headers(${target} REUSE_FROM memfathom_library_headers)
endfunction()

# memfathom_use_test_headers(target): the standard library, gtest and gmock, for test programs.
function(memfathom_use_test_headers target)
  if(NOT MEMFATHOM_PCH)
    return()
  endif()
  if(NOT TARGET memfathom_test_headers)
    set(source "${PROJECT_BINARY_DIR}/test_headers.cc")
    file(CONFIGURE OUTPUT "${source}" CONTENT "int main() {}\n")
    # An executable, because a precompiled header serves only equal flags and a library has -fPIC instead of -fPIE.
    add_executable(memfathom_test_headers EXCLUDE_FROM_ALL "${source}")
    target_link_libraries(memfathom_test_headers PRIVATE GTest::gtest GTest::gmock)
    target_compile_options(memfathom_test_headers PRIVATE -O0)
    memfathom_flags(memfathom_test_headers)
    target_precompile_headers(memfathom_test_headers PRIVATE ${MEMFATHOM_STD_HEADERS} <filesystem> <fstream> <set> <sstream>
                                                             <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM memfathom_test_headers)
endfunction()
