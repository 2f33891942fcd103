# What `cmake --install` and the packages contain: the program, libmemfathom with its public headers, and the CMake package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_directory "${CMAKE_INSTALL_LIBDIR}/cmake/memfathom")

# Binaries that are installed are linked with their final RUNPATH. CMake would otherwise rewrite it at installation and
# reserve room for that with a trailing ":", an empty element, by which the loader searches the current directory.
foreach(target memfathom memfathom_shared memfathom_cpu memfathom_cuda memfathom_cudnn_planner memfathom_serve)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
endforeach()

install(TARGETS memfathom RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
install(TARGETS memfathom_shared EXPORT memfathom-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT program NAMELINK_COMPONENT development)
# The public headers are the only ones: everything else is linked into libmemfathom and stays inside.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/memfathom" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
        FILES_MATCHING PATTERN "*.h")
install(EXPORT memfathom-targets NAMESPACE memfathom:: DESTINATION "${package_directory}" COMPONENT development)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/memfathom-config.cmake.in"
  "${PROJECT_BINARY_DIR}/memfathom-config.cmake" INSTALL_DESTINATION "${package_directory}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/memfathom-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/memfathom-config.cmake" "${PROJECT_BINARY_DIR}/memfathom-config-version.cmake"
        DESTINATION "${package_directory}" COMPONENT development)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT program)

set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_PACKAGE_VENDOR "memfathom")
set(CPACK_PACKAGE_CONTACT "the memfathom authors")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the memfathom authors <memfathom@users.noreply.github.com>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS OFF)
set(CPACK_STRIP_FILES ON)
include(CPack)
