#pragma once

#include <cstdint>
#include <string_view>

#include "store/evaluation.hpp"

/// The file of a table, little-endian, every part at a multiple of 8 bytes:
///
///   8 bytes   kTableMagic
///   8 bytes   kTableVersion, an integer
///   64 bytes  SHA-256 of all that follows, in hexadecimal digits
///   8 bytes   length of the header
///   header    JSON, filled up with blanks: name, identity, facts, sources, mechanisms, replicates,
///             steps, reasons, measured, columns
///   columns   arrays of 64-bit words, integers ("i64") or IEEE 754 doubles ("f64")
///
/// A cell is a mechanism (a function, at attention dropout 0) trained with one replicate's seeds.
/// A column has a word for each cell ("cell": mechanism by mechanism, the replicates of one beside
/// each other), for each point of a cell's curve ("point": cell by cell, the steps of one beside
/// each other), or one word for all of them where they agree ("table"). Its "offset" counts words
/// from the first column.
namespace nas::table_format {

inline constexpr std::string_view kTableMagic = "NASTABLE";
inline constexpr std::int64_t kTableVersion = 1;
inline constexpr std::size_t kDigestOffset = 16;
inline constexpr std::size_t kLengthOffset = 80;  ///< where the part under the checksum begins
inline constexpr std::size_t kHeaderOffset = 88;

/// Column `status` of a cell that was never trained; Status otherwise.
inline constexpr std::int64_t kMissing = -1;

/// Prefix of the columns of Evaluation::values; NaN where a cell has no such value.
inline constexpr std::string_view kValuePrefix = "values.";

/// Calls visit(column name, unit, number) for every number of a curve point but its step; real ones
/// are doubles.
template <class Point, class Visit>
void visit_numbers(Point& point, Visit visit) {
  visit("train_nll", "nat", point.train_nll);
  visit("valid.nll", "nat", point.valid.nll);
  visit("valid.tokens", "1", point.valid.tokens);
  visit("valid.correct", "1", point.valid.correct);
  visit("valid.pad_nll", "nat", point.valid.pad_nll);
  visit("valid.pad_tokens", "1", point.valid.pad_tokens);
  visit("valid.unknown_nll", "nat", point.valid.unknown_nll);
  visit("valid.unknown_tokens", "1", point.valid.unknown_tokens);
  visit("valid.batch_mean_nll", "nat", point.valid.batch_mean_nll);
  visit("valid.batches", "1", point.valid.batches);
  visit("seconds", "s", point.seconds);
}

/// Calls visit(name in Evaluation::measured, unit) for the measured numbers that a table keeps, NaN
/// where a cell has none.
template <class Visit>
void visit_measured(Visit visit) {
  visit("train_seconds", "s");
  visit("cpu_seconds", "s");
  visit("peak_bytes", "B");
}

}  // namespace nas::table_format
