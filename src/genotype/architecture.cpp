#include "genotype/architecture.hpp"

#include <string>

#include "core/error.hpp"
#include "genotype/slots.hpp"

namespace nas {

namespace {

/// Sum over the mechanism's components of what `of` takes from each.
template <class Of>
auto sum_over_components(const Architecture& architecture, Of of) {
  decltype(of(std::declval<const Component&>())) sum{};
  for (const auto& gene : component_genes()) {
    sum += of(components().at(gene, architecture.mechanism.component(gene)));
  }
  return sum;
}

}  // namespace

void require_valid(const Architecture& architecture) {
  const auto positive = [](const char* name, std::int64_t value) {
    if (value < 1) {
      throw InputError(std::string(name) + " = " + std::to_string(value) + ", must be >= 1");
    }
  };
  positive("layers", architecture.layers);
  positive("width", architecture.width);
  positive("heads", architecture.heads);
  positive("context", architecture.context);
  positive("vocabulary", architecture.vocabulary);
  positive("feed_forward", architecture.feed_forward);
  if (architecture.width % architecture.heads != 0) {
    throw InputError("heads = " + std::to_string(architecture.heads) +
                     ", must divide width = " + std::to_string(architecture.width));
  }
}

std::int64_t num_non_embedding_parameters(const Architecture& architecture) {
  require_valid(architecture);
  const auto width = architecture.width;
  const auto hidden = width * architecture.feed_forward;
  const auto layer_norm = 2 * width;
  const auto projections =
      4 * width * width + width + (architecture.mechanism.bias ? 3 * width : 0);
  const auto added = sum_over_components(architecture, [&](const Component& component) {
    return component.parameters(architecture.attention_shape());
  });
  const auto feed_forward = 2 * width * hidden + hidden + width;
  return layer_norm + architecture.layers * (projections + added + feed_forward + 2 * layer_norm);
}

std::int64_t num_parameters(const Architecture& architecture) {
  return (architecture.vocabulary + architecture.context) * architecture.width +
         num_non_embedding_parameters(architecture);
}

double least_training_bytes(const Architecture& architecture, std::int64_t batch_size) {
  const auto width = static_cast<double>(architecture.width);
  const auto layers = static_cast<double>(architecture.layers);
  const auto context = static_cast<double>(architecture.context);
  const auto hidden = static_cast<double>(architecture.feed_forward);
  const double parameters = layers * (4.0 + 2.0 * hidden) * width * width +
                            (static_cast<double>(architecture.vocabulary) + context) * width;
  constexpr double kBytesPerParameter = 4 * sizeof(float);
  constexpr double kBytesPerValue = sizeof(float);
  return kBytesPerParameter * parameters + kBytesPerValue * layers *
                                               static_cast<double>(batch_size) * context * width *
                                               (4.0 + hidden);
}

double attention_flops(const Architecture& architecture) {
  require_valid(architecture);
  const auto tokens = static_cast<double>(architecture.context);
  const auto width = static_cast<double>(architecture.width);
  const double projections = 8.0 * tokens * width * width;
  const double weighted_sum = 2.0 * tokens * tokens * width;
  const double added = sum_over_components(architecture, [&](const Component& component) {
    return component.flops(architecture.attention_shape());
  });
  return static_cast<double>(architecture.layers) * (projections + weighted_sum + added);
}

double forward_flops(const Architecture& architecture) {
  const auto tokens = static_cast<double>(architecture.context);
  const auto width = static_cast<double>(architecture.width);
  const auto feed_forward = static_cast<double>(architecture.feed_forward);
  return attention_flops(architecture) +
         static_cast<double>(architecture.layers) * 4.0 * feed_forward * tokens * width * width +
         2.0 * tokens * width * static_cast<double>(architecture.vocabulary);
}

std::int64_t state_bytes(const Architecture& architecture) {
  require_valid(architecture);
  constexpr std::int64_t kFloat = 4;
  const auto added = sum_over_components(architecture, [&](const Component& component) {
    return component.state_bytes(architecture.attention_shape());
  });
  return architecture.layers * (2 * architecture.width * kFloat + added);
}

}  // namespace nas
