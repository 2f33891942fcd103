// Store: the SQLite database of samples, observations, calibrations and baselines.
//
// Rows are added and never changed; a new calibration supersedes the old one, which is kept. A
// row's id is a hash of its content, so the same row has the same id in every database. Added rows
// are on disk when the function returns, unless a Batch is open. One thread may use a Store;
// several processes may write to one file and wait for each other. Errors are kInput (a file that
// is foreign, damaged or newer; an invalid value) or kEnvironment (the file system, a full disk, a
// lock that is never released).
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
    kReadWrite,  // creates the file if it is missing, upgrades an old schema
    kReadOnly,   // leaves the file unchanged
  };
  static Store open(const std::filesystem::path& path, Mode mode);
  // For commands that work without a database: nullopt if the file is missing or empty.
  static std::optional<Store> open_if_exists(const std::filesystem::path& path);

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // Many rows in one transaction: commit() makes all of them durable; without it none is stored.
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
  // The newest unfinished run of this plan in exactly this environment, which `calibrate` resumes.
  std::optional<Run> unfinished_run(const Environment& environment, std::string_view plan) const;
  std::string insert_sample(std::string_view run, const Sample& sample);  // returns its id
  // All of them, or none.
  void insert_samples(std::string_view run, std::span<const Sample> samples);
  std::vector<StoredSample> samples(const SampleFilter& filter) const;
  void for_each_sample(const SampleFilter& filter,
                       const std::function<void(StoredSample&&)>& visit) const;

  // Observations of real jobs. False if it already exists.
  bool insert_observation(const Observation& observation);
  std::vector<Observation> observations() const;  // without removed ones
  std::vector<StoredObservation> stored_observations() const;
  // Whether it was stored and then set aside.
  bool is_removed(const Observation& observation) const;

  // Sets a sample or an observation aside or, with `removed` false, takes it back. False if it
  // already is so.
  bool set_removed(std::string_view subject, bool removed, std::string_view created,
                   std::string_view reason);
  std::vector<Removal> removals() const;  // all, restored ones too

  // Calibrations. Saving sets id and, if empty, supersedes; returns the saved calibration.
  Calibration save_calibration(Calibration calibration);
  // Stores a calibration from elsewhere unchanged; its id must match its content. False if it
  // already exists.
  bool import_calibration(const Calibration& calibration);
  std::vector<Calibration> calibrations() const;  // oldest first
  // The newest usable one of exactly this device and software.
  std::optional<Calibration> calibration_for(const Environment& environment) const;
  // The newest usable one of this device and framework with any driver and library versions: stale
  // unless it is the one above.
  std::optional<Calibration> newest_of_device(const Environment& environment) const;
  // The newest usable one of every other device of this architecture, with the same framework.
  std::vector<Calibration> architecture_siblings(const Environment& environment) const;
  // By name, id or id prefix: core/name_lookup.h.
  std::optional<Calibration> find_calibration(std::string_view name_or_id) const;

  // Baselines of `bench`, and annotations.
  std::string insert_baseline(const Baseline& baseline);  // returns its id
  std::vector<Baseline> baselines() const;
  std::optional<Baseline> find_baseline(std::string_view name_or_id) const;  // likewise
  std::string annotate(const Annotation& annotation);
  std::vector<Annotation> annotations(std::string_view subject) const;  // of everything when empty

  // Maintenance.
  StoreInfo info() const;
  std::vector<std::string> check() const;  // one sentence per problem; empty if there is none
  void backup(const std::filesystem::path& target) const;  // never overwrites a file
  // Adds the rows of `other` that are missing here: idempotent, and independent of the order.
  MergeCounts merge(const Store& other);

 private:
  explicit Store(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace memfathom
