#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "nn/parts/option.hpp"
#include "ops/model_parts.hpp"
#include "ops/parameter.hpp"

namespace nas::nn {

/// The options of one gene that the models of an array have in a layer: a module for each group of
/// models with one option, in the order of their first models. Each model is in one group; of a gene
/// that does nothing in any model there may be none.
template <class Option>
class OptionSet {
 public:
  struct Group {
    Models models;
    std::unique_ptr<Option> option;
  };

  void add(Models models, std::unique_ptr<Option> option) {
    groups_.push_back({std::move(models), std::move(option)});
  }

  [[nodiscard]] bool empty() const { return groups_.empty(); }
  [[nodiscard]] std::size_t size() const { return groups_.size(); }
  [[nodiscard]] auto begin() const { return groups_.begin(); }
  [[nodiscard]] auto end() const { return groups_.end(); }
  /// The option of the first model.
  [[nodiscard]] Option& front() const { return *groups_.front().option; }
  /// The place of the group that a model is in.
  [[nodiscard]] std::size_t group_of(std::int64_t model) const {
    const auto found = std::find_if(groups_.begin(), groups_.end(), [model](const Group& group) {
      return std::binary_search(group.models.begin(), group.models.end(), model);
    });
    return static_cast<std::size_t>(found - groups_.begin());
  }
  [[nodiscard]] const Option& of(std::int64_t model) const {
    return *groups_[group_of(model)].option;
  }
  [[nodiscard]] std::vector<Models> models() const {
    std::vector<Models> models;
    for (const auto& group : groups_) models.push_back(group.models);
    return models;
  }
  /// Whether a module has a property, e.g. &Position::maps.
  [[nodiscard]] bool any(bool (Option::*has)() const) const {
    return std::any_of(groups_.begin(), groups_.end(),
                       [has](const Group& group) { return (*group.option.*has)(); });
  }

  /// Applies each group's option to its models' part of the inputs.
  /// @param apply  apply(option, parts of the inputs...) gives (M, ...).   @return (R, ...).
  template <class Apply, class... Inputs>
  [[nodiscard]] torch::Tensor apply(const Apply& apply, const Inputs&... inputs) const {
    return apply_to_groups(
        [&apply](const Group& group, const auto&... parts) {
          return apply(*group.option, parts...);
        },
        inputs...);
  }
  /// The same with the whole group, models and option, before the parts.
  template <class Apply, class... Inputs>
  [[nodiscard]] torch::Tensor apply_to_groups(const Apply& apply, const Inputs&... inputs) const {
    const auto of_groups = models();
    const auto parts = split_models({inputs...}, of_groups);
    std::vector<torch::Tensor> results;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const auto of_group = [&]<std::size_t... kInput>(std::index_sequence<kInput...>) {
        return apply(groups_[i], parts[kInput][i]...);
      };
      results.push_back(of_group(std::index_sequence_for<Inputs...>()));
    }
    return join_models(results, of_groups);
  }

 private:
  std::vector<Group> groups_;
};

/// The scope of models given by their place in a scope.
ParameterScope scope_of(const ParameterScope& scope, const Models& places);

/// Models with one key, in the order of their first models.
std::vector<Models> models_by_key(const std::vector<std::string>& keys);

/// Makes the options of one layer of an array of models.
class OptionMaker {
 public:
  using Genes = std::initializer_list<std::string_view>;
  /// Whether the module of a mechanism's option may stand for several models.
  using Shares = std::function<bool(const Mechanism&)>;

  /// @param mechanisms  of the R models of the scope; outlives this.
  /// @param shape       of the layer; sizes of options are the mechanisms'.
  /// @param layer       from 0.
  OptionMaker(const std::vector<Mechanism>& mechanisms, const AttentionShape& shape,
              Semantics semantics, const ParameterScope& scope, std::int64_t layer = 0)
      : mechanisms_(mechanisms), context_{shape, semantics, layer}, scope_(scope) {}

  /// @param genes  what must agree, sizes included, in models that one module stands for: first the
  /// gene of the options.
  template <class Option>
  [[nodiscard]] OptionSet<Option> make(const OptionRegistry<Option>& registry, Genes genes,
                                       const Shares& shares = {}) const {
    return make_within(scope_, registry, genes, shares);
  }
  /// The same with parameters in another scope; no modules where the gene is none in all models.
  template <class Option>
  [[nodiscard]] OptionSet<Option> make_if_any(const OptionRegistry<Option>& registry,
                                              std::string_view gene,
                                              const ParameterScope& scope) const {
    return is_none(gene) ? OptionSet<Option>() : make_within(scope, registry, {gene}, {});
  }

 private:
  template <class Option>
  [[nodiscard]] OptionSet<Option> make_within(const ParameterScope& scope,
                                              const OptionRegistry<Option>& registry, Genes genes,
                                              const Shares& shares) const {
    OptionSet<Option> options;
    for (auto& models : groups(genes, shares)) {
      const auto& mechanism = mechanisms_[static_cast<std::size_t>(models.front())];
      auto context = context_;
      context.shape.sizes = mechanism;
      context.gene = *genes.begin();
      auto option =
          registry.at(key(*genes.begin(), mechanism)).make(context, scope_of(scope, models));
      options.add(std::move(models), std::move(option));
    }
    return options;
  }
  [[nodiscard]] static std::string key(std::string_view gene, const Mechanism& mechanism);
  [[nodiscard]] bool is_none(std::string_view gene) const;
  [[nodiscard]] std::vector<Models> groups(Genes genes, const Shares& shares) const;
  const std::vector<Mechanism>& mechanisms_;
  LayerContext context_;
  const ParameterScope& scope_;
};

}  // namespace nas::nn
