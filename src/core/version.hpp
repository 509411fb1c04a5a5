#pragma once

namespace nas {

/// "0.1.0"
extern const char* const kVersion;
/// The commit that was configured last, "unknown" outside a git checkout.
extern const char* const kRevision;

}  // namespace nas
