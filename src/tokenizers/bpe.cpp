#include "core/error.hpp"
#include "data/byte_pairs.hpp"

namespace nas {

namespace {

constexpr std::int64_t kLeast = 257;  // the bytes and a pair

std::shared_ptr<const Tokenizer> train(std::string_view text, const Parameters& settings) {
  if (const auto& file = settings.get<std::string>("tokenizer_file"); !file.empty()) {
    return read_byte_pairs_file(file);
  }
  const auto size = settings.get<std::int64_t>("vocabulary");
  if (size != 0 && size < kLeast) {
    throw InputError("data.vocabulary = " + std::to_string(size) +
                     ", must be 0 (every pair that is there twice) or at least " +
                     std::to_string(kLeast));
  }
  const bool gpt2 = settings.get<std::string>("pretokens") == "gpt2";
  return train_byte_pairs(text, size, gpt2 ? PretokenRule::gpt2 : PretokenRule::cl100k);
}

TokenizerKind byte_pairs() {
  return {.many = "byte pairs and bytes",
          .file = "tokenizer.json",
          .train = train,
          .read = [](const std::string& file, bool) { return read_byte_pairs(file); }};
}

NAS_REGISTER_TOKENIZER(
    {.key = "bpe",
     .summary = "byte pairs that are frequent in the training split, and the 256 bytes: of any "
                "text, without unknowns (Sennrich et al. 2016, arXiv:1508.07909)",
     .settings = {{.name = "pretokens",
                   .default_value = std::string("gpt2"),
                   .help = "of bpe: where a text is cut before pairs are joined, as GPT-2 or "
                           "tiktoken's cl100k does; a file has its own",
                   .choices = {"gpt2", "cl100k"}},
                  {.name = "tokenizer_file",
                   .default_value = std::string(),
                   .help = "of bpe: a published tokenizer in place of a learned one, whatever "
                           "vocabulary is: tokenizer.json, vocab.json with merges.txt beside it, "
                           "or NAME.tiktoken",
                   .names_file = true}},
     .file = __FILE__},
    byte_pairs);

}  // namespace

}  // namespace nas
