#include <cmath>

#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/layer_norm.hpp"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/warp.cuh"

namespace nas::cuda {

namespace {

constexpr std::int64_t kRowsOfWarp = 8;  // of which it sums gradients of weights

template <int kHeld>
inline constexpr std::size_t kArray = kHeld > 0 ? kHeld : 1;

/// A warp's row: its packs of N numbers, of which lane l has the first, the 32nd after it, ...
/// Rows of up to 32 N kHeld numbers are read once; longer ones (kHeld = 0) whenever they are used.
template <class Real, int N, int kHeld>
class Row {
 public:
  __device__ Row(const Real* row, std::int64_t width) : row_(row), width_(width) {
    if constexpr (kHeld > 0) {
      each_pack([&](int i, std::int64_t e) { held_[i] = load_pack<N>(row + e); });
    }
  }

  /// Calls use(which pack of the lane, its first element) for those of the row.
  template <class Use>
  __device__ void each_pack(const Use& use) const {
    if constexpr (kHeld > 0) {
#pragma unroll
      for (int i = 0; i < kHeld; ++i) {
        const std::int64_t e = (i * kWarp + lane_index()) * N;
        if (e < width_) use(i, e);
      }
    } else {
      int i = 0;
      for (std::int64_t e = lane_index() * N; e < width_; e += kWarp * N) use(i++, e);
    }
  }

  [[nodiscard]] __device__ Pack<Real, N> pack(int i, std::int64_t e) const {
    if constexpr (kHeld > 0) return held_[i];
    return load_pack<N>(row_ + e);
  }

  /// Sum of term(number) over the row.
  template <class Term>
  [[nodiscard]] __device__ Real sum(const Term& term) const {
    Real sum = 0;
    each_pack([&](int i, std::int64_t e) {
      const auto x = pack(i, e);
#pragma unroll
      for (int j = 0; j < N; ++j) sum += term(x.at[j]);
    });
    return warp_sum(sum);
  }

 private:
  const Real* row_;
  std::int64_t width_;
  Pack<Real, N> held_[kArray<kHeld>]{};
};

/// @return the number of the warp among those of its model.
__device__ std::int64_t warp_of_model() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_index();
}

/// One warp per row.
template <class Real, int N, int kHeld>
__global__ void forward_kernel(LayerNorm<Real> norm, const Real* bias, Real epsilon, Real* y) {
  const std::int64_t model = blockIdx.y;
  if (warp_of_model() >= norm.rows) return;  // the whole warp
  const std::int64_t row = model * norm.rows + warp_of_model();
  const Row<Real, N, kHeld> x(norm.x + row * norm.width, norm.width);
  const auto count = static_cast<Real>(norm.width);
  const Real mean = x.sum([](Real number) { return number; }) / count;
  const Real variance =
      x.sum([&](Real number) { return (number - mean) * (number - mean); }) / count;
  const Real inverse = 1 / std::sqrt(variance + epsilon);
  if (lane_index() == 0) {
    norm.means[row] = mean;
    norm.inverse_deviations[row] = inverse;
  }
  x.each_pack([&](int i, std::int64_t e) {
    const auto numbers = x.pack(i, e);
    const auto weights = load_pack<N>(norm.weight + model * norm.width + e);
    const auto biases = load_pack<N>(bias + model * norm.width + e);
    Pack<Real, N> out;
#pragma unroll
    for (int j = 0; j < N; ++j) {
      out.at[j] = weights.at[j] * ((numbers.at[j] - mean) * inverse) + biases.at[j];
    }
    store_pack<N>(out, y + row * norm.width + e);
  });
}

/// Sums over rows of a warp, a slot (2, D) of each: in registers while it holds rows there, and else
/// in memory that it alone writes.
template <class Real, int N, int kHeld>
class Sums {
 public:
  __device__ Sums(Real* slot, std::int64_t width) : slot_(slot), width_(width) {
    if constexpr (kHeld == 0) {
      for (std::int64_t e = lane_index() * N; e < width; e += kWarp * N) {
        store_pack<N>(Pack<Real, N>{}, slot + e);
        store_pack<N>(Pack<Real, N>{}, slot + width + e);
      }
    }
  }

  __device__ void add(int i, std::int64_t e, const Pack<Real, N>& weight,
                      const Pack<Real, N>& bias) {
    if constexpr (kHeld > 0) {
      add_to(weight_[i], weight);
      add_to(bias_[i], bias);
    } else {
      auto of_weight = load_pack<N>(slot_ + e);
      auto of_bias = load_pack<N>(slot_ + width_ + e);
      add_to(of_weight, weight);
      add_to(of_bias, bias);
      write(e, of_weight, of_bias);
    }
  }

  __device__ void finish(int i, std::int64_t e) const {
    if constexpr (kHeld > 0) write(e, weight_[i], bias_[i]);
  }

 private:
  static __device__ void add_to(Pack<Real, N>& sum, const Pack<Real, N>& x) {
#pragma unroll
    for (int j = 0; j < N; ++j) sum.at[j] += x.at[j];
  }
  __device__ void write(std::int64_t e, const Pack<Real, N>& weight,
                        const Pack<Real, N>& bias) const {
    store_pack<N>(weight, slot_ + e);
    store_pack<N>(bias, slot_ + width_ + e);
  }

  Real* slot_;
  std::int64_t width_;
  Pack<Real, N> weight_[kArray<kHeld>]{};
  Pack<Real, N> bias_[kArray<kHeld>]{};
};

/// kRowsOfWarp rows per warp: dx, and sums of dw and db in its slot.
template <class Real, int N, int kHeld>
__global__ void backward_kernel(LayerNorm<Real> norm, LayerNormGradients<Real> by,
                                std::int64_t slots) {
  const std::int64_t model = blockIdx.y;
  const std::int64_t slot = warp_of_model();
  if (slot >= slots) return;  // the whole warp
  const std::int64_t last = (slot + 1) * kRowsOfWarp;
  const std::int64_t end = last < norm.rows ? last : norm.rows;
  const auto count = static_cast<Real>(norm.width);
  const Row<Real, N, kHeld> weights(norm.weight + model * norm.width, norm.width);
  Sums<Real, N, kHeld> sums(by.scratch + (model * slots + slot) * 2 * norm.width, norm.width);
  for (std::int64_t i = slot * kRowsOfWarp; i < end; ++i) {
    const std::int64_t row = model * norm.rows + i;
    const Row<Real, N, kHeld> x(norm.x + row * norm.width, norm.width);
    const Row<Real, N, kHeld> dy(by.y + row * norm.width, norm.width);
    const Real mean = norm.means[row];
    const Real inverse = norm.inverse_deviations[row];
    Real plain = 0;
    Real along = 0;
    x.each_pack([&](int k, std::int64_t e) {
      const auto numbers = x.pack(k, e);
      const auto gradient = dy.pack(k, e);
      const auto weight = weights.pack(k, e);
      Pack<Real, N> by_weight;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const Real normed = (numbers.at[j] - mean) * inverse;
        by_weight.at[j] = gradient.at[j] * normed;
        plain += gradient.at[j] * weight.at[j];
        along += by_weight.at[j] * weight.at[j];
      }
      sums.add(k, e, by_weight, gradient);
    });
    plain = warp_sum(plain) / count;
    along = warp_sum(along) / count;
    x.each_pack([&](int k, std::int64_t e) {
      const auto numbers = x.pack(k, e);
      const auto gradient = dy.pack(k, e);
      const auto weight = weights.pack(k, e);
      Pack<Real, N> dx{};
      if (by.beside != nullptr) dx = load_pack<N>(by.beside + row * norm.width + e);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const Real normed = (numbers.at[j] - mean) * inverse;
        dx.at[j] += inverse * (gradient.at[j] * weight.at[j] - plain - normed * along);
      }
      store_pack<N>(dx, by.x + row * norm.width + e);
    });
  }
  weights.each_pack([&](int k, std::int64_t e) { sums.finish(k, e); });
}

/// Calls run(kernel with packs of N, kHeld of a lane) by the width, as constants.
template <class Run>
void with_packs(std::int64_t width, bool aligned, const Run& run) {
  using std::integral_constant;
  const auto held = [&](auto pack, auto most) {
    const std::int64_t packs = pieces(width, kWarp * decltype(pack)::value);
    if (packs <= 1) return run(pack, integral_constant<int, 1>());
    if (packs <= most) return run(pack, most);
    return run(pack, integral_constant<int, 0>());
  };
  if (aligned && width % kPack == 0) {
    const integral_constant<int, kPack> wide;
    const bool few = width > kWarp * kPack && width <= kWarp * kPack * 4;
    few ? held(wide, integral_constant<int, 4>()) : held(wide, integral_constant<int, 8>());
  } else {
    held(integral_constant<int, 1>(), integral_constant<int, 8>());
  }
}

}  // namespace

template <class Real>
std::int64_t layer_norm_scratch_size(const LayerNorm<Real>& rows) {
  return rows.models * pieces(rows.rows, kRowsOfWarp) * 2 * rows.width;
}

template <class Real>
void layer_norm(const LayerNorm<Real>& rows, const Real* bias, double epsilon, Real* y,
                Stream stream) {
  const bool aligned =
      is_aligned(rows.x) && is_aligned(rows.weight) && is_aligned(bias) && is_aligned(y);
  with_packs(rows.width, aligned, [&](auto pack, auto held) {
    launch("layer_norm", forward_kernel<Real, decltype(pack)::value, decltype(held)::value>,
           Grid{pieces(rows.rows, kWarps), rows.models}, 0, stream, rows, bias,
           static_cast<Real>(epsilon), y);
  });
}

template <class Real>
void layer_norm_backward(const LayerNorm<Real>& rows, const LayerNormGradients<Real>& gradients,
                         Stream stream) {
  const std::int64_t slots = pieces(rows.rows, kRowsOfWarp);
  const bool aligned = is_aligned(rows.x) && is_aligned(rows.weight) && is_aligned(gradients.y) &&
                       is_aligned(gradients.beside) && is_aligned(gradients.x) &&
                       is_aligned(gradients.scratch);
  with_packs(rows.width, aligned, [&](auto pack, auto held) {
    launch("layer_norm_backward",
           backward_kernel<Real, decltype(pack)::value, decltype(held)::value>,
           Grid{pieces(slots, kWarps), rows.models}, 0, stream, rows, gradients, slots);
  });
  add_slots("layer_norm_backward, sums", static_cast<const Real*>(gradients.scratch), rows.models,
            slots, 2 * rows.width, rows.width, gradients.weight, gradients.bias, stream);
}

#define NAS_LAYER_NORM(Real)                                                                 \
  template std::int64_t layer_norm_scratch_size(const LayerNorm<Real>&);                     \
  template void layer_norm(const LayerNorm<Real>&, const Real*, double, Real*, Stream);      \
  template void layer_norm_backward(const LayerNorm<Real>&, const LayerNormGradients<Real>&, \
                                    Stream);
NAS_LAYER_NORM(float)
NAS_LAYER_NORM(double)
#undef NAS_LAYER_NORM

}  // namespace nas::cuda
