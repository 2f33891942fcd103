// Store: the SQLite database of samples, observations, calibrations and baselines.
//
// Rows are added and never changed; a new calibration supersedes the old one, which stays. A row's
// id is a hash of what it says, so the same row has the same id in every database. When a function
// that adds returns, what it added is on the disk, unless a Batch is open. One Store belongs to one
// thread; several processes may write to one file and wait for each other. Failures are Errors:
// kInput (a file that is not ours, damaged, newer; a value that cannot be) or kEnvironment (the
// file system, a full disk, a lock that is never released).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/calibration.h"
#include "core/environment.h"
#include "core/sample.h"
#include "db/records.h"

namespace memfathom {

class Connection;

class Store {
 public:
  enum class Mode {
    kReadWrite,  // makes the file when there is none, upgrades an old schema
    kReadOnly,   // leaves the file as it is
  };
  static Store open(const std::filesystem::path& path, Mode mode);
  // For commands that can do without: nothing when the file does not exist or nobody has written to
  // it yet.
  static std::optional<Store> open_if_exists(const std::filesystem::path& path);

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // Many rows in one transaction: all become durable with commit(), and none without it.
  class Batch {
   public:
    explicit Batch(Store& store);
    ~Batch();
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    void commit();

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };

  // Runs and samples.
  std::string begin_run(Run run);  // returns its id
  void finish_run(std::string_view run, std::string_view finished);
  std::vector<Run> runs() const;
  // The newest unfinished run of this plan in exactly this environment: where `calibrate` goes on.
  std::optional<Run> unfinished_run(const Environment& environment, std::string_view plan) const;
  std::string insert_sample(std::string_view run, const Sample& sample);  // returns its id
  // All of them, or none.
  void insert_samples(std::string_view run, std::span<const Sample> samples);
  std::vector<StoredSample> samples(const SampleFilter& filter) const;
  void for_each_sample(const SampleFilter& filter,
                       const std::function<void(StoredSample&&)>& visit) const;

  // Observations of real jobs. False when the same one is there already.
  bool insert_observation(const Observation& observation);
  std::vector<Observation> observations() const;

  // Calibrations. Saving sets id and, when it is empty, supersedes; what was saved comes back.
  Calibration save_calibration(Calibration calibration);
  // Keeps a calibration from elsewhere as it is; its id must be that of its content. False when it
  // is there already.
  bool import_calibration(const Calibration& calibration);
  std::vector<Calibration> calibrations() const;  // oldest first
  // The newest usable one of this very device and stack.
  std::optional<Calibration> calibration_for(const Environment& environment) const;
  // The newest usable one of this device and framework under any driver and library version: stale
  // unless it is the above.
  std::optional<Calibration> newest_of_device(const Environment& environment) const;
  // The newest usable one of every other device of this architecture, with the same framework.
  std::vector<Calibration> architecture_siblings(const Environment& environment) const;
  // By name, id or the beginning of one: core/name_lookup.h.
  std::optional<Calibration> find_calibration(std::string_view name_or_id) const;

  // Baselines of `bench`, and annotations.
  std::string insert_baseline(const Baseline& baseline);  // returns its id
  std::vector<Baseline> baselines() const;
  std::optional<Baseline> find_baseline(std::string_view name_or_id) const;  // likewise
  std::string annotate(const Annotation& annotation);
  std::vector<Annotation> annotations(std::string_view subject) const;  // of everything when empty

  // Upkeep.
  StoreInfo info() const;
  std::vector<std::string> check() const;  // what is wrong, a sentence each; empty when all is well
  void backup(const std::filesystem::path& target) const;  // never over an existing file
  // Adds what `other` has and this has not: idempotent, and in any order the result is the same.
  MergeCounts merge(const Store& other);

 private:
  explicit Store(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace memfathom
