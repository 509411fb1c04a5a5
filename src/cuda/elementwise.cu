#include "cuda/dropout.cuh"
#include "cuda/elementwise.cuh"
#include "cuda/elementwise.hpp"
#include "cuda/math.cuh"

namespace nas::cuda {

namespace {

struct Drop {
  template <class Real>
  __device__ Real operator()(Real factor, Real x) const {
    return factor * x;
  }
};

struct AddDropped {
  template <class Real>
  __device__ Real operator()(Real factor, Real x, Real residual) const {
    return residual + factor * x;
  }
};

struct Gelu {
  template <class Real>
  __device__ Real operator()(Real factor, Real x) const {
    return factor * x * normal(x).distribution;
  }
};

struct GeluBackward {
  template <class Real>
  __device__ Real operator()(Real factor, Real x, Real gradient) const {
    const Normal<Real> at = normal(x);
    return factor * gradient * (at.distribution + x * at.density);
  }
};

/// out = map(factor, in...): factor is what dropout multiplies by, 0 or its scale.
template <class Map, class Real, class... In>
__global__ void map_kernel(Map map, Real* out, std::int64_t size, Dropout dropout,
                           const In*... in) {
  const std::int64_t model = blockIdx.y;
  DropoutFactors<Real> factors(dropout, model);
  for_elements(size, [&](std::int64_t i) {
    const std::int64_t at = model * size + i;
    out[at] = map(factors(i), in[at]...);
  });
}

template <class Map, class Real, class... In>
void run(const char* name, Map map, Real* out, std::int64_t models, std::int64_t size,
         const Dropout& dropout, Stream stream, const In*... in) {
  launch(name, map_kernel<Map, Real, In...>, elements_grid(models, size), 0, stream, map, out, size,
         dropout, in...);
}

}  // namespace

template <class Real>
void drop(const Real* in, Real* out, std::int64_t models, std::int64_t size, const Dropout& dropout,
          Stream stream) {
  run("drop", Drop(), out, models, size, dropout, stream, in);
}

template <class Real>
void add_dropped(const Real* in, const Real* residual, Real* out, std::int64_t models,
                 std::int64_t size, const Dropout& dropout, Stream stream) {
  run("add_dropped", AddDropped(), out, models, size, dropout, stream, in, residual);
}

template <class Real>
void gelu(const Real* in, Real* out, std::int64_t models, std::int64_t size, const Dropout& dropout,
          Stream stream) {
  run("gelu", Gelu(), out, models, size, dropout, stream, in);
}

template <class Real>
void gelu_backward(const Real* in, const Real* gradient, Real* out, std::int64_t models,
                   std::int64_t size, const Dropout& dropout, Stream stream) {
  run("gelu_backward", GeluBackward(), out, models, size, dropout, stream, in, gradient);
}

#define NAS_ELEMENTWISE(Real)                                                                 \
  template void drop(const Real*, Real*, std::int64_t, std::int64_t, const Dropout&, Stream); \
  template void add_dropped(const Real*, const Real*, Real*, std::int64_t, std::int64_t,      \
                            const Dropout&, Stream);                                          \
  template void gelu(const Real*, Real*, std::int64_t, std::int64_t, const Dropout&, Stream); \
  template void gelu_backward(const Real*, const Real*, Real*, std::int64_t, std::int64_t,    \
                              const Dropout&, Stream);
NAS_ELEMENTWISE(float)
NAS_ELEMENTWISE(double)
#undef NAS_ELEMENTWISE

}  // namespace nas::cuda
