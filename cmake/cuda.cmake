# CUDA, when it is asked for. Sets nothing when it is not: whether CUDA is there is a choice of source files.
if(NOT MEMFATHOM_CUDA)
  return()
endif()

find_program(MEMFATHOM_NVCC nvcc HINTS ENV CUDACXX PATHS /usr/local/cuda/bin)
if(NOT MEMFATHOM_NVCC)
  message(FATAL_ERROR "MEMFATHOM_CUDA is ON but nvcc was not found.\n"
                      "Without CUDA, use the host preset: cmake --preset host\n"
                      "With CUDA, install its toolkit or put nvcc on the PATH.")
endif()
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER "${MEMFATHOM_NVCC}")
endif()

# The cards of this machine; without one the tests need any architecture. Releases say all-major (preset `package`).
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80)
  find_program(MEMFATHOM_NVIDIA_SMI nvidia-smi)
  if(MEMFATHOM_NVIDIA_SMI)
    execute_process(COMMAND ${MEMFATHOM_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE capabilities RESULT_VARIABLE failed ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+[.][0-9]" capabilities "${capabilities}")
    if(failed EQUAL 0 AND capabilities)
      list(REMOVE_DUPLICATES capabilities)
      string(REPLACE "." "" CMAKE_CUDA_ARCHITECTURES "${capabilities}")
    endif()
  endif()
endif()
message(STATUS "CUDA architectures: ${CMAKE_CUDA_ARCHITECTURES}")
if(CCACHE_PROGRAM)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${MEMFATHOM_LAUNCHER})
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
# Debian's CMake 3.25.1 does not know nvcc's flag for C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.0)
  message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old: C++20 device code needs CUDA 12 or newer; "
                      "to build without CUDA use the host preset: cmake --preset host")
endif()
find_package(CUDAToolkit REQUIRED)
