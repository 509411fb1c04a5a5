#include <cmath>

#include "search/objective.hpp"

namespace nas {
namespace {

Objective bits_per_byte(const Parameters& /*settings*/) {
  return {
      .unit = "bit",
      .trained = [](const Evaluation& evaluation) { return evaluation.values.at("bits_per_byte"); },
      .range = [](const nlohmann::json& facts) -> std::optional<Range> {
        const double bytes = facts.value("bytes_per_token", 0.0);
        const auto perplexity = expected_perplexity(facts);
        if (bytes <= 0.0 || !perplexity) return std::nullopt;
        return Range{.best = 0.0, .worst = std::log2(perplexity->worst) / bytes};
      },
      .unavailable = [](const nlohmann::json& facts) -> std::string {
        if (facts.value("bytes_per_token", 0.0) > 0.0) return {};
        return "the corpus " + facts.value("corpus", "") + " is no text, its tokens have no bytes";
      }};
}

NAS_REGISTER_OBJECTIVE({.key = "bits_per_byte",
                        .summary = "validation nll in bits over the bytes of the text, nll / (ln 2 "
                                   "bytes): comparable across vocabularies",
                        .settings = {},
                        .file = __FILE__},
                       bits_per_byte);

}  // namespace
}  // namespace nas
