#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/format.hpp"
#include "core/seed.hpp"
#include "core/setting_forms.hpp"
#include "data/corpus.hpp"
#include "data/drawn_corpus.hpp"

namespace nas {

namespace {

// Polya's urns: a value that was drawn n_v times of the n from this urn is drawn with probability
// (n_v + a) / (n + V a), as if the urn's contents were of Dirichlet(a). So the mean of -ln of that is
// the least loss that can be, whatever is computed from what came before.
Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  require_even_context("urns", context, 4);
  const auto keys = settings.get<std::int64_t>("keys");
  const auto values = settings.get<std::int64_t>("values");
  const auto weight = settings.get<double>("weight");
  Corpus corpus;
  corpus.name = "urns";
  corpus.vocabulary = keys + values;
  double least = 0.0;
  double draws = 0.0;
  draw_splits(corpus, settings, context, [&](RandomEngine& random, const Example& example) {
    std::vector<std::vector<std::int64_t>> drawn(static_cast<std::size_t>(keys));
    for (std::size_t t = 0; t < example.input.size(); t += 2, ++draws) {
      const auto key = random.below(keys);
      auto& urn = drawn[static_cast<std::size_t>(key)];
      const auto n = static_cast<double>(urn.size());
      const double all = n + static_cast<double>(values) * weight;
      const bool again = random.uniform() * all < n;
      urn.push_back(again ? urn[static_cast<std::size_t>(random.below(std::ssize(urn)))]
                          : random.below(values));
      const auto times = static_cast<double>(std::count(urn.begin(), urn.end(), urn.back())) - 1.0;
      least -= std::log((times + weight) / all);
      example.input[t] = static_cast<std::int32_t>(key);
      example.input[t + 1] = static_cast<std::int32_t>(keys + urn.back());
      example.target[t] = example.input[t + 1];
    }
  });
  corpus.least_nll = least / draws;
  corpus.description = "draws of " + std::to_string(values) + " values from " +
                       std::to_string(keys) +
                       " urns of each example's own; least possible perplexity " +
                       shortest(std::round(1e3 * std::exp(corpus.least_nll)) / 1e3);
  corpus.chance = uniform_chance("the values", values);
  return corpus;
}

NAS_REGISTER_CORPUS(
    {.key = "urns",
     .summary = "draws from urns of each example's own: their contents are learned from the draws "
                "before (of Markov chains: Edelman et al. 2024, arXiv:2402.11004)",
     .settings = with_example_settings(
         {setting::integer("keys", 4, 1, 1e6,
                           "K urns, ids 0 .. K-1; one stands before each draw, uniform"),
          setting::integer("values", 8, 2, 1e6, "V values, ids K .. K+V-1"),
          setting::at_most(
              1e6, setting::positive(setting::number(
                       "weight", 0.05, 0,
                       "a: contents of urns are of Dirichlet(a), few values where it is small")))},
         20000, 1000),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
