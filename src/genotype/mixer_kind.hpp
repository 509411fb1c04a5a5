#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/visibility.hpp"
#include "genotype/architecture.hpp"
#include "genotype/component.hpp"

namespace NAS_PUBLIC nas {

class LayerRules;

/// What one layer's mixer takes.
struct MixerCosts {
  std::int64_t parameters = 0;
  double flops = 0.0;            ///< of one sequence of T tokens
  std::int64_t state_bytes = 0;  ///< after T tokens
};

/// The costs that the description of a mixer states (Component of gene mixer).
MixerCosts described_costs(const Mechanism& layer, const AttentionShape& shape);
/// The values of all genes of a layer's kind: no two kinds of layers have one key.
std::string key_of_genes(const Mechanism& layer);
/// Numbers that a mixer without projections keeps: 0.
double no_values(const Architecture& architecture, const Mechanism& layer);

/// What is known of a mixer without building it: which genes its layers have, which of these have no effect beside
/// others, which layers there cannot be, and what a layer costs. What computes it has the same key (nn/mixers.hpp). A
/// kind that nothing computes has names and costs, so that its models can be planned.
struct MixerKind {
  /// Genes by the names of their slots, each with the options that the mixer has beside its own
  /// (Component::mixer); none named: all.
  using Genes = std::vector<std::pair<std::string, std::vector<std::string>>>;

  std::string key;  ///< of gene mixer
  /// Besides mixer, ffn and ratio, which all layers have, and sizes of its own. Options that it has bring
  /// theirs (Component::sizes).
  Genes genes{};
  /// Sizes of its own; of its options those that are known without their modules.
  std::vector<Slot> sizes{};
  /// Name of its parameters within a layer; empty: the key.
  std::string scope{};
  /// Whether its layers have maps A, o_i = sum_j A_ij v_j, which they record when a pass asks.
  bool has_maps = false;

  /// Sets what a layer has where nothing is said, where it is not what a Mechanism begins with.
  void (*set_defaults)(Mechanism& layer) = [](Mechanism&) {};
  /// Voids genes that have no effect beside others. Called when genes and options that the mixer does not have, and
  /// genes that components void, are at their defaults already; sizes whose owner is not chosen are voided afterwards.
  void (*apply_rules)(LayerRules& rules) = [](LayerRules&) {};
  /// @throws InputError naming gene, value and rule if there is no such layer, which is canonical.
  void (*require_valid)(const Architecture& architecture,
                        const Mechanism& layer) = [](const Architecture&, const Mechanism&) {};
  /// Says which keys a query sees, and which are kept: AttentionShape::seen, repeats and cap.
  void (*set_sight)(const Mechanism& layer, AttentionShape& shape) = [](const Mechanism&,
                                                                        AttentionShape&) {};
  /// @param shape  of the layer, T = shape.context.
  /// @throws InputError if a component of the layer has no description.
  MixerCosts (*costs)(const Mechanism& layer, const AttentionShape& shape) = described_costs;
  /// Numbers that training keeps of each token at least: as many as the rows of the mixer's matrices
  /// of D columns. For any sizes, also such that no model can have.
  double (*least_values)(const Architecture& architecture, const Mechanism& layer) = no_values;
  /// Equal for two layers, in canonical form, that one module computes in an array of models: their
  /// parameters have the same shapes, and are computed in the same way.
  std::string (*shape_key)(const Mechanism& layer) = key_of_genes;
  /// Brings a layer whose sizes are at most Slot::small to a model D wide with H heads, such that each
  /// of its options still does something.
  /// @param heads  of the layer before.
  void (*shrink)(Mechanism& layer, std::int64_t heads, std::int64_t small_width,
                 std::int64_t small_heads) = [](Mechanism& layer, std::int64_t, std::int64_t,
                                                std::int64_t) { layer.set("heads", 0); };
  /// Of a mixer with a size that is_text(): such a text as layers hold it. @throws InputError naming gene, text and rule.
  std::string (*read_text)(const Slot& gene, std::string_view text) = nullptr;
  /// Layers of other mixers whose sum a layer is, with heads of their own; none: it is no sum.
  /// @param shape  of the layer.
  std::vector<Mechanism> (*parts)(const Mechanism& layer, const AttentionShape& shape) =
      [](const Mechanism&, const AttentionShape&) { return std::vector<Mechanism>(); };
};

/// The kinds of mixers, by key.
class MixerKinds {
 public:
  /// See note_registration(). @return whether the key was free.
  bool add(MixerKind kind);
  [[nodiscard]] bool contains(std::string_view key) const { return kinds_.contains(key); }
  /// @throws InputError "unknown mixer 'x'; did you mean ...? Known: ..."
  [[nodiscard]] const MixerKind& at(std::string_view key) const;
  /// @return all keys: those that the space names in its order, then others, sorted.
  [[nodiscard]] std::vector<std::string> keys() const;

 private:
  std::map<std::string, MixerKind, std::less<>> kinds_;
};

MixerKinds& mixer_kinds();

/// Whether a gene is a text that its mixer reads (MixerKind::read_text): a word without choices.
bool is_text(const Slot& slot);
/// A text as layers hold it. @throws InputError if it is none of the gene's.
std::string read_text(const Slot& slot, std::string_view text);
/// A layer's MixerKind::parts, of which all that is said of layers holds; itself where it has none.
std::vector<Mechanism> parts_of(const Mechanism& layer);

/// The options of a gene that layers of a mixer have beside the mixer's own, none named means all;
/// nullptr: not the gene.
const std::vector<std::string>* options_of(std::string_view mixer, const Slot& slot);
/// Whether layers of a mixer have a gene.
bool has_gene(std::string_view mixer, const Slot& slot);
/// Whether layers of a mixer have an option of a gene: never one that is another mixer's own.
bool has_option(std::string_view mixer, const Slot& slot, std::string_view option);

// NAS_REGISTER_MIXER_KIND(.key = "conv", ...): designated initialisers of nas::MixerKind. One a file.
#define NAS_REGISTER_MIXER_KIND(...)            \
  [[maybe_unused]] const bool kKindRegistered = \
      ::nas::mixer_kinds().add(::nas::MixerKind{__VA_ARGS__})

}  // namespace nas
