# Fresh builds in half the time: several sources of a target are compiled as one file, so that the headers they share are
# read once. The scripts' builds do this; in a tree made by hand, where one file after another is changed, it is off.
option(MEMFATHOM_UNITY "Compile several sources of a target as one file (faster from scratch, slower after a change)" OFF)
set(MEMFATHOM_UNITY_MOST 8 CACHE STRING "The most sources that are compiled as one file")
mark_as_advanced(MEMFATHOM_UNITY_MOST)

# memfathom_unity(target source...): these sources may be compiled together.
function(memfathom_unity target)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" REGEX "^[^/]")
  list(JOIN ARGN " " sources)
  set_property(GLOBAL APPEND PROPERTY MEMFATHOM_UNITY_TARGETS "${target} ${sources}")
endfunction()

# memfathom_unity_groups(): groups the sources of all targets by cmake/unity_groups.py, again when one of them changes.
function(memfathom_unity_groups)
  if(NOT MEMFATHOM_UNITY)
    return()
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  get_property(targets GLOBAL PROPERTY MEMFATHOM_UNITY_TARGETS)
  list(JOIN targets "\n" targets)
  file(WRITE "${CMAKE_BINARY_DIR}/unity_targets.txt" "${targets}\n")
  execute_process(COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/cmake/unity_groups.py" ${MEMFATHOM_UNITY_MOST}
                          "${CMAKE_BINARY_DIR}/unity_targets.txt"
                  OUTPUT_VARIABLE groups OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" groups "${groups}")
  set(read "")
  foreach(group ${groups})
    string(REPLACE " " ";" group "${group}")
    list(POP_FRONT group target name)
    set_source_files_properties(${group} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${name})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    list(APPEND read ${group})
  endforeach()
  list(REMOVE_DUPLICATES read)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${read} "${PROJECT_SOURCE_DIR}/cmake/unity_groups.py")
endfunction()
