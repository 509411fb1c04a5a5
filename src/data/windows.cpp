#include <algorithm>
#include <iterator>

#include "data/corpus.hpp"

namespace nas {

void Windows::read(std::int64_t i, std::int64_t offset, std::int64_t* input,
                   std::int64_t* target) const {
  const std::int64_t end = std::ssize(tokens);
  const std::int64_t begin = starts[static_cast<std::size_t>(i)] + offset;
  const auto token = [&](std::int64_t position, std::int64_t otherwise) {
    return position < end ? tokens[static_cast<std::size_t>(position)] : otherwise;
  };
  for (std::int64_t t = 0; t < length; ++t) {
    input[t] = token(begin + t, 0);
    target[t] = token(begin + t + 1, kNotScored);
  }
  if (last_target >= 0) target[length - 1] = last_target;
  if (!targets.empty()) std::copy_n(targets.begin() + i * length, length, target);
}

std::int64_t Windows::num_scored() const {
  std::vector<std::int64_t> input(static_cast<std::size_t>(length));
  std::vector<std::int64_t> target(input.size());
  std::int64_t scored = 0;
  for (std::int64_t i = 0; i < size(); ++i) {
    read(i, 0, input.data(), target.data());
    scored += length - std::count(target.begin(), target.end(), kNotScored);
  }
  return scored;
}

std::vector<std::int32_t> next_token_targets(const Windows& windows) {
  std::vector<std::int32_t> targets;
  targets.reserve(windows.starts.size() * static_cast<std::size_t>(windows.length));
  const std::int64_t end = std::ssize(windows.tokens);
  for (const auto start : windows.starts) {
    for (std::int64_t t = 1; t <= windows.length; ++t) {
      const bool is_inside = t < windows.length && start + t < end;
      targets.push_back(is_inside ? windows.tokens[static_cast<std::size_t>(start + t)]
                                  : static_cast<std::int32_t>(kNotScored));
    }
  }
  return targets;
}

}  // namespace nas
