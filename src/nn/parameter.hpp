#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "core/numerical_mode.hpp"

namespace nas::nn {

/// How a parameter's initial values are drawn.
struct Start {
  enum class Kind { constant, normal, xavier_uniform };
  Kind kind = Kind::constant;
  double value = 0.0;  ///< the constant, or the standard deviation of a normal distribution

  static Start constant(double value) { return {Kind::constant, value}; }
  /// N(0, sd^2); 0.02 is the start of every Linear and Embedding that asks for nothing else.
  static Start normal(double sd = 0.02) { return {Kind::normal, sd}; }
  /// U(-a, a), a = sqrt(6 / (rows + columns)) of the last two dimensions (Glorot & Bengio 2010).
  static Start xavier_uniform() { return {Kind::xavier_uniform, 0.0}; }
};

/// Whether weight decay applies to a parameter in corrected semantics: matrices only, and not
/// those of embeddings and temperatures.
enum class Decay { no, yes };

struct Parameter {
  std::string name;  ///< "layers.0.attention.q_proj.weight"
  torch::Tensor tensor;
  Start start;
  Decay decay;
};

/// Where parts of a model put their parameters: a list shared by the model, under a name prefix. It
/// also says in which numerical mode the model computes.
class ParameterScope {
 public:
  /// @param parameters  outlives the scope.
  explicit ParameterScope(std::vector<Parameter>& parameters,
                          NumericalMode mode = NumericalMode::reference, std::string prefix = "")
      : parameters_(&parameters), mode_(mode), prefix_(std::move(prefix)) {}

  /// @return a new parameter, float32 on the CPU, uninitialised. The handle stays valid when the
  /// list is moved to another device or type.
  torch::Tensor add(const std::string& name, const std::vector<std::int64_t>& shape, Start start,
                    Decay decay) const;
  /// @return the scope "PREFIX NAME."
  [[nodiscard]] ParameterScope child(const std::string& name) const {
    return ParameterScope(*parameters_, mode_, prefix_ + name + ".");
  }
  [[nodiscard]] NumericalMode mode() const { return mode_; }

 private:
  std::vector<Parameter>* parameters_;
  NumericalMode mode_;
  std::string prefix_;
};

/// y = x W' + b; W (out, in), b (out) starts at 0 unless asked for otherwise. Computed in
/// the numerical mode of the scope (nn/product.hpp).
class Linear {
 public:
  Linear() = default;
  Linear(const ParameterScope& scope, std::int64_t in, std::int64_t out,
         Start weight = Start::normal(), Start bias = Start::constant(0.0));
  /// y = x W'.
  static Linear without_bias(const ParameterScope& scope, std::int64_t in, std::int64_t out,
                             Start weight = Start::normal());

  /// @param x  (..., in).   @return (..., out).
  [[nodiscard]] torch::Tensor operator()(const torch::Tensor& x) const;

 private:
  torch::Tensor weight_;
  torch::Tensor bias_;
  NumericalMode mode_ = NumericalMode::reference;
};

/// Draws initial values, each tensor in float32 on the CPU from its own generator, seeded by (run
/// seed, replicate, "init", name): tensors of one name and shape start alike in every model.
void initialise(std::vector<Parameter>& parameters, std::uint64_t run_seed, std::int64_t replicate);

/// Moves parameters to a device and floating-point type; handles to them follow.
void move_to(std::vector<Parameter>& parameters, torch::Device device, torch::ScalarType type);

}  // namespace nas::nn
