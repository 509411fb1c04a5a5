#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/visibility.hpp"
#include "genotype/mechanism.hpp"

namespace NAS_PUBLIC nas {

/// Sizes of one attention layer. Letters: T = tokens of a sequence, D = width, H = heads, d = width of a head,
/// G = heads of keys and values, P = pairs of a query and a key that a head computes.
struct AttentionShape {
  std::int64_t width = 128;    ///< D
  std::int64_t heads = 4;      ///< H
  std::int64_t context = 128;  ///< T
  std::int64_t kv_heads = 0;   ///< G, divides H; 0: H
  std::int64_t of_head = 0;    ///< d; 0: D / H
  double seen = 0.0;           ///< keys that a head scores for a query at most; 0: T
  bool repeats = false;        ///< a key may be scored several times, so that `seen` may exceed T
  std::int64_t cap = 0;        ///< tokens whose keys and values are kept at most; 0: all
  std::int64_t uncapped = 0;   ///< of the G heads of keys, those of which all are kept and seen
  std::int64_t maps = 1;       ///< maps of weights in a head: 2 for maps difference
  std::int64_t hidden = 0;     ///< F, width of the feed-forward layer; 0: by its ratio
  std::int64_t keys = 0;       ///< d_k of a recurrent layer; 0: d
  std::int64_t features = 0;   ///< f of a recurrent layer, rows of a state (f, d); 0: d_k
  Mechanism sizes{};           ///< the layer, for the sizes of its options

  [[nodiscard]] std::int64_t head_width() const { return of_head > 0 ? of_head : width / heads; }
  /// H d, the width of all queries.
  [[nodiscard]] std::int64_t inner() const { return heads * head_width(); }
  /// d / M, entries of a query or a key in each of M maps.
  [[nodiscard]] std::int64_t score_width() const { return head_width() / maps; }
  [[nodiscard]] std::int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  /// G d, the width of all keys.
  [[nodiscard]] std::int64_t key_width() const { return key_heads() * head_width(); }
  /// The same of the keys that the layer makes itself.
  [[nodiscard]] std::int64_t own_key_width() const {
    return sizes.word("keys") == "shared" ? 0 : key_width();
  }
  /// Whether a head of keys is one of full_groups.
  [[nodiscard]] bool is_full(std::int64_t group) const {
    return group < 53 && (sizes.integer("full_groups") >> group & 1) == 1;
  }
  /// d_k and f of a recurrent layer.
  [[nodiscard]] std::int64_t key_entries() const { return keys > 0 ? keys : head_width(); }
  [[nodiscard]] std::int64_t state_rows() const { return features > 0 ? features : key_entries(); }
  /// So many operations at each of T tokens.
  [[nodiscard]] double at_each_token(std::int64_t operations) const {
    return static_cast<double>(context) * static_cast<double>(operations);
  }
  /// P = T min(T, keys seen).
  [[nodiscard]] double pairs() const {
    const auto tokens = static_cast<double>(context);
    return tokens * (seen > 0.0 && (repeats || seen < tokens) ? seen : tokens);
  }
  /// Q = P H M, scores of all heads and M maps.
  [[nodiscard]] double scores() const {
    return pairs() * static_cast<double>(heads) * static_cast<double>(maps);
  }
  /// Tokens whose keys and values are kept after T: min(T, cap).
  [[nodiscard]] std::int64_t kept() const { return cap > 0 && cap < context ? cap : context; }
  /// The same of all heads of keys together.
  [[nodiscard]] std::int64_t kept_by_heads() const {
    return key_heads() * kept() + uncapped * (context - kept());
  }
};

class LayerRules;

/// Torch-free description of one option of an attention gene: what the search, the plan and the documentation need to
/// know. The module that computes it is registered beside it, in the same file, in nn/attention.hpp's registries.
struct Component {
  std::string gene;  ///< "similarity", "position", "ffn", ...: a slot that is_component()
  /// The mixer whose layers alone have the option, and compute it; empty: what the registry of the
  /// gene's modules has under the key.
  std::string mixer{};
  std::string key;      ///< what it computes; unique within gene and mixer; = file stem
  std::string summary;  ///< formula and source, one line
  /// Genes that have no effect beside this option (relu_norm voids the temperature: it cancels).
  /// The canonical form sets them to their first option, so that equal functions have equal names.
  std::vector<std::string> voids{};
  /// Parameters that it adds to one layer, beyond q, k, v and output projections. Of a norm of the
  /// residual stream: those of one norm. Of a feed-forward layer: all, hidden width shape.hidden.
  std::function<std::int64_t(const AttentionShape&)> parameters = [](const AttentionShape&) {
    return std::int64_t{0};
  };
  /// Floating-point operations that it adds to one forward pass of one layer over one sequence of T
  /// tokens; a multiply-add counts 2, elementary functions 1, comparisons (maximum, sorting,
  /// selecting) nothing. For a similarity: all of the score computation.
  std::function<double(const AttentionShape&)> flops = [](const AttentionShape&) { return 0.0; };
  /// Bytes of inference state after T tokens, summed over them, that it adds to one layer's keys
  /// and values, which are 8 G d kept().
  std::function<std::int64_t(const AttentionShape&)> state_bytes = [](const AttentionShape&) {
    return std::int64_t{0};
  };
  /// Of a map of keys of a recurrent layer: f, the entries that it makes of one of d_k =
  /// shape.head_width(). Its parameters and operations are those of a shape of H d_k = shape.width.
  std::function<std::int64_t(const AttentionShape&)> features = [](const AttentionShape& shape) {
    return shape.head_width();
  };
  /// Sizes of its own, which have an effect beside it alone (Slot::owner is left out).
  std::vector<Slot> sizes{};
  /// Clears what has no effect beside its sizes.
  void (*apply_rules)(LayerRules& rules) = [](LayerRules&) {};
  /// Of an update of recurrent layers: a token erases what the state holds under a key, so that keys
  /// have unit length and outputs are normed.
  bool erases = false;
  bool by_channel = false;  ///< of a decay of recurrent layers: of each of a state's f rows
  bool causal = true;       ///< no output depends on later tokens of the same sequence
  /// Whether its module has a form for the fused kernels of numerical modes exact and fast; found
  /// out at its registration. Gatings and temperatures have kernels apart from that of attention.
  bool fused = false;
  bool gates_input = false;  ///< of a gating, found out likewise: it gates what attention reads
  /// Of a similarity, whose module may prepare q and k for the kernel: whether results are bitwise
  /// independent of the tensor's shape and of the element's position in it, as LibTorch's sums are
  /// not. Then one module stands for several models of an array on the CPU.
  bool batch_invariant = false;
  bool prefix_consistent = true;  ///< outputs of a prefix do not change when tokens are appended
};

/// All registered components, by gene, key and mixer.
class ComponentRegistry {
 public:
  /// See note_registration(). @return whether the key was free.
  bool add(Component component);
  /// The mixer's own option under a key, else that of no mixer, else another mixer's; null: none.
  [[nodiscard]] const Component* find(std::string_view gene, std::string_view key,
                                      std::string_view mixer = {}) const;
  /// The same. @throws InputError "unknown similarity 'x'; did you mean ...? Known: ..."
  [[nodiscard]] const Component& at(std::string_view gene, std::string_view key,
                                    std::string_view mixer = {}) const;
  [[nodiscard]] bool contains(std::string_view gene, std::string_view key) const {
    return find(gene, key) != nullptr;
  }
  /// @return the keys of a gene, sorted. @param mixer  Component::mixer of those.
  [[nodiscard]] std::vector<std::string> keys(std::string_view gene,
                                              std::string_view mixer = {}) const;
  /// @return a gene's components, those of no mixer first, by their keys.
  [[nodiscard]] std::vector<const Component*> of(std::string_view gene) const;

 private:
  std::deque<Component> components_;  ///< what at() has returned stays where it is
};

ComponentRegistry& components();

/// Declares the sizes of a mixer or a component. Mistakes: see note_mistake().
void declare_sizes(const std::vector<Slot>& sizes);

/// Which parts of a layer of attention have forms for the kernels of numerical modes exact and fast.
struct FusedForms {
  bool attention = false;  ///< what is between q, k, v and the weighted values
  bool gating = false;
  bool temperature = false;  ///< which is so beside a fused attention only

  friend bool operator==(const FusedForms&, const FusedForms&) = default;
};
FusedForms fused_forms(const Mechanism& mechanism);

}  // namespace nas
