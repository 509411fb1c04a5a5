#include "nn/mixers.hpp"

namespace nas::nn {

MixerRegistry& mixers() {
  static MixerRegistry registry("mixer");
  return registry;
}

}  // namespace nas::nn
