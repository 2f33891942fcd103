// python_program: the user's Python, and where memfathom's package for it lies.
#pragma once

#include <string>

namespace memfathom {

// `named` (--python) if given; else the Python of the active environment ($VIRTUAL_ENV,
// $CONDA_PREFIX); else python3, searched in PATH.
std::string find_python(const std::string& named);

// The folder with the package memfathom: share/memfathom/python next to this program's folder.
// Empty if there is none: the user's Python must then have the package installed.
std::string python_package_folder();

}  // namespace memfathom
