#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "report/summary.hpp"
#include "store/store_copy.hpp"

namespace nas {

/// Records by key, each with the version of the whole in which it changed last.
class ChangingRecords {
 public:
  void set(const std::string& key, nlohmann::json record, std::int64_t version);
  /// Those that changed after a version, in order of their keys.
  [[nodiscard]] nlohmann::json since(std::int64_t version) const;
  [[nodiscard]] std::size_t size() const { return records_.size(); }
  void clear() { records_.clear(); }

 private:
  struct Entry {
    nlohmann::json record;
    std::int64_t version;
  };
  std::map<std::string, Entry> records_;
};

/// A run as it is read again and again while another process writes it, and
/// after its end. Reads a copy of the store, so that nothing of the run is touched.
class RunWatch {
 public:
  /// @param run     a run's folder, or its store. @throws InputError if there is none.
  /// @param before  the version of one that watched the run before: this one has later ones.
  explicit RunWatch(const std::filesystem::path& run, std::int64_t before = 0);

  /// Looks whether anything has changed, at most twice per second, and where looking takes long so
  /// seldom that it takes a tenth of a core. What cannot be read any more
  /// becomes part of the state; what was read stays.
  void look();
  /// Counts the changes.
  [[nodiscard]] std::int64_t version() const { return version_; }
  /// The state, without the records of evaluations and candidates that have not changed since a
  /// version; all of them where the version is not one of this object. See
  /// docs/how-to/watch-a-run.md.
  [[nodiscard]] nlohmann::json state(std::int64_t since) const;
  /// The row of the run in a list: how far it is, its best mechanism and its baseline by the first
  /// objective, and its best value so far over what its budget counts. See
  /// docs/how-to/watch-a-run.md.
  [[nodiscard]] nlohmann::json overview() const;

 private:
  void read();
  void read_copy();
  void describe();
  void describe_candidates();
  void describe_evaluations();
  [[nodiscard]] nlohmann::json at_work_json();
  [[nodiscard]] nlohmann::json best_json();
  [[nodiscard]] std::string phase() const;
  void describe_listed(nlohmann::json& row) const;
  [[nodiscard]] std::string name_of(const std::string& candidate) const;
  std::size_t number_of(const std::string& candidate);

  StoreCopy copy_;
  std::optional<RunSummary> run_;
  nlohmann::json planned_trainings_;  ///< of listed mechanisms and controls; null: not recorded
  bool whole_ = false;                ///< the last reading of it did not fail on the way
  bool writer_ = false;
  std::string phase_;
  std::chrono::steady_clock::time_point looked_{};
  std::chrono::steady_clock::duration took_{};
  std::int64_t version_ = 0;
  std::int64_t oldest_ = 0;  ///< version since which no record has gone
  nlohmann::json header_;    ///< all but the records
  ChangingRecords evaluations_, candidates_;
  std::map<std::string, std::size_t> numbers_;  ///< of candidates, by canonical name
  std::map<std::string, std::string> names_;    ///< of candidates, for people
  std::string told_from_;                       ///< the baseline that these tell them from
};

}  // namespace nas
