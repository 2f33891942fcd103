// Runs a fuzz target over folders of inputs and over damaged copies of them, in builds that have no
// libFuzzer:
//
//   replay [--mutations N] FOLDER...                        N damaged copies of each
//   replay --runs N [--seed S] [--words FILE] [--last FILE] FOLDER...   N damaged copies in all
//
// With --runs an input that crashes, or takes longer than ten seconds, is left in FILE of --last,
// and the program's memory is bounded. The words are a dictionary of libFuzzer.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
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

constexpr std::size_t kLargestKept = std::size_t{1} << 20;
constexpr rlim_t kMaxMemory = rlim_t{4} << 30;
constexpr time_t kPatience = 10;  // seconds

void run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

std::string content(const std::filesystem::path& path) {
  std::ifstream input(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(input), {}};
}

// The words of a libFuzzer dictionary: one in quotes a line, with \\, \" and \xNN.
std::vector<std::string> read_words(const std::string& path) {
  std::vector<std::string> words;
  std::ifstream input(path);
  for (std::string line; std::getline(input, line);) {
    const std::size_t begin = line.find('"');
    const std::size_t end = line.rfind('"');
    if (line.starts_with("#") || begin == std::string::npos || end <= begin) continue;
    std::string word;
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (line[i] == '\\' && line[++i] == 'x') {
        word += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        word += line[i];
      }
    }
    words.push_back(word);
  }
  return words;
}

// Damage of the kinds that find things: other bytes, other numbers, parts missing, twice, of
// another input or of the dictionary.
class Mutator {
 public:
  Mutator(std::uint64_t seed, std::vector<std::string> words)
      : words_(std::move(words)), random_(seed) {}

  std::string damaged(std::string text, const std::string& other) {
    const std::size_t times = 1 + below(3);
    for (std::size_t i = 0; i < times && !text.empty(); ++i) change(text, other);
    return text;
  }
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

 private:
  void change(std::string& text, const std::string& other) {
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
    switch (below(words_.empty() ? 6 : 7)) {
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
      case 4:
        if (!other.empty()) text.insert(at, other.substr(below(other.size()), 8 * length));
        break;
      case 5: text.insert(at, kValues[below(std::size(kValues))]); break;
      default: text.insert(at, words_[below(words_.size())]);
    }
  }

  std::vector<std::string> words_;
  std::mt19937_64 random_;
};

// What is being run, in a file that survives the process.
class LastInput {
 public:
  explicit LastInput(const std::string& path) {
    if (path.empty()) return;
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, kHeader + kLargestKept) != 0) return;
    void* const at =
        mmap(nullptr, kHeader + kLargestKept, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at != MAP_FAILED) bytes_ = static_cast<char*>(at);
    close(file);
  }
  // "SIZE " in 16 characters, then the bytes.
  void keep(const std::string& text) const {
    if (bytes_ == nullptr) return;
    std::string size = std::to_string(text.size());
    size.resize(kHeader, ' ');
    std::memcpy(bytes_, size.data(), kHeader);
    std::memcpy(bytes_ + kHeader, text.data(), std::min(text.size(), kLargestKept));
  }

 private:
  static constexpr std::size_t kHeader = 16;
  char* bytes_ = nullptr;
};

struct Options {
  int mutations = 40;
  std::int64_t runs = 0;
  std::uint64_t seed = 1;
  std::string words;
  std::string last;
  std::vector<std::string> folders;
};

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const auto value = [&] { return i + 1 < count ? words[++i] : words[i]; };
    if (word == "--mutations") {
      options.mutations = std::stoi(value());
    } else if (word == "--runs") {
      options.runs = std::stoll(value());
    } else if (word == "--seed") {
      options.seed = std::stoull(value());
    } else if (word == "--words") {
      options.words = value();
    } else if (word == "--last") {
      options.last = value();
    } else {
      options.folders.emplace_back(word);
    }
  }
  return options;
}

// Sorted, so that runs repeat. Small inputs first: they are damaged most often.
std::vector<std::string> read_inputs(const std::vector<std::string>& folders) {
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const std::string& path : paths) inputs.push_back(content(path));
  std::stable_sort(inputs.begin(), inputs.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return inputs;
}

void run_many(const Options& options, const std::vector<std::string>& inputs, Mutator& mutator) {
  const rlimit limit{kMaxMemory, kMaxMemory};
  setrlimit(RLIMIT_AS, &limit);
  const LastInput last(options.last);
  const std::size_t small = static_cast<std::size_t>(std::count_if(
      inputs.begin(), inputs.end(), [](const std::string& text) { return text.size() <= 2048; }));
  for (std::int64_t i = 0; i < options.runs; ++i) {
    const bool of_small = small > 0 && mutator.below(32) != 0;
    const std::string& chosen = inputs[mutator.below(of_small ? small : inputs.size())];
    const std::string damaged = mutator.damaged(chosen, inputs[mutator.below(inputs.size())]);
    last.keep(damaged);
    // Of the processor, not of the clock: machines are busy. SIGPROF ends the program.
    const itimerval patience{{0, 0}, {kPatience, 0}};
    setitimer(ITIMER_PROF, &patience, nullptr);
    run(damaged);
  }
  const itimerval never{};
  setitimer(ITIMER_PROF, &never, nullptr);
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  const std::vector<std::string> inputs = read_inputs(options.folders);
  if (inputs.empty()) return 1;
  Mutator mutator(options.seed, read_words(options.words));
  const auto began = std::chrono::steady_clock::now();
  for (const std::string& text : inputs) {
    run(text);
    for (int m = 0; options.runs == 0 && m < options.mutations; ++m)
      run(mutator.damaged(text, text));
  }
  if (options.runs > 0) run_many(options, inputs, mutator);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  const std::int64_t damaged = options.runs > 0
                                   ? options.runs
                                   : options.mutations * static_cast<std::int64_t>(inputs.size());
  std::cout << inputs.size() << " inputs replayed, " << damaged << " damaged copies, "
            << taken.count() << " s\n";
  return 0;
}
