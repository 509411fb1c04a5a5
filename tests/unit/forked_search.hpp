#pragma once

#include <tbb/global_control.h>

namespace nas::testing {

/// For tests that fork and search in the child. A forked process has none of its parent's threads;
/// pagmo checks points with those of TBB, and would wait for them for ever, so TBB starts none here.
inline const tbb::global_control kNoThreadsOfTbb(tbb::global_control::max_allowed_parallelism, 1);

}  // namespace nas::testing
