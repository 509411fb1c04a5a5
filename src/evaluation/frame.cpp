#include "evaluation/frame.hpp"

#include <cstdint>

namespace nas {

Architecture frame_of(const Parameters& model, Semantics semantics, bool match_parameters,
                      const ModelGenes& section) {
  return {
      .stack = {Mechanism{}.set("attention_dropout", 0.0)},  // none where a space has no gene of it
      .semantics = semantics,
      .layers = model.get<std::int64_t>("layers"),
      .width = model.get<std::int64_t>("width"),
      .heads = model.get<std::int64_t>("heads"),
      .context = model.get<std::int64_t>("context"),
      .vocabulary = 1,
      .feed_forward = model.get<std::int64_t>("feed_forward"),
      .match_parameters = match_parameters,
      .dropout = model.get<double>("dropout"),
      .section = section};
}

}  // namespace nas
