#pragma once

#include <memory>
#include <utility>

#include "core/registry.hpp"
#include "core/visibility.hpp"
#include "genotype/component.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// Registers the Torch-free description of a part of a model and the module that computes it.
///
/// @tparam Module  derived from Part, constructible from what the registry's parts are made from.
template <class Module, class Part, class... Args>
bool register_part(Registry<std::unique_ptr<Part>(Args...)>& registry, Component component,
                   const char* file) {
  registry.add({.key = component.key, .summary = component.summary, .file = file},
               [](Args... args) -> std::unique_ptr<Part> {
                 return std::make_unique<Module>(std::forward<Args>(args)...);
               });
  return components().add(std::move(component));
}

}  // namespace nn
}  // namespace nas
