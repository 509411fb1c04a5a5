#include "nn/feed_forward.hpp"

namespace nas::nn {

FeedForwardRegistry& feed_forwards() {
  static FeedForwardRegistry registry("ffn");
  return registry;
}

}  // namespace nas::nn
