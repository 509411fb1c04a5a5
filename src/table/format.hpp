#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/database.hpp"
#include "store/evaluation.hpp"

/// The file of a table: SQLite, as docs/files.md describes it. A cell is a mechanism (a function, at
/// attention dropout 0) trained with one replicate's seeds.
namespace nas::table_format {

inline constexpr DatabaseKind kKind{.name = "table",
                                    .application_id = 0x6e617374,  // "nast"
                                    .version = 2,
                                    .schema = ""};  // nas-data packs tables

/// The table of the terms under which a table is published: there where it ever was. content_digest()
/// leaves it out: another licence or version makes no other numbers, and runs that name the table by
/// its checksum go on.
inline constexpr const char* kPublication = "publication";

/// A column's name as SQL takes any.
std::string quoted(const std::string& column);

/// Calls visit(column of `curves`, number) for every number of a curve point but its step; real
/// ones are doubles.
template <class Point, class Visit>
void visit_numbers(Point& point, Visit visit) {
  visit("train_nll", point.train_nll);
  visit("nll", point.valid.nll);
  visit("tokens", point.valid.tokens);
  visit("correct", point.valid.correct);
  visit("pad_nll", point.valid.pad_nll);
  visit("pad_tokens", point.valid.pad_tokens);
  visit("unknown_nll", point.valid.unknown_nll);
  visit("unknown_tokens", point.valid.unknown_tokens);
  visit("batch_mean_nll", point.valid.batch_mean_nll);
  visit("batches", point.valid.batches);
  visit("seconds", point.seconds);
}

/// Calls visit(name in Evaluation::measured) for the measured numbers that a table keeps: columns
/// of `trainings`.
template <class Visit>
void visit_measured(Visit visit) {
  visit("train_seconds");
  visit("cpu_seconds");
  visit("peak_bytes");
}

/// Whether a part of Evaluation::measured is an objective that was measured without training.
inline bool is_measured_objective(const nlohmann::json& part) {
  return part.is_object() && part.contains("value");
}

/// SHA-256 over all rows of a table's file but that of this number itself, which does not depend on
/// how SQLite lays them out.
/// @param query  makes statements on the file.
/// @throws SQLite::Exception
std::string content_digest(const std::function<SQLite::Statement(const std::string&)>& query);

/// A cell in words: its mechanism and its replicate.
std::string name_of(const std::string& mechanism, std::int64_t replicate);
std::string name_of(const Evaluation& cell);

/// What readers of a table take for granted of a cell.
/// @throws InputError naming the cell: a measured number that is not finite or negative; of a
/// finished one, a curve without a point, no train_seconds, losses or counts that cannot be.
/// @param trained  whether it is a training run; of a choice, its values are all that there is.
void check_cell(const Evaluation& cell, bool trained = true);

/// Steps of the longest curve, which those of the other cells begin with.
/// @throws InputError naming a cell with other steps, or with steps that do not ascend.
std::vector<std::int64_t> common_steps(const std::vector<const Evaluation*>& cells);

/// Replicates that a table has, those aside that less than nine tenths of its mechanisms have: the
/// better ones are often given further ones, and of a race more than half go on to the second round.
/// @param cells  the mechanism and the replicate of each.
template <class Mechanism>
std::int64_t common_replicates(const std::vector<std::pair<Mechanism, std::int64_t>>& cells) {
  std::set<Mechanism> mechanisms;
  std::map<std::int64_t, std::size_t> count;
  for (const auto& [mechanism, replicate] : cells) {
    mechanisms.insert(mechanism);
    ++count[replicate];
  }
  std::int64_t common = 0;
  for (const auto& [replicate, having] : count) {
    if (10 * having >= 9 * mechanisms.size()) common = replicate + 1;
  }
  return common;
}

}  // namespace nas::table_format
