#pragma once

#include <string>
#include <vector>

namespace nas {

/// `nas-data table COMMAND ...`: packs finished training runs into a table, checks one, says what is in
/// one.
/// @param words  what follows "table".
/// @return the exit code: 0, or 2 where `verify` found a difference.
/// @throws InputError naming what is wrong with the words or the files.
int table_command(std::vector<std::string> words);

}  // namespace nas
