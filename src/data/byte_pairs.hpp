#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/pretokens.hpp"
#include "data/tokenizer.hpp"

namespace nas {

using TokenPair = std::pair<std::int32_t, std::int32_t>;

/// A pair as one number, in the order of pairs.
inline std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32U | static_cast<std::uint32_t>(right);
}
struct PairKeyHash {
  std::size_t operator()(std::uint64_t pair) const {
    return static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15U) >> 20U);
  }
};

/// Byte-level byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909; on bytes: Radford et al.
/// 2019). A text is cut into pre-tokens; the bytes of each are joined pair by pair, the pair of the
/// lowest rank first, of equal ones the leftmost. Any text has ids, none is unknown.
class BytePairs final : public Tokenizer {
 public:
  struct Merge {
    TokenPair pair;
    std::int32_t rank;
  };
  /// @param tokens  bytes of each id; every single byte is among them, no two are alike.
  /// @param merges  whose joined bytes are a token.
  BytePairs(std::vector<std::string> tokens, std::vector<Merge> merges, PretokenRule rule);

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::int32_t first() const override { return bytes_['\n']; }
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override;
  [[nodiscard]] std::string decode(const std::vector<std::int64_t>& ids) const override;
  /// @return tokenizer.json as Hugging Face's tokenizers reads it: model BPE behind pre-tokenizer
  /// ByteLevel.
  [[nodiscard]] std::string file() const override;

 private:
  struct Joined {
    std::int32_t rank;
    std::int32_t id;
  };
  class Joiner;

  std::vector<std::string> tokens_;
  std::vector<std::int32_t> bytes_;  ///< id of each byte
  std::vector<TokenPair> merges_;    ///< by rank
  std::unordered_map<std::uint64_t, Joined, PairKeyHash> joined_;
  PretokenRule rule_;
};

/// Learns merges of the pairs that are most frequent in a text: at each step that of the highest
/// count, of equal counts the one of the lowest ids, first id first, until there are `size` tokens or
/// no pair is there twice. Ids are the bytes in GPT-2's order (printable ones first), then the joined
/// tokens in order. The result is that of tokenizers' BpeTrainer with the alphabet of ByteLevel,
/// min_frequency 2 and no special tokens.
///
/// Cost: one pass that counts different pre-tokens; then, with a heap of pairs, each merge visits the
/// pre-tokens that have its pair.
///
/// @param size  number of ids, at least 256; 0 = as many as there are.
std::shared_ptr<const BytePairs> train_byte_pairs(std::string_view text, std::int64_t size,
                                                  PretokenRule rule);

/// @param file  tokenizer.json of model BPE with bytes as its alphabet; or vocab.json (or
/// NAME-vocab.json), beside which merges.txt (NAME-merges.txt) is; or NAME.tiktoken, ranks in
/// base64, whose pre-tokens are those of cl100k.
/// @throws InputError naming the file and what is wrong with it.
std::shared_ptr<const BytePairs> read_byte_pairs_file(const std::filesystem::path& file);

/// @param json  bytes of a tokenizer.json.   @throws InputError saying what is wrong with it.
std::shared_ptr<const BytePairs> read_byte_pairs(const std::string& json);

/// @return the character that stands for a byte where tokens are written as text (GPT-2's table).
char32_t character_of_byte(unsigned char byte);

/// @return the bytes in the order of these characters, which is that of their ids.
const std::vector<unsigned char>& bytes_in_order();

}  // namespace nas
