# Sets `chosen` to the architectures to build for `cards`, of those that the toolkit has (`known`). A card that it does not know
# runs the newest code before its own (the driver translates it); for one that is older than all there is nothing to be done.
function(memfathom_architectures_of chosen cards known)
  list(SORT known COMPARE NATURAL)
  set(found "")
  foreach(card IN LISTS cards)
    set(nearest "")
    foreach(architecture IN LISTS known)
      # Code for the boards (Jetson, Drive) runs on no other card.
      if(architecture EQUAL card OR (architecture LESS card AND NOT architecture MATCHES "^(53|62|72|87|88|101|110)$"))
        set(nearest ${architecture})
      endif()
    endforeach()
    if(nearest)
      list(APPEND found ${nearest})
    else()
      message(WARNING "This CUDA toolkit makes no code for sm_${card}: memfathom will not be able to use that card. "
                      "An older toolkit (CUDA 12) may.")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${chosen} "${found}" PARENT_SCOPE)
endfunction()

# Sets `chosen` to the architectures of a release built by nvcc `version`: one of each generation from Turing on, and PTX of the
# newest for GPUs after it. `all-major` will not do: with CUDA 12 it begins at sm_50, and __grid_constant__ needs sm_70.
function(memfathom_release_architectures chosen version)
  if(version VERSION_LESS 12.8)  # the first that knows Blackwell
    set(found 75-real 80-real 90)
  elseif(version VERSION_LESS 13.0)
    set(found 75-real 80-real 90-real 100-real 101-real 120)
  else()  # Thor's sm_101 is called sm_110
    set(found 75-real 80-real 90-real 100-real 110-real 120)
  endif()
  set(${chosen} "${found}" PARENT_SCOPE)
endfunction()
