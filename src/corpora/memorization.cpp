#include <string>

#include "core/seed.hpp"
#include "data/corpus.hpp"
#include "data/drawn_corpus.hpp"

namespace nas {

namespace {

// Every example of every split has the same value for a key, so a value is known from training
// alone. It is asked for at the token behind the key, which is the same for all keys.
Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  require_even_context("memorization", context, 2);
  const auto vocabulary = settings.get<std::int64_t>("vocabulary");
  const std::int64_t keys = (vocabulary - 1) / 2;
  const auto seed = static_cast<std::uint64_t>(settings.get<std::int64_t>("seed"));
  RandomEngine of_values(derive_seed(seed, 0, "memorization", "values"));
  const auto value_of = draw_distinct(of_values, keys, vocabulary - 1, keys);
  Corpus corpus;
  corpus.name = "memorization";
  corpus.description = "the fixed values of " + std::to_string(keys) + " keys, " +
                       std::to_string(context / 2) + " of them asked for in " +
                       std::to_string(context) + " tokens";
  corpus.vocabulary = vocabulary;
  draw_splits(corpus, settings, context, [&](RandomEngine& random, const Example& example) {
    for (std::size_t t = 0; t < example.input.size(); t += 2) {
      const std::int64_t key = random.below(keys);
      example.input[t] = static_cast<std::int32_t>(key);
      example.input[t + 1] = static_cast<std::int32_t>(vocabulary - 1);
      example.target[t + 1] = value_of[static_cast<std::size_t>(key)];
    }
  });
  corpus.chance = uniform_chance("the values", keys);
  return corpus;
}

NAS_REGISTER_CORPUS(
    {.key = "memorization",
     .summary = "keys whose values are the same in all examples, and in none of them shown (Poli "
                "et al. 2024, MAD, arXiv:2403.17844)",
     .settings = with_example_settings(
         {{.name = "vocabulary",
           .default_value = std::int64_t{256},
           .help = "V ids: (V-1)/2 keys, rounded down, then values, then the sign that asks",
           .min = 4,
           .max = 65536}},
         256, 1280),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
