#include "convert/probe.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/seed.hpp"
#include "core/shuffle.hpp"
#include "core/words.hpp"
#include "data/corpus.hpp"

namespace nas {

namespace {

using Tokens = std::vector<std::int64_t>;

/// Different ones.
Tokens drawn(std::size_t count, std::int64_t vocabulary, RandomEngine& random) {
  Tokens tokens;
  std::unordered_set<std::int64_t> seen;
  while (tokens.size() < count) {
    const auto token = random.below(vocabulary);
    if (seen.insert(token).second) tokens.push_back(token);
  }
  return tokens;
}

}  // namespace

Probe::Probe(std::string text) : text_(std::move(text)) {
  const auto brace = std::min(text_.find('{'), text_.size());
  kind_ = text_.substr(0, brace);
  const std::vector<std::string> kinds{"copy", "pairs", "needle"};
  const double number =
      text_.ends_with("}")
          ? number_in(std::string_view(text_).substr(brace + 1, text_.size() - brace - 2))
                .value_or(0.0)
          : 0.0;
  if (!holds(kinds, kind_) || !(number >= 2 && number <= 65536)) {
    throw InputError("probe " + text_ +
                     ", must be one of copy{n}, pairs{n}, needle{n}, n in [2, 65536]");
  }
  size_ = static_cast<std::int64_t>(number);
}

std::int64_t Probe::tokens() const {
  return kind_ == "copy" ? 2 * size_ : kind_ == "pairs" ? 4 * size_ : size_ + 3;
}

Sample Probe::draw(std::uint64_t seed, std::int64_t vocabulary) const {
  RandomEngine random(seed);
  const auto n = static_cast<std::size_t>(size_);
  Tokens tokens, targets;
  const auto append = [&](std::int64_t token, bool asked) {
    if (!targets.empty()) targets.back() = asked ? token : kNotScored;
    tokens.push_back(token);
    targets.push_back(kNotScored);
  };
  if (kind_ == "copy") {
    const auto all = drawn(n, vocabulary, random);
    for (const auto token : all) append(token, false);
    for (std::size_t i = 0; i < n; ++i) append(all[i], i > 0);
  } else if (kind_ == "pairs") {
    auto keys = drawn(2 * n, vocabulary, random);
    std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
    for (std::size_t i = 0; i < n; ++i) pairs.emplace_back(keys[i], keys[n + i]);
    for (int time = 0; time < 2; ++time) {
      for (const auto& [key, value] : pairs) {
        append(key, false);
        append(value, time == 1);
      }
      shuffle(pairs, random);
    }
  } else {
    auto all = drawn(n + 2, vocabulary, random);
    const auto place = random.below(size_);
    const auto key = all[n], value = all[n + 1];
    all.resize(n);
    all.insert(all.begin() + place, {key, value});
    for (const auto token : all) append(token, false);
    append(key, false);
    // The value itself is no input.
    targets.back() = value;
  }
  return {at::tensor(tokens, at::TensorOptions(at::kLong)),
          at::tensor(targets, at::TensorOptions(at::kLong))};
}

}  // namespace nas
