#include <stdexcept>

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
template <class Of, class Real, class... In>
__global__ void map_kernel(Of map, Real* out, std::int64_t size, Dropout dropout, const In*... in) {
  const std::int64_t model = blockIdx.y;
  DropoutFactors<Real> factors(dropout, model);
  for_elements(size, [&](std::int64_t i) {
    const std::int64_t at = model * size + i;
    out[at] = map(factors(i), in[at]...);
  });
}

template <class Of, class Real, class... In>
void run(const char* name, Of of, Real* out, std::int64_t models, std::int64_t size,
         const Dropout& dropout, Stream stream, const In*... in) {
  launch(name, map_kernel<Of, Real, In...>, elements_grid(models, size), 0, stream, of, out, size,
         dropout, in...);
}

}  // namespace

template <class Real>
void map_elements(Map map, const kernels::MapInputs<Real>& in, Real* out, std::int64_t models,
                  std::int64_t size, const Dropout& dropout, Stream stream) {
  switch (map) {
    case Map::drop:
      return run("drop", Drop(), out, models, size, dropout, stream, in[0]);
    case Map::add_dropped:
      return run("add_dropped", AddDropped(), out, models, size, dropout, stream, in[0], in[1]);
    case Map::gelu:
      return run("gelu", Gelu(), out, models, size, dropout, stream, in[0]);
    case Map::gelu_backward:
      return run("gelu_backward", GeluBackward(), out, models, size, dropout, stream, in[0], in[1]);
    case Map::swiglu:
    case Map::swiglu_backward:
      break;
  }
  throw std::invalid_argument("map_elements: there is no kernel of SwiGLU");
}

template void map_elements(Map, const kernels::MapInputs<float>&, float*, std::int64_t,
                           std::int64_t, const Dropout&, Stream);
template void map_elements(Map, const kernels::MapInputs<double>&, double*, std::int64_t,
                           std::int64_t, const Dropout&, Stream);

}  // namespace nas::cuda
