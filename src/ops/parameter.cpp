#include "ops/parameter.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "core/seed.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {

Models first_models(std::int64_t count) {
  Models models(static_cast<std::size_t>(count));
  std::iota(models.begin(), models.end(), std::int64_t{0});
  return models;
}

torch::Tensor ParameterScope::add(const std::string& name, const std::vector<std::int64_t>& shape,
                                  Start start, Decay decay) const {
  std::vector<std::int64_t> sizes{static_cast<std::int64_t>(models_.size())};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  auto tensor = at::empty(sizes, at::TensorOptions(at::kFloat).device(device_));
  tensor.requires_grad_(true);
  parameters_->push_back({prefix_ + name, tensor, models_, std::move(start), decay});
  return tensor;
}

ParameterScope ParameterScope::child(const std::string& name) const {
  auto scope = *this;
  scope.prefix_ += name + ".";
  return scope;
}

ParameterScope ParameterScope::of(Models models) const {
  auto scope = *this;
  scope.models_ = std::move(models);
  return scope;
}

Linear::Linear(const ParameterScope& scope, std::int64_t in, std::int64_t out, Start weight,
               Start bias)
    : weight_(scope.add("weight", {out, in}, std::move(weight), Decay::yes)),
      bias_(Biases::of_all(scope.add("bias", {out}, std::move(bias), Decay::no))),
      mode_(scope.mode()) {}

Linear Linear::with_biases_of(const ParameterScope& scope, std::int64_t in, std::int64_t out,
                              const Models& biased, Start weight) {
  Linear linear;
  linear.mode_ = scope.mode();
  linear.weight_ = scope.add("weight", {out, in}, std::move(weight), Decay::yes);
  if (biased.empty()) return linear;
  linear.bias_.values = scope.of(biased).add("bias", {out}, Start::constant(0.0), Decay::no);
  for (const auto model : scope.models()) {
    const auto found = std::lower_bound(biased.begin(), biased.end(), model);
    const bool has = found != biased.end() && *found == model;
    linear.bias_.rows.push_back(has ? found - biased.begin() : -1);
  }
  return linear;
}

torch::Tensor Linear::operator()(const torch::Tensor& x) const {
  return linear(x, weight_, bias_, mode_);
}

Biased Linear::before_bias(const torch::Tensor& x) const {
  return linear_before_bias(x, weight_, bias_, mode_);
}

std::vector<torch::Tensor> Linear::of_one(const torch::Tensor& x,
                                          const std::vector<const Linear*>& maps) {
  std::vector<std::pair<torch::Tensor, Biases>> given;
  for (const auto* map : maps) given.emplace_back(map->weight_, map->bias_);
  return linears_of(x, given, maps.front()->mode_);
}

namespace {

/// @param values  float32 on the CPU.
void draw(const torch::Tensor& values, const Start& start, const at::Generator& generator) {
  switch (start.kind) {
    case Start::Kind::constant:
      values.fill_(start.value);
      break;
    case Start::Kind::normal:
      values.normal_(0.0, start.value, generator);
      break;
    case Start::Kind::xavier_uniform: {
      const auto fans = static_cast<double>(values.size(-2) + values.size(-1));
      const double bound = std::sqrt(6.0 / fans);
      values.uniform_(-bound, bound, generator);
      break;
    }
    case Start::Kind::listed:
      TORCH_CHECK(std::ssize(start.list) == values.numel(), start.list.size(),
                  " initial values of a parameter of ", values.numel(), " elements");
      values.copy_(at::tensor(start.list, at::TensorOptions(at::kDouble)).view(values.sizes()));
      break;
    case Start::Kind::newest_tap:
      values.normal_(0.0, start.value, generator);
      values.select(-1, values.size(-1) - 1).fill_(1.0);
      break;
    case Start::Kind::log_of_uniform:
      values.uniform_(start.list[0], start.list[1], generator).log_();
      break;
    case Start::Kind::softplus_of_log_uniform:
      values.uniform_(std::log(start.list[0]), std::log(start.list[1]), generator)
          .exp_()
          .expm1_()
          .log_();
      break;
  }
}

}  // namespace

void initialise(std::vector<Parameter>& parameters, const std::vector<StartSeed>& seeds) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : parameters) {
    for (std::size_t i = 0; i < parameter.models.size(); ++i) {
      const auto part = parameter.tensor[static_cast<std::int64_t>(i)];
      const auto& seed = seeds.at(static_cast<std::size_t>(parameter.models[i]));
      const auto values = at::empty(part.sizes(), at::TensorOptions(at::kFloat));
      draw(values, parameter.start,
           make_generator(at::kCPU,
                          derive_seed(seed.run_seed, seed.replicate, "init", parameter.name)));
      part.copy_(values);
    }
  }
}

void move_to(std::vector<Parameter>& parameters, torch::Device device, torch::ScalarType type) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : parameters) {
    parameter.tensor.set_data(parameter.tensor.to(device, type));
  }
}

}  // namespace nas::nn
