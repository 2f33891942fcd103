# What is built for a card, by what the toolkit knows: cmake -P cuda_architectures_test.cmake
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
