// read_text: a file of another tool by its contents instead of its path, as programs have it in
// hand.
#pragma once

#include <string>
#include <vector>

#include "estimator/readers/parsed_file.h"

namespace memfathom {

// `text`: YAML or JSON in any format that read_path() recognises. `name` stands for the file in
// messages; paths inside the text are relative to the working directory. Throws Error(kInput).
std::vector<ParsedFile> read_text(const std::string& text, const std::string& name);

}  // namespace memfathom
