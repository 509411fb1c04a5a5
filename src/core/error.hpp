#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Something the user gave is wrong: text = where, what was given, what is allowed. Programs print
/// it and exit with 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user asked to stop (Ctrl-C, SIGTERM). Not an error: what was finished is kept.
class StopRequested : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "stopped on request"; }
};

/// The machine failed, neither the user's input nor the program: a full disk, a file that cannot be
/// read or written, a file that vanished. What was finished before is kept, unless the text says
/// otherwise; programs print it and exit with 75 (EX_TEMPFAIL).
class MachineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A training run needed more memory than evaluation.memory_limit allows.
class MemoryLimitExceeded : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// @throws InputError "NAME = VALUE, must be in [LO, HI]" unless lo <= value <= hi (NaN is
/// refused).
void require_in_range(std::string_view name, double value, double lo, double hi);

/// @return the candidate with the least edit distance to `word` among those within a third of its
/// length (at least 2 edits are always allowed), those that it abbreviates, as "random" and "lr" do
/// "random_search" and "learning_rate", and those that it begins with. Empty if there is none.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// @return "; did you mean X?", for the end of a message, X the nearest; empty if nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// How the message on an unknown word ends: "; did you mean X? Known: W, X, Y", or ", known: W, X, Y" where nothing is near.
std::string known_text(std::string_view word, const std::vector<std::string>& known);

/// Whether a text is UTF-8, as all that JSON holds must be: records, and lines of workers.
bool is_utf8(const std::string& text);

/// @return the items joined by ", " (or another separator).
std::string join(const std::vector<std::string>& items, std::string_view separator = ", ");

}  // namespace nas
