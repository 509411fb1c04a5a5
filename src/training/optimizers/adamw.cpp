#include "training/update_rule.hpp"

namespace nas {
namespace {

NAS_REGISTER_OPTIMIZER({.key = "adamw",
                        .summary = "moments of gradients, decoupled weight decay (Loshchilov & "
                                   "Hutter 2019, arXiv:1711.05101)",
                        .file = __FILE__},
                       [] { return std::shared_ptr<const UpdateRule>(); });

}  // namespace
}  // namespace nas
