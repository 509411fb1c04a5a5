#pragma once

#include <string_view>

namespace nas {

/// Tells people on standard error, in a line of its own, of something that they should know and
/// that changes no result: "warning: TEXT". From any thread.
void warn(std::string_view text);

}  // namespace nas
