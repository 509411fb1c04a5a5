#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "store/evaluation.hpp"

namespace NAS_PUBLIC nas {

/// Seconds of training that a replay charges: those of the processor where they are recorded (one
/// thread on a CPU: what neighbours on the machine do not stretch), else those of the clock; 0 for
/// what was rejected before training.
double charged_seconds(const Evaluation& recorded);

/// Recorded training runs of many mechanisms, each with several seeds: a file that answers in place
/// of training. Its cells are (mechanism, replicate); both are numbered from 0. Read-only, held in
/// memory, cheap to copy, thread-safe. The file is an SQLite file that docs/files.md describes.
/// @see Ying et al. (2019), NAS-Bench-101, arXiv:1902.09635.
class Table {
 public:
  /// Checks once what everything else relies upon: tables, columns, every cell. Nothing is written,
  /// and no file beside it is looked at. Cost: reads the file twice; nothing
  /// where it is the last one that was read and has not changed, which stays in memory.
  /// @throws InputError naming the file and what is wrong with it: no table, another version, a
  /// checksum that does not fit, a table or column that is missing, a value of another type, a cell
  /// that cannot be.
  explicit Table(const std::filesystem::path& file);

  /// What holds for every cell: "name", "semantics", "model", "corpus", "corpus_hash",
  /// "vocabulary", "training", "numerical_mode", "threads", "run_seed", "results_version",
  /// "unigram_perplexity", "bytes_per_token", "context", "device", "sources", "chance" (see
  /// ChanceLevel), ...
  [[nodiscard]] const nlohmann::json& facts() const;
  /// Under which terms it is published: "licence", "corpus_licence", "version", "changelog", ...
  /// (docs/files.md), each where it is known; an empty object where it never was.
  [[nodiscard]] const nlohmann::json& publication() const;
  /// The checksum of its content but its publication, 64 hexadecimal digits: the table's identity,
  /// whatever version of SQLite wrote the file.
  [[nodiscard]] const std::string& sha256() const;

  /// Number of functions: canonical names at attention dropout 0, in the order of the names.
  [[nodiscard]] std::int64_t num_mechanisms() const;
  [[nodiscard]] const std::string& mechanism(std::int64_t mechanism) const;
  [[nodiscard]] std::optional<std::int64_t> find(const std::string& mechanism) const;
  /// Seeds that most mechanisms have been trained with, unless cells are missing: those that a
  /// replay draws from.
  [[nodiscard]] std::int64_t num_replicates() const;
  /// Seeds that some mechanism has been trained with: the best of a table are often given further
  /// ones, so that what is true of them is better known.
  [[nodiscard]] std::int64_t most_replicates() const;
  /// Steps of the validation curves, ascending; the last one is the whole training run. The curve
  /// of one that ended before is shorter.
  [[nodiscard]] const std::vector<std::int64_t>& steps() const;

  /// Whether a cell is there; a table says explicitly which are missing.
  [[nodiscard]] bool has(std::int64_t mechanism, std::int64_t replicate) const;
  /// The recorded evaluation again, its id and identity included. Of `measured`: train_seconds,
  /// cpu_seconds, peak_bytes, and the measured objectives of the mechanism.
  /// @throws InputError "NAME has no replicate ... of ..." for a missing cell.
  [[nodiscard]] Evaluation evaluation(std::int64_t mechanism, std::int64_t replicate) const;
  /// Objectives that were measured of a mechanism without training it, by name: objects with
  /// "value"; the measurement of the cell with the median value, the lower one of two.
  [[nodiscard]] const nlohmann::json& measured(std::int64_t mechanism) const;
  /// charged_seconds() of a cell. @throws InputError for a missing one.
  [[nodiscard]] double seconds(std::int64_t mechanism, std::int64_t replicate) const;

 private:
  struct Content;
  static std::shared_ptr<const Content> read_once(const std::filesystem::path& file);

  std::shared_ptr<const Content> content_;
};

}  // namespace nas
