#include "kernels/instruction_set.hpp"

// clang-format off: the list of targets comes before the library.
#include "kernels/targets.hpp"
// clang-format on

#include <stdexcept>

#include <hwy/highway.h>

namespace nas::kernels {

namespace {

/// Targets are bits, the lower the better.
std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> found;
  auto rest = static_cast<std::uint64_t>(HWY_TARGETS & hwy::SupportedTargets());
  for (; rest != 0; rest &= rest - 1) {
    found.push_back(static_cast<std::int64_t>(rest & (~rest + 1)));
  }
  return found;
}

}  // namespace

namespace {

/// Undoes use_instruction_set().
void use_best() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

std::string instruction_set() { return hwy::TargetName(targets().front()); }

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const auto target : targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void use_instruction_set(const std::string& name) {
  use_best();
  for (const auto target : targets()) {
    if (hwy::TargetName(target) != name) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return;
  }
  throw std::invalid_argument("instruction set " + name + " is not available here");
}

}  // namespace nas::kernels
