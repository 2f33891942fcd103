// Query: binds values in order, steps over rows, reads columns in order, and resets its statement
// in the destructor. Private to db/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/bytes.h"
#include "db/connection.h"

namespace memfathom {

class Query {
 public:
  Query(Connection& connection, const char* sql) : statement_(connection.statement(sql)) {}
  template <typename... Values>
  Query(Connection& connection, const char* sql, const Values&... values) : Query(connection, sql) {
    bind_all(values...);
  }
  ~Query() { statement_.tryReset(); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // Text is not copied: it must live until the query has run.
  void bind(const std::string& text) { statement_.bindNoCopy(++bound_, text); }
  void bind(const char* text) { statement_.bindNoCopy(++bound_, text); }
  void bind(std::int64_t number) { statement_.bind(++bound_, number); }
  void bind(int number) { statement_.bind(++bound_, number); }
  void bind(bool flag) { statement_.bind(++bound_, flag ? 1 : 0); }
  void bind(double number) { statement_.bind(++bound_, number); }
  void bind(Bytes bytes) { bind(bytes.count()); }
  template <typename T>
  void bind(const std::optional<T>& value) {
    if (value) {
      bind(*value);
    } else {
      statement_.bind(++bound_);  // NULL
    }
  }

  template <typename... Values>
  void bind_all(const Values&... values) {
    (bind(values), ...);
  }

  // Advances to the next row; false if there is none.
  bool step() {
    column_ = 0;
    return statement_.executeStep();
  }
  // Runs a statement without rows; returns how many rows it changed.
  int run() { return statement_.exec(); }

  // Columns, left to right.
  void read(std::string& text) { text = statement_.getColumn(column_++).getString(); }
  void read(std::int64_t& number) { number = statement_.getColumn(column_++).getInt64(); }
  void read(int& number) { number = statement_.getColumn(column_++).getInt(); }
  void read(bool& flag) { flag = statement_.getColumn(column_++).getInt() != 0; }
  void read(double& number) { number = statement_.getColumn(column_++).getDouble(); }
  void read(Bytes& bytes) { bytes = Bytes{statement_.getColumn(column_++).getInt64()}; }
  template <typename T>
  void read(std::optional<T>& value) {
    value.reset();
    if (statement_.isColumnNull(column_)) {
      ++column_;
    } else {
      read(value.emplace());
    }
  }
  template <typename... Fields>
  void read_all(Fields&... fields) {
    (read(fields), ...);
  }

 private:
  SQLite::Statement& statement_;
  int bound_ = 0;
  int column_ = 0;
};

}  // namespace memfathom
