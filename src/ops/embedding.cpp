#include "ops/embedding.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include <ATen/Dispatch.h>

#include "ops/array_op.hpp"
#include "ops/device_operations.hpp"

namespace nas::nn {

namespace {

/// Where things begin: of model r, sequence b, token t, and of a row of its E and P.
struct Layout {
  std::int64_t models, sequences, tokens, vocabulary, context, width;

  Layout(const torch::Tensor& of_tokens, const torch::Tensor& embedding,
         const torch::Tensor& positions)
      : models(of_tokens.size(0)),
        sequences(of_tokens.size(1)),
        tokens(of_tokens.size(2)),
        vocabulary(embedding.size(1)),
        context(positions.defined() ? positions.size(1) : 0),
        width(embedding.size(2)) {}

  /// Calls run(token's index, row of all E, row of all P) for the tokens of models [begin, end).
  template <class Run>
  void for_tokens(std::int64_t begin, std::int64_t end, const std::int64_t* token,
                  const Run& run) const {
    const std::int64_t of_model = sequences * tokens;
    for (std::int64_t i = begin * of_model; i < end * of_model; ++i) {
      const std::int64_t model = i / of_model;
      run(i, model * vocabulary + token[i], model * context + i % tokens);
    }
  }
};

/// LibTorch's own embedding throws likewise.
void require_tokens_below(std::int64_t vocabulary, const torch::Tensor& tokens) {
  const auto* first = tokens.data_ptr<std::int64_t>();
  const auto* last = first + tokens.numel();
  const auto* wrong = std::find_if(
      first, last, [&](std::int64_t token) { return token < 0 || token >= vocabulary; });
  TORCH_CHECK_INDEX(wrong == last, "token ", *wrong, " must be in [0, ", vocabulary, ")");
}

torch::Tensor by_kernels(const torch::Tensor& tokens, const torch::Tensor& embedding,
                         const torch::Tensor& positions) {
  const Layout layout(tokens, embedding, positions);
  require_tokens_below(layout.vocabulary, tokens);
  auto y = at::empty({layout.models, layout.sequences, layout.tokens, layout.width},
                     embedding.options());
  AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "embedding", [&] {
    at::parallel_for(0, layout.models, 1, [&](std::int64_t begin, std::int64_t end) {
      layout.for_tokens(begin, end, tokens.data_ptr<std::int64_t>(), [&](auto i, auto e, auto p) {
        const auto* vector = embedding.data_ptr<scalar_t>() + e * layout.width;
        auto* sum = y.data_ptr<scalar_t>() + i * layout.width;
        if (!positions.defined()) {
          std::copy_n(vector, layout.width, sum);
          return;
        }
        const auto* position = positions.data_ptr<scalar_t>() + p * layout.width;
        for (std::int64_t j = 0; j < layout.width; ++j) sum[j] = vector[j] + position[j];
      });
    });
  });
  return y;
}

torch::Tensor by_operations(const torch::Tensor& tokens, const torch::Tensor& embedding,
                            const torch::Tensor& positions) {
  const auto models = embedding.size(0);
  const auto first =
      at::arange(models, tokens.options()).mul_(embedding.size(1)).view({models, 1, 1});
  const auto vectors = at::embedding(embedding.flatten(0, 1), tokens + first);
  if (!positions.defined()) return vectors;
  return vectors + positions.slice(1, 0, tokens.size(2)).unsqueeze(1);
}

torch::Tensor zeros(const torch::Tensor& sizes, const torch::Tensor& like) {
  return sizes.defined() ? at::zeros(sizes.sizes(), like.options()) : sizes;
}

/// Of tokens, E and P, on a device with kernels.
struct Embedding {
  static Tensors forward(const Tensors& in, Tensors& saved) {
    saved = in;
    return {by_operations(in[0], in[1], in[2])};
  }

  static Tensors backward(const Tensors& saved, const Tensors& by_out) {
    const Tensors by{{}, zeros(saved[1], by_out[0]), zeros(saved[2], by_out[0])};
    // LibTorch's own backward pass of at::embedding() waits for the host when there are many tokens,
    // and adds in no fixed order when there are few.
    device_operations(saved[0].device())->embedding_backward(saved[0], by_out[0], by[1]);
    if (by[2].defined()) by[2].slice(1, 0, saved[0].size(2)).copy_(by_out[0].sum(1));
    return by;
  }
};

/// On the CPU, with E as an output layer reads it.
struct TiedEmbedding {
  static Tensors forward(const Tensors& in, Tensors& saved) {
    saved = in;
    return {by_kernels(in[0], in[1], in[2]), in[1]};
  }

  static Tensors backward(const Tensors& saved, const Tensors& by_out) {
    const bool again = torch::autograd::get_current_graph_task_keep_graph();
    const auto by_embedding = again ? by_out[1].clone() : by_out[1];
    const auto by_positions = zeros(saved[2], by_embedding);
    const Layout layout(saved[0], by_embedding, by_positions);
    AT_DISPATCH_FLOATING_TYPES(by_embedding.scalar_type(), "embedding_backward", [&] {
      const auto add = [&](const scalar_t* from, scalar_t* to) {
        for (std::int64_t j = 0; j < layout.width; ++j) to[j] += from[j];
      };
      at::parallel_for(0, layout.models, 1, [&](std::int64_t begin, std::int64_t end) {
        // Each row is summed apart, as where two tables are added.
        std::unordered_map<std::int64_t, std::vector<scalar_t>> sums;
        layout.for_tokens(
            begin, end, saved[0].data_ptr<std::int64_t>(), [&](auto i, auto e, auto p) {
              const auto* gradient = by_out[0].data_ptr<scalar_t>() + i * layout.width;
              auto& sum = sums[e];
              if (sum.empty()) sum.resize(static_cast<std::size_t>(layout.width));
              add(gradient, sum.data());
              if (by_positions.defined())
                add(gradient, by_positions.data_ptr<scalar_t>() + p * layout.width);
            });
        for (const auto& [e, sum] : sums)
          add(sum.data(), by_embedding.data_ptr<scalar_t>() + e * layout.width);
      });
    });
    return {{}, by_embedding, by_positions};
  }
};

}  // namespace

std::pair<torch::Tensor, torch::Tensor> embed_tied(const torch::Tensor& tokens,
                                                   const torch::Tensor& embedding,
                                                   const torch::Tensor& positions,
                                                   NumericalMode mode) {
  TORCH_CHECK(tokens.dim() == 3 && tokens.size(0) == embedding.size(0), "tokens ", tokens.sizes(),
              " do not fit embeddings ", embedding.sizes());
  TORCH_CHECK(!positions.defined() ||
                  (tokens.size(0) == positions.size(0) && tokens.size(2) <= positions.size(1) &&
                   embedding.size(2) == positions.size(2)),
              "tokens ", tokens.sizes(), " and embeddings ", embedding.sizes(),
              " do not fit positions ",
              positions.defined() ? positions.sizes() : at::IntArrayRef());
  const Tensors in{tokens, embedding, positions};
  if (mode == NumericalMode::reference || !has_kernels(tokens.device()))
    return {by_operations(tokens, embedding, positions), embedding};
  if (device_operations(tokens.device()) != nullptr)
    return {array_op(Embedding(), in)[0], embedding};
  const auto both = array_op(TiedEmbedding(), in);
  return {both[0], both[1]};
}

torch::Tensor embed(const torch::Tensor& tokens, const torch::Tensor& embedding,
                    const torch::Tensor& positions, NumericalMode mode) {
  return embed_tied(tokens, embedding, positions, mode).first;
}

}  // namespace nas::nn
