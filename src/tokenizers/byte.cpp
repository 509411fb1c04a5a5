#include "data/tokenizer.hpp"

namespace nas {

namespace {

/// Ids are the bytes of a text, the end of a line included.
class Bytes final : public Tokenizer {
 public:
  [[nodiscard]] std::int64_t size() const override { return 256; }
  [[nodiscard]] std::int32_t first() const override { return '\n'; }
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override {
    ids.reserve(ids.size() + text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  [[nodiscard]] std::string decode(const std::vector<std::int64_t>& ids) const override {
    return {ids.begin(), ids.end()};
  }
};

TokenizerKind bytes() {
  const auto make = [](const auto&, const auto&) { return std::make_shared<const Bytes>(); };
  return {.many = "bytes", .train = make, .read = make, .count = [](std::string_view text) {
            return text.size();
          }};
}

NAS_REGISTER_TOKENIZER({.key = "byte",
                        .summary = "the 256 bytes: of any text, without unknowns",
                        .settings = {},
                        .file = __FILE__},
                       bytes);

}  // namespace

}  // namespace nas
