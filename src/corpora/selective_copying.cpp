#include <algorithm>
#include <string>
#include <vector>

#include "core/seed.hpp"
#include "core/setting_forms.hpp"
#include "data/corpus.hpp"
#include "data/drawn_corpus.hpp"

namespace nas {

namespace {

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  const auto vocabulary = settings.get<std::int64_t>("vocabulary");
  const auto tokens = settings.get<std::int64_t>("tokens");
  if (tokens > (context - 2) / 2) {
    refuse_setting("selective_copying", "data.tokens", tokens,
                   "less than half of model.context - 1 (" + std::to_string(context - 1) + ")");
  }
  const std::int64_t blanks = context - 2 * tokens - 1;
  const auto blank = static_cast<std::int32_t>(vocabulary - 2);
  const auto copy = static_cast<std::int32_t>(vocabulary - 1);
  Corpus corpus;
  corpus.name = "selective_copying";
  corpus.description = "copying " + std::to_string(tokens) + " tokens out of " +
                       std::to_string(blanks) + " blanks, " + std::to_string(context) +
                       " tokens in all, vocabulary " + std::to_string(vocabulary);
  corpus.vocabulary = vocabulary;
  draw_splits(corpus, settings, context, [&](RandomEngine& random, const Example& example) {
    // Each blank stands before one of the tokens, so none between the last and the sign to copy.
    std::vector<std::size_t> before(static_cast<std::size_t>(tokens));
    for (std::int64_t i = 0; i < blanks; ++i)
      ++before[static_cast<std::size_t>(random.below(tokens))];
    std::fill(example.input.begin(), example.input.end(), blank);
    std::size_t place = 0;
    auto answer = example.target.end() - tokens;
    for (const std::size_t num_blanks : before) {
      const auto token = static_cast<std::int32_t>(random.below(vocabulary - 2));
      place += num_blanks;
      example.input[place++] = token;
      *answer++ = token;
    }
    example.input[place] = copy;
  });
  corpus.chance = uniform_chance("the tokens", vocabulary - 2);
  return corpus;
}

NAS_REGISTER_CORPUS(
    {.key = "selective_copying",
     .summary = "tokens among blanks, to be written in their order at the end (Poli et al. 2024, "
                "MAD, arXiv:2403.17844)",
     .settings = with_example_settings(
         {setting::integer("vocabulary", 16, 4, 1e6,
                           "ids: tokens, then the blank and the sign to copy"),
          setting::integer("tokens", 16, 1,
                           "n tokens to copy; the context is longer than 2 n + 1")},
         12800, 1280),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
