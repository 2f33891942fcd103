# What a wheel contains beside the Python package, as scikit-build-core installs it (pyproject.toml): the program in the
# environment's bin, libmemfathom in its lib, the CPU module in its lib/memfathom. The program finds the library as in every other installation ($ORIGIN/../lib),
# and the Python package finds it from its own folder (python/memfathom/_library.py).
set(MEMFATHOM_LICENCES "" CACHE PATH "Licences of the libraries that are linked statically (scripts/build-wheel)")

install(TARGETS memfathom RUNTIME DESTINATION "${SKBUILD_SCRIPTS_DIR}" COMPONENT wheel)
# A wheel holds no symbolic links, so the library has the name that the program looks for.
install(FILES "$<TARGET_FILE:memfathom_shared>" DESTINATION "${SKBUILD_DATA_DIR}/lib" COMPONENT wheel
        RENAME "$<TARGET_SONAME_FILE_NAME:memfathom_shared>"
        PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(FILES "$<TARGET_FILE:memfathom_cpu>" DESTINATION "${SKBUILD_DATA_DIR}/lib/memfathom" COMPONENT wheel
        PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
if(MEMFATHOM_LICENCES)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(bill "${PROJECT_BINARY_DIR}/memfathom.cdx.json")
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/python/dependencies/sbom.py" ${PROJECT_VERSION}
                  OUTPUT_FILE "${bill}" COMMAND_ERROR_IS_FATAL ANY)
  install(FILES "${bill}" DESTINATION "${SKBUILD_METADATA_DIR}/sboms" COMPONENT wheel)
  install(DIRECTORY "${MEMFATHOM_LICENCES}/" DESTINATION "${SKBUILD_METADATA_DIR}/licenses/bundled" COMPONENT wheel)
endif()

# These are installed as files, which nothing strips.
target_link_options(memfathom_shared PRIVATE -s)
target_link_options(memfathom_cpu PRIVATE -s -Wl,--gc-sections)
