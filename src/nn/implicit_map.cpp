#include "nn/implicit_map.hpp"

#include <cstdint>
#include <vector>

#include "nn/recurrence.hpp"

namespace nas::nn {

torch::Tensor implicit_map(const Recurrence& sequence, const torch::Tensor& write) {
  const auto tokens = sequence.keys.size(2);
  const auto units = at::eye(tokens, sequence.keys.options().dtype(at::kDouble));
  std::vector<torch::Tensor> maps;
  for (std::int64_t b = 0; b < sequence.keys.size(0); ++b) {
    const auto of_one = [b](const torch::Tensor& x) {
      return x.defined() ? x[b].to(at::kDouble) : x;
    };
    const auto keys = of_one(sequence.keys);
    const auto values = units.expand({keys.size(0), tokens, tokens});
    maps.push_back(by_chunks({.queries = of_one(sequence.queries),
                              .keys = keys,
                              .values = write.defined() ? values * of_one(write) : values,
                              .log_decays = of_one(sequence.log_decays),
                              .erased = of_one(sequence.erased),
                              .by_channel = sequence.by_channel})
                       .outputs.tril());
  }
  return at::stack(maps);
}

}  // namespace nas::nn
