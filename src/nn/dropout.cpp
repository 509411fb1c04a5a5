#include "nn/dropout.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "core/seed.hpp"
#include "nn/torch_compat.hpp"

namespace nas::nn {

namespace {

// Elements are hashed in blocks: a 64-bit word per block, then 32-bit arithmetic only, which
// compilers vectorise.
constexpr std::int64_t kBlock = std::int64_t{1} << 16U;

/// One block: element j is kept iff its hash is at least `threshold`. Two rounds of a 32-bit mixer
/// with half of the block's word added before each, so that blocks are not shifts of each other.
template <class Real>
void drop_block(const Real* in, Real* out, std::uint32_t size, std::uint64_t word,
                std::uint32_t threshold, Real scale) {
  const auto low = static_cast<std::uint32_t>(word);
  const auto high = static_cast<std::uint32_t>(word >> 32U);
  for (std::uint32_t j = 0; j < size; ++j) {
    std::uint32_t hash = j + low;
    hash ^= hash >> 16U;
    hash *= 0x7feb352dU;
    hash ^= high;
    hash ^= hash >> 15U;
    hash *= 0x846ca68bU;
    hash ^= hash >> 16U;
    out[j] = hash >= threshold ? in[j] * scale : Real{0};
  }
}

template <class Real>
void drop(const Real* in, Real* out, std::int64_t size, std::uint64_t key, double p) {
  const auto threshold = static_cast<std::uint32_t>(p * 0x1.0p32);
  const auto scale = static_cast<Real>(1.0 / (1.0 - p));
  const std::int64_t blocks = (size + kBlock - 1) / kBlock;
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kBlock;
      drop_block(in + first, out + first,
                 static_cast<std::uint32_t>(std::min(kBlock, size - first)),
                 mix64(key + static_cast<std::uint64_t>(block)), threshold, scale);
    }
  });
}

torch::Tensor masked(const torch::Tensor& x, std::uint64_t key, double p) {
  if (!x.device().is_cpu()) {
    const auto kept = at::empty_like(x, at::MemoryFormat::Contiguous)
                          .bernoulli_(1.0 - p, make_generator(x.device(), key));
    return kept.mul_(x).mul_(1.0 / (1.0 - p));
  }
  const auto in = x.contiguous();
  auto out = at::empty_like(in);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "dropout", [&] {
    drop(in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), in.numel(), key, p);
  });
  return out;
}

class Dropout : public torch::autograd::Function<Dropout> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               std::int64_t key, double p) {
    context->saved_data["key"] = key;
    context->saved_data["p"] = p;
    return masked(x, static_cast<std::uint64_t>(key), p);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto key = static_cast<std::uint64_t>(context->saved_data["key"].toInt());
    return {masked(gradients[0], key, context->saved_data["p"].toDouble()), {}, {}};
  }
};

}  // namespace

torch::Tensor dropout(const torch::Tensor& x, double p, const Pass& pass, std::uint64_t site) {
  if (!pass.training || p == 0.0) return x;
  return Dropout::apply(x, static_cast<std::int64_t>(mix64(mix64(pass.seed) ^ site)), p);
}

}  // namespace nas::nn
