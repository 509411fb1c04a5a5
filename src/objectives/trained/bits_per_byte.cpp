#include <cmath>

#include "core/format.hpp"
#include "search/measured_by.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

/// Why a text with unknown words has none; empty where it has.
///
/// An <unk> target costs the nats of one class, whatever the word, and no model says what its bytes
/// are: the fewer words a vocabulary has, the less its text would cost.
std::string unknown_words(const nlohmann::json& facts) {
  const double unknown = facts.value("valid_unknown_targets", 0.0);
  if (unknown == 0.0) return {};
  const double share = 100.0 * unknown / facts.value("valid_targets", 0.0);
  return shortest(std::round(10.0 * share) / 10.0) + " % of the validation targets are <unk> (" +
         shortest(unknown) + "), whose bytes no model predicts, so that the smallest vocabulary " +
         "would win; take data.unit = byte, a vocabulary that covers the validation text, or " +
         "perplexity at one vocabulary";
}

Objective bits_per_byte(const Parameters& /*settings*/) {
  return {
      .unit = "bit",
      .trained = [](const Evaluation& evaluation) { return quality(evaluation, "bits_per_byte"); },
      .range = [](const nlohmann::json& facts) -> std::optional<Range> {
        const double bytes = facts.value("bytes_per_token", 0.0);
        const auto perplexity = expected_perplexity(facts);
        if (bytes <= 0.0 || !perplexity) return std::nullopt;
        return Range{.best = 0.0, .worst = std::log2(perplexity->worst) / bytes};
      },
      .limits = {.least = 0.0},
      .unavailable = [](const nlohmann::json& facts) -> std::string {
        if (auto why = not_measured(facts, "bits_per_byte"); !why.empty()) return why;
        if (facts.value("bytes_per_token", 0.0) > 0.0) return unknown_words(facts);
        return "which bytes the scored tokens of the corpus " + facts.value("corpus", "") +
               " stand for is not known: it is no text, tokens lose a part of it (further blanks, "
               "ends of lines, what NFC composes), or training.validation_windows scores a part of "
               "it; take data.unit = byte, or perplexity at one vocabulary";
      }};
}

NAS_REGISTER_OBJECTIVE({.key = "bits_per_byte",
                        .summary = "validation nll in bits per byte of the text, nll / (ln 2 "
                                   "bytes): comparable across vocabularies whose tokens give the "
                                   "validation text back, refused for others",
                        .settings = {},
                        .file = __FILE__},
                       bits_per_byte);

}  // namespace
}  // namespace nas
