# memfathom_embed(target HEADER "db/embedded.h" FUNCTION name FILES a b ...): text files inside the binary.
# Defines `std::span<const EmbeddedFile> memfathom::name()`, which HEADER declares, in the order of FILES.
# Run as a script (cmake -P) it writes that source file, so that a changed text is noticed at build time.
if(CMAKE_SCRIPT_MODE_FILE)
  set(entries "")
  string(REPLACE "|" ";" FILES "${FILES}")
  foreach(file IN LISTS FILES)
    file(READ "${file}" text)
    get_filename_component(name "${file}" NAME)
    string(APPEND entries "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  file(WRITE "${OUTPUT}" "#include \"${HEADER}\"\n\n#include <array>\n\nnamespace memfathom {\n\n"
       "std::span<const EmbeddedFile> ${FUNCTION}() {\n"
       "  static constexpr auto kFiles = std::to_array<EmbeddedFile>({\n${entries}  });\n"
       "  return kFiles;\n}\n\n}  // namespace memfathom\n")
  return()
endif()

set(MEMFATHOM_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(memfathom_embed target)
  cmake_parse_arguments(ARG "" "HEADER;FUNCTION" "FILES" ${ARGN})
  list(TRANSFORM ARG_FILES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  string(REPLACE ";" "|" joined "${ARG_FILES}")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${ARG_FUNCTION}.cc")
  add_custom_command(OUTPUT "${output}"
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DHEADER=${ARG_HEADER}" "-DFUNCTION=${ARG_FUNCTION}"
            "-DFILES=${joined}" -P "${MEMFATHOM_EMBED_SCRIPT}"
    DEPENDS ${ARG_FILES} "${MEMFATHOM_EMBED_SCRIPT}" VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
