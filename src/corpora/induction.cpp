#include <string>

#include "core/seed.hpp"
#include "core/setting_forms.hpp"
#include "data/corpus.hpp"
#include "data/drawn_corpus.hpp"

namespace nas {

namespace {

// Tokens are uniform over the vocabulary for one period, then repeat. The period is drawn for each
// example, so that its place does not tell the answer. At the first scored position one token has
// been seen again.
Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  if (context < 4) refuse_setting("induction", "model.context", context, "at least 4");
  const auto vocabulary = settings.get<std::int64_t>("vocabulary");
  const std::int64_t shortest = (context + 3) / 4;
  const std::int64_t longest = context / 2;
  Corpus corpus;
  corpus.name = "induction";
  corpus.description = "random tokens with a period of " + std::to_string(shortest) + " to " +
                       std::to_string(longest) + " in " + std::to_string(context) +
                       " tokens, vocabulary " + std::to_string(vocabulary);
  corpus.vocabulary = vocabulary;
  draw_splits(corpus, settings, context, [&](RandomEngine& random, const Example& example) {
    const auto period = static_cast<std::size_t>(shortest + random.below(longest - shortest + 1));
    for (std::size_t t = 0; t < example.input.size(); ++t) {
      example.input[t] = t < period ? static_cast<std::int32_t>(random.below(vocabulary))
                                    : example.input[t - period];
      if (t >= period) example.target[t] = example.input[t + 1 - period];
    }
  });
  corpus.chance = uniform_chance("all tokens", vocabulary);
  return corpus;
}

NAS_REGISTER_CORPUS(
    {.key = "induction",
     .summary = "random tokens with a period, T/4 to T/2 by example, of the context T; scored from "
                "the second period on (Olsson et al. 2022, arXiv:2209.11895)",
     .settings = with_example_settings(
         {setting::integer("vocabulary", 32, 2, 1e6, "different tokens")}, 20000, 1000),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
