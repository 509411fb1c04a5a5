#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace nas {

/// Sizes of one attention layer. Letters: T = context tokens, D = width, H = heads, d = D / H.
struct AttentionShape {
  std::int64_t width = 128;    ///< D
  std::int64_t heads = 4;      ///< H, divides D
  std::int64_t context = 128;  ///< T, the longest sequence in tokens

  [[nodiscard]] std::int64_t head_width() const { return width / heads; }
};

/// Torch-free description of one option of an attention gene: what the search, the plan and the
/// documentation need to know. The module that computes it is registered beside it, in the same
/// file, in nn/attention.hpp's registries.
struct Component {
  std::string gene;     ///< "similarity", "normalization", "gating" or "temperature"
  std::string key;      ///< what it computes; unique within the gene; = file stem
  std::string summary;  ///< formula and source, one line
  /// Genes that have no effect beside this option (relu_norm voids the temperature: it cancels).
  /// The canonical form sets them to their first option, so that equal functions have equal names.
  std::vector<std::string> voids{};
  /// Parameters that it adds to one layer, beyond q, k, v and output projections.
  std::function<std::int64_t(const AttentionShape&)> parameters = [](const AttentionShape&) {
    return std::int64_t{0};
  };
  /// Floating-point operations that it adds to one forward pass of one layer over one sequence of T
  /// tokens; a multiply-add counts 2, elementary functions 1, comparisons (maximum, sorting,
  /// selecting) nothing. For a similarity: all of the score computation.
  std::function<double(const AttentionShape&)> flops = [](const AttentionShape&) { return 0.0; };
  /// Bytes of inference state per token and layer that it adds to the key/value cache of 2 D
  /// floats.
  std::function<std::int64_t(const AttentionShape&)> state_bytes = [](const AttentionShape&) {
    return std::int64_t{0};
  };
  bool causal = true;  ///< no output depends on later tokens of the same sequence
  /// Whether its module has a form for the fused kernels of numerical modes exact and fast; found
  /// out at its registration. Gatings and temperatures have kernels apart from that of attention.
  bool fused = false;
  bool gates_input = false;  ///< of a gating, found out likewise: it gates what attention reads
  /// Of a similarity, whose module may prepare q and k for the kernel: whether it is
  /// batch-invariant: results are bitwise independent of the tensor's shape and of the element's
  /// position in it, as LibTorch's sums are not. Then one module stands for several models of an
  /// array on the CPU.
  bool placeless = false;
  bool prefix_consistent = true;  ///< outputs of a prefix do not change when tokens are appended
};

/// All registered components, by gene and key.
class ComponentRegistry {
 public:
  /// Aborts, naming the key, on a duplicate.
  bool add(Component component);
  /// @throws InputError "unknown similarity 'x', known: ...; did you mean ...?"
  [[nodiscard]] const Component& at(std::string_view gene, std::string_view key) const;
  [[nodiscard]] bool contains(std::string_view gene, std::string_view key) const;
  /// @return the keys of a gene, sorted.
  [[nodiscard]] std::vector<std::string> keys(std::string_view gene) const;

 private:
  std::vector<Component> components_;
};

ComponentRegistry& components();

}  // namespace nas
