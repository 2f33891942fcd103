// Documents: YAML and JSON files parsed into one tree; every value records its file, line and path.
//
// Files are untrusted: duplicate keys are rejected, and size, depth and alias expansion are
// limited. The accessors of Node throw Error(kInput) with file, line, path, value and remedy, so
// code that reads documents needs no error handling:
//
//   const Node job = load_document("job.yaml");
//   job.check_keys({"model", "training", "parallel"});
//   if (const Node* training = job.find("training")) batch = training->at("batch_size").as_int(1);
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "core/dtype.h"
#include "core/enum_names.h"

namespace memfathom {

class Node {
 public:
  enum class Type : std::uint8_t { kNull, kBool, kInt, kDouble, kString, kList, kMap };

  Node() = default;  // null
  static Node boolean(bool value);
  static Node integer(std::int64_t value);
  static Node number(double value);
  static Node string(std::string value);
  static Node list();
  static Node map();

  Type type() const { return type_; }
  bool is_null() const { return type_ == Type::kNull; }
  bool is_bool() const { return type_ == Type::kBool; }
  bool is_int() const { return type_ == Type::kInt; }
  bool is_number() const { return type_ == Type::kInt || type_ == Type::kDouble; }
  bool is_string() const { return type_ == Type::kString; }
  bool is_list() const { return type_ == Type::kList; }
  bool is_map() const { return type_ == Type::kMap; }

  // The value's location. `path` is dotted from the root: "training.lora.rank",
  // "model.layers[3].kernel".
  const std::string& path() const { return path_; }
  std::string_view key() const {
    return std::string_view(path_).substr(key_offset_);
  }                                   // of an entry of a map
  int line() const { return line_; }  // the key's line for an entry of a map; 0 without a file
  std::string where() const;          // "job.yaml:7"
  std::string file() const { return file_ ? *file_ : std::string(); }

  // Elements of a list, or entries of a map in the order of the file (see key()).
  const std::vector<Node>& items() const;
  const std::vector<Node>& entries() const;
  const Node* find(std::string_view key) const;  // nullptr if absent
  const Node& at(std::string_view key) const;    // throws if the key is missing

  // Typed values. Whole doubles such as 8e9 convert to integers, and integers to doubles. Limits
  // are inclusive.
  bool as_bool() const;
  std::int64_t as_int(std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  double as_number(double least = std::numeric_limits<double>::lowest(),
                   double most = std::numeric_limits<double>::max()) const;  // finite
  double unchecked_number() const {
    return type_ == Type::kInt ? static_cast<double>(int_) : double_;
  }
  const std::string& as_string() const;
  Bytes as_bytes() const;  // "24GiB"; a number without a unit is an error, except 0
  DType as_dtype() const;
  std::vector<std::int64_t> as_ints(
      std::int64_t least = std::numeric_limits<std::int64_t>::min(),
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;  // a list
  // The index of this string in `names`; throws with the nearest name if there is none.
  std::size_t as_choice(std::initializer_list<std::string_view> names) const;
  std::size_t as_choice(std::span<const std::string_view> names) const;
  // The value of E that this string names (core/enum_names.h); anything else is the same error.
  template <NamedEnum E>
  E as_enum() const {
    static_assert(names_are_complete<E>(), "the table does not name every value of the enum once");
    return kEnumNames<E>[as_choice(kNamesOf<E>)].value;
  }

  // Throws for the first unknown key of this map, naming the nearest known one.
  void check_keys(std::initializer_list<std::string_view> known) const;
  void check_keys(std::span<const std::string_view> known) const;

  // Throws `job.yaml:7: "training.batch_size" is 0; {requirement}`, e.g. refuse("it must be at
  // least 1").
  [[noreturn]] void refuse(std::string_view requirement) const;

  // Sets `training.batch_size` and creates the maps on the way, as --set does. The value keeps its
  // own file and line. Throws if the path leads through a scalar; [n] must be an existing element
  // of a list.
  void assign(std::string_view dotted_path, Node value);
  void append(Node value);                     // to a list
  void set(std::string_view key, Node value);  // of a map: replaces or adds at the end
  void erase(std::string_view key);            // of a map

  // Compares values, not locations. Maps compare without regard to order; 1 and 1.0 differ.
  bool same_value(const Node& other) const;

  // The value as one line of JSON, truncated after about 60 characters: for error messages.
  std::string shown() const;

 private:
  friend class TreeBuilder;
  void relocate(const std::string& parent_path, std::string_view key);
  void relocate_item(const std::string& parent_path, std::size_t index);
  void relocate_children();
  std::size_t cost(std::size_t longer_path) const;  // its bytes if each path were that much longer
  Node* entry(std::string_view key);
  const Node& expect(Type type, std::string_view what) const;

  Type type_ = Type::kNull;
  bool bool_ = false;
  int line_ = 0;
  std::uint32_t key_offset_ = 0;
  std::int64_t int_ = 0;
  double double_ = 0;
  std::string string_;
  std::vector<Node> children_;
  std::string path_;
  std::shared_ptr<const std::string> file_;
};

struct DocumentLimits {
  std::size_t max_file_bytes = std::size_t{64} << 20;
  std::size_t max_tree_bytes = std::size_t{512} << 20;  // after expansion of aliases
  int max_depth = 64;
};

// Parses JSON if the name ends in .json, YAML if it ends in .yaml or .yml; otherwise JSON if the
// text starts with '{' or '['. "-" reads standard input.
Node load_document(const std::string& path, const DocumentLimits& limits = {});

// `file` is named in errors; `first_line` is the file line of the text's first line (0: errors name
// no line).
Node parse_yaml(std::string_view text, const std::string& file, int first_line = 1,
                const DocumentLimits& limits = {});
Node parse_json(std::string_view text, const std::string& file, int first_line = 1,
                const DocumentLimits& limits = {});
// Chooses the format as load_document does, for text in memory.
Node parse_document(std::string_view text, const std::string& file,
                    const DocumentLimits& limits = {});

nlohmann::json to_json(const Node& node);  // infinities and NaN become null
Node node_from_json(const nlohmann::json& json, const std::string& file = "");

}  // namespace memfathom
