#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace nas {

/// Deals the parts of a text (articles, sequences, sayings) to its splits in turn, so that what the
/// text is about is alike in all of them: of twenty parts the tenth goes to valid, the last to test.
class Shares {
 public:
  /// @param part  ends with the end of a line.
  void add(std::string_view part) {
    const auto place = count_++ % 20;
    texts_[place == 9 ? 1 : place == 19 ? 2 : 0] += part;
  }

  /// Writes train.txt, valid.txt and test.txt. @throws InputError that there are fewer than twenty
  /// parts, MachineError.
  void write(const std::filesystem::path& folder) const;

 private:
  std::array<std::string, 3> texts_;
  std::size_t count_ = 0;
};

/// The file of a name in a folder or one below it. @throws InputError if there is none.
std::filesystem::path file_below(const std::filesystem::path& folder, const std::string& name);

/// A text with U+FFFD for each byte that is in no character of UTF-8.
std::string as_utf8(std::string_view text);

}  // namespace nas
