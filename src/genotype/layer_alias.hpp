#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "genotype/architecture.hpp"

namespace nas {

/// A gene as names write it, and its value.
using Written = std::pair<std::string, std::string>;

/// "{gene=value,...}"; empty of none.
std::string braces(const std::vector<Written>& genes);

/// A word that stands for a mixer with some genes.
struct Alias {
  std::string name, mixer;
  std::vector<Written> genes;
  /// What the published layer has and these genes do not say.
  std::string differs{};
};

/// Those that names may have.
const std::vector<Alias>& aliases();
/// nullptr: there is none of that name.
const Alias* alias_named(std::string_view word);
/// Whether modules compute it.
bool is_built(const Alias& alias);

/// A layer of a base that becomes a mixer, or what an alias stands for. Of another mixer it takes the genes of the
/// base's first layer with that mixer, but for the feed-forward layer; where there is none, it keeps what it says of
/// genes and options that both mixers have. An alias of a recurrent layer says all of update, decay and feature.
/// @throws InputError if there is no such mixer.
Mechanism changed_layer(const Architecture& base, const Mechanism& layer, std::string_view word);

}  // namespace nas
