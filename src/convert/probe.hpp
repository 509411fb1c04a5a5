#pragma once

#include <cstdint>
#include <string>

#include <torch/types.h>

namespace nas {

/// A sequence of tokens, and what is asked of it.
struct Sample {
  torch::Tensor tokens;   ///< (T) int64
  torch::Tensor targets;  ///< (T) int64, the next token; kNotScored where nothing is asked
};

/// What a model can answer only from tokens far before, drawn by a seed from a vocabulary:
///
///   copy{n}    n random tokens, twice; asked are those of the second time but the first, each n tokens behind
///   pairs{n}   n different keys, each with a value, then all keys in another order; asked are their values
///   needle{n}  a key and its value among n random tokens, and the key again at the end; asked is the value
///
/// @throws InputError "probe ..., must be ..." unless the text is one of these with n in [2, 65536].
class Probe {
 public:
  explicit Probe(std::string text);
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::int64_t tokens() const;
  /// @param vocabulary  at least 2 n + 2.
  [[nodiscard]] Sample draw(std::uint64_t seed, std::int64_t vocabulary) const;

 private:
  std::string text_, kind_;
  std::int64_t size_ = 0;
};

}  // namespace nas
