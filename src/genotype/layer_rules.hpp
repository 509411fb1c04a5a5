#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "genotype/architecture.hpp"
#include "genotype/component.hpp"
#include "genotype/mixer_kind.hpp"

namespace nas {

/// The rules of the canonical form for one layer, as they are applied.
class LayerRules {
 public:
  /// @param voided  called for each gene that has no effect, whatever its value.
  LayerRules(const Architecture& architecture, Mechanism& layer,
             const std::function<void(const Slot&)>& voided);

  void apply();

  [[nodiscard]] const Architecture& architecture() const { return architecture_; }
  [[nodiscard]] Mechanism& layer() { return layer_; }
  [[nodiscard]] std::int64_t heads() const;
  [[nodiscard]] std::int64_t head_width() const;

  /// Genes that have no effect get their default.
  void clear(std::initializer_list<std::string_view> genes);
  /// A gene gets its default, but keeps its effect: it has other options.
  void set_default(std::string_view gene);
  /// The same where an option is the default by its sizes: these, too, keep their effect, since
  /// others make another option of it.
  void set_default_by_sizes(std::string_view gene);

 private:
  void clear(const Slot& slot);
  void what_the_mixer_lacks();
  void what_components_void();
  void sizes();

  const Architecture& architecture_;
  Mechanism& layer_;
  const Mechanism default_;
  const std::function<void(const Slot&)>& voided_;
  std::string_view default_by_sizes_;  ///< the gene that is so
};

/// Mixers whose layers have a gene (MixerKind), each with the options that it has: none named means
/// all. Nothing of a gene of the model.
std::vector<std::pair<std::string, std::vector<std::string>>> mixers_of(const Slot& slot);

/// Whether a configuration may list it: a size has an effect in some model that can be built, since a
/// mixer that has it, and an option beside which it has one, are. What is no size always may.
bool has_effect(const Slot& slot);

/// Whether a mechanism's choice has an effect: no other choice of the layer voids the slot.
bool is_active(const Slot& slot, const Mechanism& mechanism);

/// @return whether every component is causal (never so for sequence_mean with a normalization that
/// does not cancel it).
bool is_causal(const Mechanism& mechanism);

/// What a layer of a mixer has where nothing is said, but for the bias, which is the model's.
Mechanism default_layer(const Architecture& architecture, std::string_view mixer);

/// Brings a layer to its canonical form: genes that have no effect get their default, and so do
/// options that the mixer does not have.
/// @param voided  called for each gene that has no effect, whatever its value.
void apply_layer_rules(const Architecture& architecture, Mechanism& layer,
                       const std::function<void(const Slot&)>& voided);

/// An integer of at most `max` that a mixer declares, with Slot::small.
Slot integer(std::string name, std::string help, std::int64_t standard, double min,
             std::int64_t small, double max = kLargestSize);
/// What it declares of some options of a gene.
Slot of_options(std::string gene, std::vector<std::string> options, Slot size);

/// A layer with sizes of at most Slot::small.
Mechanism with_small_sizes(Mechanism layer);

/// For rules of mixers. @throws InputError "GENE = VALUE, must RULE" unless it holds.
void require(bool holds, const std::string& gene, const std::string& value,
             const std::string& rule);
/// @throws InputError unless position rope rotates an even number of so many entries of a head.
void require_rotatable(const Mechanism& layer, std::int64_t entries, double share);
/// @return the heads of a layer. @throws InputError unless they divide the width.
std::int64_t require_heads(const Architecture& architecture, const Mechanism& layer);

/// @throws InputError naming gene, value and rule if there is no such layer, which is canonical.
void require_valid_layer(const Architecture& architecture, const Mechanism& layer);

/// Whether later layers may read a layer's keys and values: it is attention with its own, which keeps more than the
/// query's own token, and they are neither its queries nor changed by later tokens.
bool gives_keys(const Mechanism& layer);
/// The layer whose keys layer i reads where its own are shared: the nearest earlier one that gives_keys; -1: none.
std::int64_t giver(const Architecture& architecture, std::int64_t i);
/// @throws InputError unless layer i, if its keys are shared, can read those of its giver: heads of as many keys and
/// the same width, and no key that the giver does not keep.
void require_giver(const Architecture& architecture, std::int64_t i);

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
