#pragma once

#include <string>
#include <vector>

namespace nas {

/// What `nas-data info` says of a corpus that is made: `NAME [--context L] [SETTING=VALUE ...]`;
/// without words the corpora that there are, "NAME: SUMMARY" a line. @return the exit code.
/// @throws InputError naming what is wrong with the words or the data.
int corpus_info(std::vector<std::string> words);

}  // namespace nas
