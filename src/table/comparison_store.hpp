#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// A mechanism of the table that a comparison replays. Objectives in order, in minimisation form,
/// means over all replicates; those of a failure where the means break a constraint.
struct ComparedCandidate {
  std::string name;   ///< canonical
  std::string label;  ///< for people
  /// Trained objectives on the split that meta "truth_splits" names for each of them: "test", or
  /// "validation" where the table lacks what the test split says.
  std::vector<double> truth;
  std::vector<double> believed;  ///< the same on the validation split, as searches see it
};

/// A search algorithm with its settings, under a name of its own within the comparison.
struct ComparedAlgorithm {
  std::string name;
  std::string key;  ///< of the plug-in
  nlohmann::json settings;

  friend bool operator==(const ComparedAlgorithm&, const ComparedAlgorithm&) = default;
};

/// What a search asked for and saw, ask by ask.
struct Trajectory {
  std::vector<std::int32_t> candidates{};  ///< numbers of the candidates asked for
  std::vector<std::int32_t> trained{};     ///< training runs charged so far, this ask included
  std::vector<double> seconds{};           ///< of training charged so far
  /// Asks x objectives, row-major, minimisation form, unscaled; NaN of an ask that was answered at a
  /// rung, unless an earlier one was at the end: that answer then.
  std::vector<double> fitness{};
  std::vector<std::int64_t> steps{};  ///< of training charged so far; empty in old records

  friend bool operator==(const Trajectory&, const Trajectory&) = default;
};

/// One search of a comparison.
struct ComparedSearch {
  std::int64_t algorithm = 0;  ///< its number in the store
  std::int64_t seed = 0;
  double search_seconds = 0.0;  ///< processor time of the search, its algorithm's work
  std::string ended_by;
  Trajectory trajectory{};
};

/// The record of a comparison: one SQLite file, opened as Database says, one writer. Searches with
/// equal seed are paired: they see the same recorded noise of the same mechanism and begin with the
/// same population.
///
/// Every call throws InputError where the file is damaged and MachineError where the machine cannot
/// read or write it, or where it vanished.
class ComparisonStore {
 public:
  enum class Mode { write, read_only };
  /// Opens the file; for writing, creates it where it is missing. @throws InputError if it is no
  /// comparison store of this version, or another process holds it for writing.
  explicit ComparisonStore(const std::filesystem::path& file, Mode mode = Mode::write);
  ~ComparisonStore();
  ComparisonStore(const ComparisonStore&) = delete;
  ComparisonStore& operator=(const ComparisonStore&) = delete;

  /// @throws MachineError if the file that is written to is no longer the one of its name.
  void require_in_place() const;

  /// @throws InputError which names the file, a damaged record of it ("the fact table"), and why it
  /// is taken for one.
  [[noreturn]] void refuse(const std::string& record, const std::string& reason) const;
  /// Does `read`, which takes for granted what JSON a record holds. @throws InputError as refuse()
  /// does where it is another.
  template <class Read>
  auto reading(const std::string& record, Read read) const -> decltype(read()) {
    try {
      return read();
    } catch (const nlohmann::json::exception& error) {
      refuse(record, error.what());
    }
  }

  void set_meta(const std::string& key, const nlohmann::json& value);
  [[nodiscard]] std::optional<nlohmann::json> meta(const std::string& key) const;

  /// Replaces all candidates; their places are their numbers.
  void set_candidates(const std::vector<ComparedCandidate>& candidates);
  [[nodiscard]] std::vector<ComparedCandidate> candidates() const;

  /// All algorithms; their places are their numbers.
  [[nodiscard]] std::vector<ComparedAlgorithm> algorithms() const;
  /// @return the number of the algorithm of this name, which is added if there is none.
  std::int64_t number_of(const ComparedAlgorithm& algorithm);

  /// Seeds of an algorithm's searches.
  [[nodiscard]] std::set<std::int64_t> seeds(std::int64_t algorithm) const;
  /// Commits searches in one transaction.
  void add(const std::vector<ComparedSearch>& searches);
  /// Calls `visit` with every search of an algorithm, by seed, once its SHA-256 is found to fit.
  void for_each_search(std::int64_t algorithm,
                       const std::function<void(const ComparedSearch&)>& visit) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nas
