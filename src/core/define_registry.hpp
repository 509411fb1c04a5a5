#pragma once

/// Defines the accessor of a kind of plug-ins: NAS_DEFINE_REGISTRY(TaskRegistry, tasks, "task").
#define NAS_DEFINE_REGISTRY(Registry, accessor, kind) \
  Registry& accessor() {                              \
    static Registry registry(kind);                   \
    return registry;                                  \
  }
