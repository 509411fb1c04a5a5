#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>

#include <nlohmann/json.hpp>

namespace nas {

/// Values, one for each of some records, as a column: a list of them; {"all": VALUE} where they are
/// equal; {"each": {KEY: COLUMN}} where they are objects of the same keys, and {"each": [COLUMN]}
/// where they are lists of the same length.
nlohmann::json column_of(nlohmann::json values);

/// Writes records as blocks of columns, a line each: {"columns": {KEY: COLUMN}, "records": NUMBER}.
/// All records of a block have the same keys. No more than a block is in memory.
/// @param at  makes the record at a place; called in order, once for each.
void write_blocks(std::ostream& out, std::size_t size,
                  const std::function<nlohmann::json(std::size_t place)>& at);

}  // namespace nas
