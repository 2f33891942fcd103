# What is built for a card, by what the toolkit knows: cmake -P cuda_architectures_test.cmake
cmake_policy(SET CMP0057 NEW)  # IN_LIST
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/cuda_architectures.cmake")

function(expect cards known wanted)
  memfathom_architectures_of(chosen "${cards}" "${known}")
  if(NOT "${chosen}" STREQUAL "${wanted}")
    message(SEND_ERROR "For ${cards} of ${known}: ${chosen} instead of ${wanted}")
  endif()
endfunction()

set(cuda_12_8 50 75 80 86 87 89 90 100 101 120)
expect("86" "${cuda_12_8}" "86")
expect("103" "${cuda_12_8}" "100")  # neither known nor newer than all
expect("121" "${cuda_12_8}" "120")
expect("120;121;86" "${cuda_12_8}" "120;86")
expect("87" "${cuda_12_8}" "87")
expect("70" "75;80" "")  # warns
expect("70;80" "75;80" "80")

# A release's list holds nothing that nvcc of that version refuses, nor what lacks __grid_constant__ (below sm_70).
function(expect_release version known wanted)
  memfathom_release_architectures(chosen "${version}")
  if(NOT "${chosen}" STREQUAL "${wanted}")
    message(SEND_ERROR "For CUDA ${version}: ${chosen} instead of ${wanted}")
  endif()
  foreach(architecture IN LISTS chosen)
    string(REPLACE "-real" "" architecture "${architecture}")
    if(NOT architecture IN_LIST known OR architecture LESS 70)
      message(SEND_ERROR "For CUDA ${version}: it cannot build sm_${architecture}")
    endif()
  endforeach()
endfunction()

# nvcc --list-gpu-arch
expect_release(12.5 "50;52;53;60;61;62;70;72;75;80;86;87;89;90" "75-real;80-real;90")
expect_release(12.8 "50;52;53;60;61;62;70;72;75;80;86;87;89;90;100;101;120" "75-real;80-real;90-real;100-real;101-real;120")
expect_release(12.9 "50;52;53;60;61;62;70;72;75;80;86;87;89;90;100;101;103;120;121"
               "75-real;80-real;90-real;100-real;101-real;120")
expect_release(13.0 "75;80;86;87;88;89;90;100;103;110;120;121" "75-real;80-real;90-real;100-real;110-real;120")
