#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "core/seed.hpp"
#include "core/setting_forms.hpp"
#include "data/corpus_facts.hpp"
#include "data/drawn_corpus.hpp"

namespace nas {

namespace {

// Ids: the digits, then these.
constexpr std::int32_t kMin = 10;
constexpr std::int32_t kMax = 11;  // 12: the median
constexpr std::int32_t kSum = 13;
constexpr std::int32_t kEnd = 14;
constexpr std::int32_t kPadding = 15;
constexpr std::int64_t kVocabulary = 16;
constexpr double kOperatorProbability = 0.25;

using Digits = std::vector<std::int32_t>;

std::int32_t value_of(std::int32_t operation, Digits arguments) {
  if (operation == kSum) return std::accumulate(arguments.begin(), arguments.end(), 0) % 10;
  std::sort(arguments.begin(), arguments.end());
  if (operation == kMin) return arguments.front();
  if (operation == kMax) return arguments.back();
  // The mean of the middle two, or twice the middle one, without its fraction.
  const std::size_t last = arguments.size() - 1;
  return (arguments[last / 2] + arguments[last - last / 2]) / 2;
}

struct Size {
  std::int64_t depth;
  std::int64_t max_arguments;
  std::int64_t max_length;
};

// Draws an expression at `depth` behind the tokens. @return its value; anything once the tokens are
// too many.
std::int32_t draw_expression(RandomEngine& random, const Size& size, std::int64_t depth,
                             std::vector<std::int32_t>& tokens) {
  if (std::ssize(tokens) > size.max_length) return 0;
  if (depth == size.depth || random.uniform() >= kOperatorProbability) {
    tokens.push_back(static_cast<std::int32_t>(random.below(10)));
    return tokens.back();
  }
  const auto operation = static_cast<std::int32_t>(kMin + random.below(kSum - kMin + 1));
  tokens.push_back(operation);
  Digits arguments(static_cast<std::size_t>(2 + random.below(size.max_arguments - 1)));
  for (auto& argument : arguments) argument = draw_expression(random, size, depth + 1, tokens);
  tokens.push_back(kEnd);
  return value_of(operation, std::move(arguments));
}

// Draws until the length fits, as those who made the task do.
void draw_example(RandomEngine& random, const Size& size, std::int64_t min_length,
                  const Example& example) {
  constexpr int kTries = 10'000'000;
  std::vector<std::int32_t> tokens;
  for (int tries = 0; tries < kTries; ++tries) {
    tokens.clear();
    const std::int32_t value = draw_expression(random, size, 1, tokens);
    if (std::ssize(tokens) < min_length || std::ssize(tokens) > size.max_length) continue;
    std::fill(example.input.begin(), example.input.end(), kPadding);
    std::copy(tokens.begin(), tokens.end(), example.input.begin());
    example.target[tokens.size() - 1] = value;
    return;
  }
  refuse_setting("listops", "data.min_length", min_length,
                 "what some expressions of data.depth = " + std::to_string(size.depth) +
                     " and data.max_arguments = " + std::to_string(size.max_arguments) +
                     " reach: none of " + std::to_string(kTries) + " had as many to " +
                     std::to_string(size.max_length) + " tokens");
}

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  const Size size{.depth = settings.get<std::int64_t>("depth"),
                  .max_arguments = settings.get<std::int64_t>("max_arguments"),
                  .max_length = context};
  const auto min_length = settings.get<std::int64_t>("min_length");
  if (min_length > context) {
    refuse_setting("listops", "data.min_length", min_length,
                   "at most model.context (" + std::to_string(context) + ")");
  }
  Corpus corpus;
  corpus.name = "listops";
  corpus.description = "expressions of lists of digits, " + std::to_string(min_length) + " to " +
                       std::to_string(context) + " tokens, up to " +
                       std::to_string(size.max_arguments) + " arguments, depth " +
                       std::to_string(size.depth);
  corpus.vocabulary = kVocabulary;
  draw_splits(corpus, settings, context, [&](RandomEngine& random, const Example& example) {
    draw_example(random, size, min_length, example);
  });
  corpus.chance = label_chance(corpus.train, 10);
  return corpus;
}

NAS_REGISTER_CORPUS(
    {.key = "listops",
     .summary = "the value of a nested expression (minimum, maximum, median, sum modulo 10 of "
                "digits), read at its last token (Nangia and Bowman 2018; Tay et al. 2020, Long "
                "Range Arena, arXiv:2011.04006)",
     .settings = with_example_settings(
         {setting::integer(
              "depth", 4, 2, 100,
              "of the deepest digits; an expression above it is a list with probability 1/4"),
          setting::integer("max_arguments", 5, 2, 1000, "a list has 2 to so many arguments"),
          setting::integer(
              "min_length", 32, 1,
              "least tokens of an expression, the ends of lists among them; at most the context")},
         20000, 1000),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
