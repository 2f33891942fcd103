// Runs a fuzz target over folders of inputs and over damaged copies of them, in builds that have no
// libFuzzer: replay [--mutations N] FOLDER...
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

// Damage of the kinds that find things: other bytes, other numbers, parts missing or twice.
class Mutator {
 public:
  std::string damaged(std::string text) {
    const std::size_t times = 1 + below(3);
    for (std::size_t i = 0; i < times && !text.empty(); ++i) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

  void change(std::string& text) {
    static constexpr std::string_view kValues[] = {"0",
                                                   "-1",
                                                   "1",
                                                   "18446744073709551616",
                                                   "9223372036854775807",
                                                   "1e308",
                                                   "NaN",
                                                   "null",
                                                   "[]",
                                                   "{}",
                                                   "\"\"",
                                                   "true",
                                                   "16777216",
                                                   "3",
                                                   "[[",
                                                   "\\u0000"};
    const std::size_t at = below(text.size());
    const std::size_t length = 1 + below(8);
    switch (below(5)) {
      case 0: text[at] = static_cast<char>(below(256)); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(below(text.size()), 4 * length)); break;
      case 3: {  // another value where one stands
        const std::size_t begin = text.find_first_of("0123456789", at);
        if (begin == std::string::npos) break;
        const std::size_t end = text.find_first_not_of("0123456789.e+-", begin);
        text.replace(begin, end == std::string::npos ? end : end - begin,
                     kValues[below(std::size(kValues))]);
        break;
      }
      default: text.insert(at, kValues[below(std::size(kValues))]);
    }
  }

  std::mt19937_64 random_{1};
};

}  // namespace

int main(int count, char** words) {
  int mutations = 40;
  int files = 0;
  Mutator mutator;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--mutations") == 0 && i + 1 < count) {
      mutations = std::stoi(words[++i]);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(words[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream input(entry.path(), std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(input)), {});
      run(text);
      for (int m = 0; m < mutations; ++m) {
        const std::string damaged = mutator.damaged(text);
        // What ends the program is found again in this file.
        if (mutations > 1000) std::ofstream("last-input", std::ios::binary) << damaged;
        run(damaged);
      }
      ++files;
    }
  }
  std::cout << files << " inputs replayed, " << mutations << " damaged copies of each\n";
  return files > 0 ? 0 : 1;
}
