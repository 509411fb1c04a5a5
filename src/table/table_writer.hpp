#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "store/evaluation.hpp"

namespace NAS_PUBLIC nas {

/// What a table is made from.
struct TableContent {
  std::string name;               ///< for people
  nlohmann::json identity;        ///< of every cell, without candidate and replicate
  nlohmann::json facts;           ///< what else holds for every cell
  nlohmann::json sources;         ///< a list: where the cells are from
  std::vector<Evaluation> cells;  ///< in any order, no two of one mechanism and replicate
  /// Under which terms it is published, by key, as check_publication() takes it. The checksum leaves
  /// it out.
  nlohmann::json publication = nlohmann::json::object();
};

/// Writes a table: a temporary file beside it, renamed when it is whole. Equal content gives an
/// equal checksum, and with the same version of SQLite equal bytes, whatever the order of the cells.
/// Of what is not finite, NaN reads back as absent; -0 reads back as 0.
/// @throws InputError if there is no cell, a cell is none that a table could be read with, such as one that
/// was finished without a learning curve, its publication is none, a cell's curve has other steps than the longest one's
/// first ones, steps that do not ascend, a value has the name of another column of `trainings`, or
/// nothing can be written to its folder; MachineError where writing fails, as on a full disk.
void write_table(const TableContent& content, const std::filesystem::path& file);

}  // namespace nas
