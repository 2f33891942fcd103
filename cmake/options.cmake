# The choices of a build, and the compiler flags every target shares.
option(MEMFATHOM_CUDA "Build the CUDA module (needs nvcc)" OFF)
option(MEMFATHOM_RELEASE_ARCHITECTURES "Build the CUDA module for every generation of GPUs from Turing on" OFF)
option(MEMFATHOM_CPU "Build the CPU module; the tests need it" ON)
option(MEMFATHOM_CPU_LIBRARIES "The CPU module computes with oneDNN and FFTW, instead of its own products and transforms" ON)
option(MEMFATHOM_CUDNN_PLANNER "Build the program that asks cuDNN for its workspaces, where cuDNN is found" ON)
option(MEMFATHOM_CUDA_WHEEL "Build the CUDA module for its wheel (scripts/build-wheel --cuda)" OFF)
option(MEMFATHOM_TESTS "Build the tests" ON)
option(MEMFATHOM_BENCHMARKS "Build the benchmarks" ON)
option(MEMFATHOM_WEB "Build the engine of the web page alone (needs emscripten; scripts/build-web)" OFF)
option(MEMFATHOM_FUZZ "Build the fuzz targets of tests/fuzz (needs clang)" OFF)
option(MEMFATHOM_WERROR "Warnings are errors; packagers with compilers of their own turn it off" ON)
set(MEMFATHOM_SHARED_DIR "${PROJECT_SOURCE_DIR}/../shared" CACHE PATH "Reference data that is not part of the project")
set(MEMFATHOM_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT MEMFATHOM_WEB)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# -O2 also without a preset: it is what tests and benchmarks are about, and GCC 12 warns of its own library at CMake's -O3.
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()

# Paths below the clone count relative to it, so that what one clone compiled serves the next. ccache caches files that use a
# precompiled header only when it may ignore the header's time stamp and the macros that it did not see.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(MEMFATHOM_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                         CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MEMFATHOM_LAUNCHER})
endif()

include(precompiled_headers)

# memfathom_library(name SOURCES a.cc b.cc DEPENDS memfathom::core ...): a static library with alias memfathom::name.
function(memfathom_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(memfathom_${name} STATIC ${ARG_SOURCES})
  add_library(memfathom::${name} ALIAS memfathom_${name})
  target_include_directories(memfathom_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(memfathom_${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  memfathom_flags(memfathom_${name})
  memfathom_use_library_headers(memfathom_${name})
endfunction()

# memfathom_flags(target): the warnings, and what the sanitizers and the fuzzer of this build ask for.
function(memfathom_flags target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow
                                           $<$<BOOL:${MEMFATHOM_WERROR}>:-Werror>
                                           -Wno-missing-field-initializers>)  # designated ones leave out the defaults
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 warns about std::string's own code (its bug 105329).
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    # GCC 11 takes an empty std::optional for uninitialized (its bug 80635).
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
  if(MEMFATHOM_WEB)
    # Sizes have 32 bits there; clang 14 warns about every narrowing to one.
    target_compile_options(${target} PRIVATE -Wno-shorten-64-to-32)
  endif()
  if(MEMFATHOM_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link -Wno-error)
  endif()
  if(MEMFATHOM_SANITIZE)
    # GCC 12 warns about std::regex's own code when it is instrumented.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    # A finding ends the program: one that only prints is one that nobody reads.
    target_compile_options(${target} PUBLIC -fsanitize=${MEMFATHOM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${MEMFATHOM_SANITIZE})
  endif()
endfunction()

# memfathom_patience(variable seconds): how long to wait for a test that ends within so many seconds on a busy machine.
function(memfathom_patience variable seconds)
  if(MEMFATHOM_SANITIZE)
    math(EXPR seconds "10 * ${seconds}")  # instrumented code is that much slower
  endif()
  set(${variable} ${seconds} PARENT_SCOPE)
endfunction()

# memfathom_test(name SOURCES a_test.cc DEPENDS memfathom::core): a GoogleTest program, its cases known to CTest.
# PREFIX tells programs apart that run the same cases. SHARED_SOURCES are tests against reference data outside the project; they join where MEMFATHOM_SHARED_DIR exists.
function(memfathom_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;ENVIRONMENT;PREFIX" "SOURCES;SHARED_SOURCES;DEPENDS" ${ARGN})
  if(ARG_SHARED_SOURCES AND NOT EXISTS "${MEMFATHOM_SHARED_DIR}")
    message(STATUS "${name}: without ${ARG_SHARED_SOURCES}, since ${MEMFATHOM_SHARED_DIR} does not exist")
    set(ARG_SHARED_SOURCES "")
    if(NOT ARG_SOURCES)
      return()
    endif()
  endif()
  add_executable(${name} ${ARG_SOURCES} ${ARG_SHARED_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} memfathom_test_paths GTest::gtest_main GTest::gmock)
  # Test code runs once: what is saved is compile time (the code under test keeps its flags), with sanitizers more than half.
  target_compile_options(${name} PRIVATE -O0)
  memfathom_flags(${name})
  memfathom_use_test_headers(${name})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  memfathom_patience(ARG_TIMEOUT ${ARG_TIMEOUT})
  set(properties LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LABEL STREQUAL slow)
    list(APPEND properties COST 100)  # started first, so that nothing waits for it at the end
  endif()
  if(ARG_ENVIRONMENT)
    list(APPEND properties ENVIRONMENT "${ARG_ENVIRONMENT}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${ARG_PREFIX}" PROPERTIES ${properties})
endfunction()

# memfathom_fuzz(name SOURCES a_fuzz.cc DEPENDS memfathom::core): a libFuzzer program; scripts/fuzz runs all of them.
function(memfathom_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
  memfathom_flags(${name})
  add_dependencies(fuzz_targets ${name})
endfunction()
