#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "core/visibility.hpp"
#include "ops/product.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// How a parameter's initial values are drawn.
struct Start {
  enum class Kind {
    constant,
    normal,
    xavier_uniform,
    listed,
    newest_tap,
    log_of_uniform,
    softplus_of_log_uniform
  };
  Kind kind = Kind::constant;
  double value = 0.0;          ///< the constant, or the standard deviation of a normal distribution
  std::vector<double> list{};  ///< of listed; the bounds of what is uniform

  static Start constant(double value) { return {Kind::constant, value}; }
  /// N(0, sd^2); 0.02 is the default initialiser of every Linear and Embedding.
  static Start normal(double sd = 0.02) { return {Kind::normal, sd}; }
  /// U(-a, a), a = sqrt(6 / (rows + columns)) of the last two dimensions (Glorot & Bengio 2010).
  static Start xavier_uniform() { return {Kind::xavier_uniform, 0.0}; }
  /// These numbers: as many as the parameter has elements.
  static Start listed(std::vector<double> values) { return {Kind::listed, 0.0, std::move(values)}; }
  /// log a, a from U(least, most).
  static Start log_of_uniform(double least, double most) {
    return {Kind::log_of_uniform, 0.0, {least, most}};
  }
  /// b of which softplus(b) = log(1 + e^b) is in [least, most], with a uniform logarithm.
  static Start softplus_of_log_uniform(double least, double most) {
    return {Kind::softplus_of_log_uniform, 0.0, {least, most}};
  }
  /// N(0, 0.02^2), but 1 at the end of the last dimension: a convolution that hardly changes
  /// anything, whose newest tap is the last.
  static Start newest_tap() { return {Kind::newest_tap, 0.02}; }
};

/// Whether weight decay applies to a parameter in corrected semantics: matrices only, and not
/// those of embeddings and temperatures.
enum class Decay { no, yes };

/// Indices of models in their array, ascending.
using Models = std::vector<std::int64_t>;

/// Models 0, 1, ..., count - 1.
Models first_models(std::int64_t count);

/// One parameter of all models of an array that have it.
struct Parameter {
  std::string name;      ///< "layers.0.attention.q_proj.weight", the same in every model
  torch::Tensor tensor;  ///< (M, shape...): slice i belongs to models[i]
  /// The M models that have it. Two parameters may have one name (options that call theirs alike),
  /// but then no model in common.
  Models models;
  Start start;
  Decay decay;
};

/// Where parts of an array of models put their parameters: a list shared by the array, under a name
/// prefix, for some of its models. It also says in which numerical mode and where the models
/// compute.
class ParameterScope {
 public:
  /// The scope of a model alone. @param parameters  outlives the scope.
  explicit ParameterScope(std::vector<Parameter>& parameters,
                          NumericalMode mode = NumericalMode::reference)
      : ParameterScope(parameters, mode, first_models(1)) {}
  /// @param device  where the parameters are.
  ParameterScope(std::vector<Parameter>& parameters, NumericalMode mode, Models models,
                 torch::Device device = torch::kCPU)
      : parameters_(&parameters), mode_(mode), models_(std::move(models)), device_(device) {}

  /// @return a new parameter (M, shape...) of the scope's M models, float32, uninitialised. The
  /// handle stays valid when the list is moved to another device or type.
  torch::Tensor add(const std::string& name, const std::vector<std::int64_t>& shape, Start start,
                    Decay decay) const;
  /// @return the scope "PREFIX NAME."
  [[nodiscard]] ParameterScope child(const std::string& name) const;
  /// @return the scope of fewer models.
  [[nodiscard]] ParameterScope of(Models models) const;
  [[nodiscard]] const Models& models() const { return models_; }
  [[nodiscard]] NumericalMode mode() const { return mode_; }
  [[nodiscard]] torch::Device device() const { return device_; }

 private:
  std::vector<Parameter>* parameters_;
  NumericalMode mode_;
  Models models_;
  torch::Device device_;
  std::string prefix_;
};

/// y = x W' + b for each of M models; W (M, out, in), b (M, out), initially 0 by default. Computed
/// in the numerical mode of the scope (ops/product.hpp).
class Linear {
 public:
  Linear() = default;
  Linear(const ParameterScope& scope, std::int64_t in, std::int64_t out,
         Start weight = Start::normal(), Start bias = Start::constant(0.0));
  /// The same where only some of the scope's models have a bias.
  static Linear with_biases_of(const ParameterScope& scope, std::int64_t in, std::int64_t out,
                               const Models& biased, Start weight = Start::normal());

  /// @param x  (M, ..., in).   @return (M, ..., out).
  [[nodiscard]] torch::Tensor operator()(const torch::Tensor& x) const;
  /// Where the bias is left to what reads y (ops/product.hpp).
  [[nodiscard]] Biased before_bias(const torch::Tensor& x) const;
  /// Several of one x, (linears_of() of ops/product.hpp).
  static std::vector<torch::Tensor> of_one(const torch::Tensor& x,
                                           const std::vector<const Linear*>& maps);
  [[nodiscard]] const torch::Tensor& weight() const { return weight_; }  ///< (M, out, in)
  /// (models that have one, out); undefined: none has.
  [[nodiscard]] const torch::Tensor& bias() const { return bias_.values; }

 private:
  torch::Tensor weight_;
  Biases bias_;
  NumericalMode mode_ = NumericalMode::reference;
};

/// What the initial values of one model are drawn from.
struct StartSeed {
  std::uint64_t run_seed = 0;
  std::int64_t replicate = 0;
};

/// Draws initial values, each model's part of each tensor in float32 on the CPU from its own
/// generator, seeded by (run seed, replicate, "init", name): tensors of one name and shape start
/// alike in every model of one seed.
///
/// @param seeds  one for each model of the array.
void initialise(std::vector<Parameter>& parameters, const std::vector<StartSeed>& seeds);

/// Moves parameters to a device and floating-point type; handles to them follow.
void move_to(std::vector<Parameter>& parameters, torch::Device device, torch::ScalarType type);

}  // namespace nn
}  // namespace nas
