#include "nn/parameter.hpp"

#include <cmath>

#include "core/seed.hpp"
#include "nn/product.hpp"
#include "nn/torch_compat.hpp"

namespace nas::nn {

torch::Tensor ParameterScope::add(const std::string& name, const std::vector<std::int64_t>& shape,
                                  Start start, Decay decay) const {
  auto tensor = at::empty(shape, at::TensorOptions(at::kFloat));
  tensor.requires_grad_(true);
  parameters_->push_back({prefix_ + name, tensor, start, decay});
  return tensor;
}

Linear::Linear(const ParameterScope& scope, std::int64_t in, std::int64_t out, Start weight,
               Start bias)
    : weight_(scope.add("weight", {out, in}, weight, Decay::yes)),
      bias_(scope.add("bias", {out}, bias, Decay::no)),
      mode_(scope.mode()) {}

Linear Linear::without_bias(const ParameterScope& scope, std::int64_t in, std::int64_t out,
                            Start weight) {
  Linear linear;
  linear.mode_ = scope.mode();
  linear.weight_ = scope.add("weight", {out, in}, weight, Decay::yes);
  return linear;
}

torch::Tensor Linear::operator()(const torch::Tensor& x) const {
  return linear(x, weight_, bias_, mode_);
}

void initialise(std::vector<Parameter>& parameters, std::uint64_t run_seed,
                std::int64_t replicate) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : parameters) {
    const auto generator =
        make_generator(at::kCPU, derive_seed(run_seed, replicate, "init", parameter.name));
    auto values = at::empty(parameter.tensor.sizes(), at::TensorOptions(at::kFloat));
    switch (parameter.start.kind) {
      case Start::Kind::constant:
        values.fill_(parameter.start.value);
        break;
      case Start::Kind::normal:
        values.normal_(0.0, parameter.start.value, generator);
        break;
      case Start::Kind::xavier_uniform: {
        const auto fans = static_cast<double>(values.size(-2) + values.size(-1));
        const double bound = std::sqrt(6.0 / fans);
        values.uniform_(-bound, bound, generator);
        break;
      }
    }
    parameter.tensor.copy_(values);
  }
}

void move_to(std::vector<Parameter>& parameters, torch::Device device, torch::ScalarType type) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : parameters) {
    parameter.tensor.set_data(parameter.tensor.to(device, type));
  }
}

}  // namespace nas::nn
