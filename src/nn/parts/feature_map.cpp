#include "nn/parts/feature_map.hpp"

namespace nas::nn {

FeatureMapRegistry& feature_maps() {
  static FeatureMapRegistry registry("feature map");
  return registry;
}

}  // namespace nas::nn
