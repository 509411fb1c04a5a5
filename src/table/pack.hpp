#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/visibility.hpp"
#include "table/table.hpp"
#include "table/table_writer.hpp"

namespace NAS_PUBLIC nas {

/// The cells of several runs, and what is noteworthy about them.
struct Packed {
  TableContent content;
  std::vector<std::string> left_out;    ///< candidates with attention dropout, which no table holds
  std::vector<std::string> missing;     ///< "NAME, replicate 2", of those that most mechanisms have
  std::vector<std::string> unfinished;  ///< runs whose search has not ended
};

/// Collects the finished training runs in one or several stores, perhaps of several machines, which
/// must agree in everything that determines their results but candidate and replicate. A cell that
/// several runs have must be the same in all of them in its comparable part; the first one is kept.
/// What a run's tuning and re-test trained is left out.
/// @param measured  a run from which the measured objectives (latency) that it has are
/// taken instead, for every mechanism: one of the same model, however short its training runs, on
/// another device or in a quieter moment; empty: none.
/// @throws InputError naming every key in which the runs differ; the cell of which they hold two; a
/// run of another problem; no training run of a mechanism without attention dropout; a run
/// `measured` of another model.
Packed pack(const std::vector<std::filesystem::path>& stores, const std::string& name,
            const std::filesystem::path& measured = {});

/// How a table differs from what a run recorded.
struct TableCheck {
  std::int64_t cells = 0;  ///< of the store, compared
  std::vector<std::string> differences;
  std::set<std::pair<std::int64_t, std::int64_t>> met{};  ///< of the table: mechanism and replicate
};

/// Checks every training run of a store, those with attention dropout aside, against its cell: the
/// comparable part and the measured numbers.
/// @throws InputError naming the store where it has none, so that nothing would be compared.
TableCheck check_table(const Table& table, const std::filesystem::path& store);

/// What no check of a table has compared: its cells that none of the stores has, "NAME, replicate 2"
/// each.
std::vector<std::string> unmet_cells(const Table& table, const std::vector<TableCheck>& checks);

}  // namespace nas
