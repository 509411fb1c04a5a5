#include "evaluation/frame.hpp"

#include <cstdint>

namespace nas {

Architecture frame_of(const Parameters& model, Semantics semantics, bool match_parameters) {
  Architecture frame;
  frame.semantics = semantics;
  frame.layers = model.get<std::int64_t>("layers");
  frame.width = model.get<std::int64_t>("width");
  frame.heads = model.get<std::int64_t>("heads");
  frame.context = model.get<std::int64_t>("context");
  frame.vocabulary = 1;
  frame.feed_forward = model.get<std::int64_t>("feed_forward");
  frame.match_parameters = match_parameters;
  frame.dropout = model.get<double>("dropout");
  return frame;
}

}  // namespace nas
