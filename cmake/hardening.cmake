# What makes mistakes harder to exploit. The linker's part costs nothing and is always on; the compiler's part is on in packages and wheels
# (MEMFATHOM_HARDEN), so that builds of developers share their compiler cache. tests/package/check_binary.py reads the results.
option(MEMFATHOM_HARDEN "Compile with stack protector, FORTIFY and control-flow protection" OFF)

include(CheckCXXCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

# Tables of the loader are read-only once the program runs, and so is the stack's code.
add_link_options("$<$<LINK_LANGUAGE:CXX>:LINKER:-z,relro,-z,now,-z,noexecstack>")

if(MEMFATHOM_HARDEN AND NOT MEMFATHOM_SANITIZE)
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "MEMFATHOM_HAS${flag}" known)
    check_cxx_compiler_flag(${flag} ${known})
    if(${known})
      add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${flag}>")
    endif()
  endforeach()
  # Two builds in different folders are the same: no path of the machine is in assertions, debug information or __FILE__.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>"
                      "$<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_BINARY_DIR}=build>")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE>" "$<$<COMPILE_LANGUAGE:CXX>:-D_FORTIFY_SOURCE=2>")
endif()
