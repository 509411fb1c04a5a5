#pragma once

#include <stdexcept>

namespace nas {

/// Thrown in a process without LibTorch that is asked for more than words: help, lists, what is
/// wrong with a command. The program then begins anew with LibTorch (cli/start.hpp), so that
/// nothing is printed or written before. No std::exception: nobody between handles it.
struct BeyondWords {};

/// From now on this process has words only.
void have_words_only();

/// To be called where an answer to the user ends and work begins.
/// @throws BeyondWords in a process that has words only.
void require_more_than_words();

/// In place of a function that needs LibTorch.
/// @throws BeyondWords in a process that has words only, else std::logic_error.
template <class Result, class... Args>
Result beyond_words(Args... /*arguments*/) {
  require_more_than_words();
  throw std::logic_error("words alone were registered beside LibTorch");
}

}  // namespace nas
