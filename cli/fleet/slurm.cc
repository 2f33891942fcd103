#include "cli/fleet/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>

#include "cli/fleet/command_output.h"
#include "core/error.h"
#include "core/parse_number.h"

namespace memfathom {
namespace {

constexpr std::chrono::seconds kCommandLimit{60};
constexpr std::size_t kMaxWord = 255;
constexpr int kMaxGpus = 4096;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string checked(const std::vector<std::string>& words) {
  CommandOutput output = run_captured(words, kCommandLimit);
  if (output.exit_code != 0) {
    const std::string said = first_line(output.err.empty() ? output.out : output.err);
    // What Slurm's commands write where no slurm.conf is found.
    const bool is_outside = said.find("resolve_ctls") != std::string::npos;
    throw Error(
        ErrorKind::kEnvironment,
        fmt::format("{} failed with exit code {}: {}{}", words.front(), output.exit_code, said,
                    is_outside ? "; run this on a node of the cluster, or set SLURM_CONF" : ""));
  }
  return std::move(output.out);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find_first_of(separators);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines = split(text, "\n");
  std::erase_if(lines, [](std::string_view line) { return line.empty(); });
  return lines;
}

// The first `count` fields of a line; the last takes the rest, since reasons may hold anything.
std::vector<std::string_view> fields_of(std::string_view line, std::size_t count) {
  std::vector<std::string_view> fields;
  while (fields.size() + 1 < count) {
    const std::size_t end = line.find('|');
    if (end == std::string_view::npos) break;
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  fields.push_back(line);
  return fields;
}

// Commas inside "(S:0,2)" do not separate.
std::vector<std::string> entries_of(std::string_view gres) {
  std::vector<std::string> entries(1);
  int depth = 0;
  for (const char c : gres) {
    if (c == '(') ++depth;
    if (depth == 0 && c == ',') {
      entries.emplace_back();
    } else if (depth == 0) {
      entries.back() += c;
    }
    if (c == ')' && depth > 0) --depth;
  }
  return entries;
}

}  // namespace

std::vector<GresGpus> gpus_in_gres(std::string_view gres) {
  std::vector<GresGpus> gpus;
  for (const std::string& entry : entries_of(gres)) {
    std::vector<std::string_view> parts = split(entry, ":=/");
    if (parts.front() == "gres") parts.erase(parts.begin());
    if (parts.empty() || parts.front() != "gpu" || parts.size() > 3) continue;
    GresGpus found;
    bool readable = true;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::optional<int> count = parse_number<int>(parts[i]);
      const bool is_count = count && *count >= 0 && *count <= kMaxGpus && i + 1 == parts.size();
      if (is_count) {
        found.count = *count;
      } else if (i == 1 && is_slurm_word(parts[i])) {
        found.type = parts[i];
      } else {
        readable = false;
      }
    }
    if (readable && found.count > 0) gpus.push_back(std::move(found));
  }
  return gpus;
}

bool SlurmNode::is_healthy() const {
  // "*": it does not respond. Other marks (~ powered down, $ reserved) let jobs start.
  if (state.ends_with('*')) return false;
  static constexpr std::array<std::string_view, 8> kAccepting{
      "idle", "allocated", "mixed", "completing", "planned", "reserved", "maint", "allocated+"};
  const std::string_view base = std::string_view(state).substr(0, state.find_first_of("~#!%$@^-"));
  return std::find(kAccepting.begin(), kAccepting.end(), base) != kAccepting.end();
}

std::vector<SlurmNode> nodes_in(std::string_view sinfo_output) {
  std::vector<SlurmNode> nodes;
  for (const std::string_view line : lines_of(sinfo_output)) {
    const std::vector<std::string_view> fields = fields_of(line, 4);
    if (fields.size() != 4 || !is_slurm_word(fields[0])) {
      throw Error(ErrorKind::kEnvironment,
                  fmt::format("sinfo printed \"{}\"; expected node, state, gres and reason",
                              line.substr(0, kMaxWord)));
    }
    const auto known = [&](const SlurmNode& node) { return node.name == fields[0]; };
    if (std::any_of(nodes.begin(), nodes.end(), known)) continue;
    SlurmNode node;
    node.name = fields[0];
    node.state = fields[1];
    node.gpus = gpus_in_gres(fields[2]);
    if (fields[3] != "none") node.reason = fields[3];
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<SlurmNode> slurm_nodes(const std::string& partition) {
  std::vector<std::string> words{"sinfo", "-h", "-a", "-N", "-o", "%N|%T|%G|%E"};
  if (!partition.empty()) words.push_back("--partition=" + partition);
  return nodes_in(checked(words));
}

std::map<std::string, SlurmJobState> jobs_named(const std::string& names) {
  std::map<std::string, SlurmJobState> jobs;
  const std::string listed =
      checked({"squeue", "-h", "-r", "-t", "all", "--name=" + names, "-o", "%i|%T|%N|%r"});
  for (const std::string_view line : lines_of(listed)) {
    const std::vector<std::string_view> fields = fields_of(line, 4);
    if (fields.size() != 4) continue;
    jobs[std::string(fields[0])] = {std::string(fields[1]), std::string(fields[3]),
                                    std::string(fields[2])};
  }
  return jobs;
}

std::string submit_job(const std::vector<std::string>& options,
                       const std::vector<std::string>& words) {
  std::vector<std::string> command{"sbatch", "--parsable"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), words.begin(), words.end());
  const std::string printed = first_line(checked(command));
  std::string id = printed.substr(0, printed.find(';'));  // "12;cluster"
  const bool is_number = !id.empty() && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isdigit(c) != 0;
  });
  if (!is_number) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("sbatch printed \"{}\" instead of a job id", printed));
  }
  return id;
}

std::size_t max_array_size_in(std::string_view config) {
  constexpr std::size_t kDefault = 1001;
  for (const std::string_view line : lines_of(config)) {
    const std::size_t equals = line.find('=');
    if (!line.starts_with("MaxArraySize") || equals == std::string_view::npos) continue;
    std::string_view value = line.substr(equals + 1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    return std::max<std::size_t>(parse_number<std::size_t>(value).value_or(kDefault), 1);
  }
  return kDefault;
}

std::size_t max_array_size() { return max_array_size_in(checked({"scontrol", "show", "config"})); }

void cancel_job(const std::string& id) { checked({"scancel", id}); }

void scontrol_update(const std::vector<std::string>& properties) {
  std::vector<std::string> words{"scontrol", "update"};
  words.insert(words.end(), properties.begin(), properties.end());
  checked(words);
}

void release_job(const std::string& id) { checked({"scontrol", "release", id}); }

bool is_slurm_word(std::string_view word) {
  return !word.empty() && word.size() <= kMaxWord && word.front() != '-' && word.front() != '.' &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 ||
                  std::string_view("._-+@,").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

void require_slurm_word(const char* option, std::string_view word) {
  if (is_slurm_word(word)) return;
  throw Error(
      ErrorKind::kUsage,
      fmt::format("{} is \"{}\"; write letters, digits and . _ - + @ , only", option, word));
}

}  // namespace memfathom
