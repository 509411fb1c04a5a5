#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "store/database.hpp"
#include "store/store.hpp"

namespace nas {

/// The file of a run's store, with the tables that every one has.
extern const DatabaseKind kStoreKind;
/// Statements that make a table unless it is there: of paused training runs, of the order in which
/// the algorithm hears of answers.
extern const char* const kPartialsSchema;
extern const char* const kTellsSchema;

using Texts = std::vector<std::string>;

/// A table whose rows have digests, as texts column by column.
struct RecordTable {
  const char* name;
  const char* record;   ///< what a row is called in messages
  const char* columns;  ///< the first is the key
  int size;             ///< number of columns
};
inline constexpr RecordTable kMeta{"meta", "fact", "key, value", 2};
inline constexpr RecordTable kEvaluations{
    "evaluations", "evaluation",
    "id, candidate, replicate, status, reason, identity, curve, \"values\", measured", 9};
inline constexpr RecordTable kPartials{
    "partials", "partial training run",
    "id, candidate, replicate, identity, step, curve, \"values\", measured", 8};
inline constexpr RecordTable kAsks{"asks", "ask",
                                   "number, batch, genotype, evaluations, reused, fitness", 6};

inline constexpr RecordTable kTells{"tells", "tell", "number, ask", 2};

/// What the columns of a row hold, and the columns of what is written; numbers are texts here, which
/// SQLite stores as numbers in columns of numbers.
/// @param session  of this process, which a training run's measured values name.
/// @throws InputError, nlohmann::json::exception or std::logic_error where a column is not as it was
/// written.
nlohmann::json read_meta(const Texts& columns);
Texts evaluation_columns(const Evaluation& evaluation, std::optional<std::int64_t> session);
Evaluation read_evaluation(const Texts& columns);
Texts partial_columns(const Evaluation& evaluation, std::optional<std::int64_t> session);
Evaluation read_partial(const Texts& columns);
Texts ask_columns(const Ask& ask);
Ask read_ask(const Texts& columns);
inline std::int64_t read_tell(const Texts& columns) { return std::stoll(columns[1]); }

}  // namespace nas
