#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/registry.hpp"
#include "core/visibility.hpp"
#include "genotype/component.hpp"
#include "genotype/semantics.hpp"
#include "ops/parameter.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// What the options of one layer are built from.
struct LayerContext {
  AttentionShape shape;  ///< with the sizes of the option's models
  Semantics semantics = Semantics::corrected;
  std::int64_t layer = 0;   ///< from 0
  std::string_view gene{};  ///< that the option is of, where several have it
};

/// The modules behind the component registry's descriptions, by key.
template <class Option>
using OptionRegistry =
    Registry<std::unique_ptr<Option>(const LayerContext&, const ParameterScope&)>;

/// Whether a module has its own form for the fused kernels.
template <class Module, class Option>
constexpr bool has_fused_form() {
  if constexpr (requires { &Option::fused; }) {
    return !std::is_same_v<decltype(&Module::fused), decltype(&Option::fused)>;
  }
  return false;
}

/// Whether a module gates the input of its layer.
template <class Module, class Option>
constexpr bool gates_input() {
  if constexpr (requires { &Option::gated_input; }) {
    return !std::is_same_v<decltype(&Module::gated_input), decltype(&Option::gated_input)>;
  }
  return false;
}

/// Registers a part's module. @tparam Module  constructible from what the registry's parts are made
/// from, options from (LayerContext, ParameterScope), or from nothing.
template <class Module, class Part, class... Args>
void register_module(Registry<std::unique_ptr<Part>(Args...)>& registry, const Component& component,
                     const char* file) {
  registry.add({.key = component.key, .summary = component.summary, .file = file},
               []([[maybe_unused]] Args... args) -> std::unique_ptr<Part> {
                 if constexpr (std::is_constructible_v<Module, Args...>) {
                   return std::make_unique<Module>(std::forward<Args>(args)...);
                 } else {
                   return std::make_unique<Module>();
                 }
               });
}

/// Registers a part's Torch-free description and its module. For the macros of parts.
template <class Module, class Part, class... Args>
bool register_option(Registry<std::unique_ptr<Part>(Args...)>& registry, Component component,
                     const char* file) {
  register_module<Module>(registry, component, file);
  if constexpr (requires { &Part::fused; }) component.fused = has_fused_form<Module, Part>();
  component.gates_input = gates_input<Module, Part>();
  return components().add(std::move(component));
}

// The arguments after the class are designated initialisers of nas::Component, without its gene.
#define NAS_REGISTER_OPTION(registry, gene_name, Class, ...)                            \
  [[maybe_unused]] const bool k##Class##Registered = ::nas::nn::register_option<Class>( \
      registry, ::nas::Component{.gene = gene_name, __VA_ARGS__}, __FILE__)

}  // namespace nn
}  // namespace nas
