#pragma once

#include <string>
#include <utility>
#include <vector>

namespace nas {

/// A gene as names write it, and its value.
using Written = std::pair<std::string, std::string>;

/// A word that stands for a mixer with some genes.
struct Alias {
  std::string name, mixer;
  std::vector<Written> genes;
  /// What the published layer has and these genes do not say.
  std::string differs{};
};

/// Those that names may have.
const std::vector<Alias>& aliases();

}  // namespace nas
