#include "ops/fast_products.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "core/error.hpp"
#include "kernels/product.hpp"

namespace nas::nn {

namespace {

constexpr const char* kVariable = "NAS_FAST_PRODUCTS";
constexpr std::string_view kFrom = " from ", kWeights = " weights";
constexpr std::array<std::pair<std::string_view, FastProducts::By>, 3> kNames{
    {{"float32", FastProducts::By::float32},
     {"pairs", FastProducts::By::pairs},
     {"LibTorch", FastProducts::By::library}}};

bool has_tiles() {
#if defined(__x86_64__)
  constexpr unsigned kFeatures = 7, kBfloat16Tiles = 1U << 22U;  // of edx
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (d & kBfloat16Tiles) != 0;
#else
  return false;
#endif
}

double seconds_of_thread() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Least time of a map's three products, conversions included; whoever else uses the core does not count.
double seconds_of(FastProducts::By by, std::int64_t rows, std::int64_t in, std::int64_t out) {
  const auto x = at::ones({1, rows, in}), weight = at::ones({1, out, in});
  const auto by_y = at::ones({1, rows, out});
  double least = 0.0;
  for (int i = 0; i < 4; ++i) {
    const double begin = seconds_of_thread();
    try_products(by, x, weight, by_y);
    const double seconds = seconds_of_thread() - begin;
    if (i > 0) least = i == 1 ? seconds : std::min(least, seconds);  // the first touches memory
  }
  return least;
}

FastProducts measured() {
  using By = FastProducts::By;
  std::vector<By> rivals;
  if (kernels::has_pair_products()) rivals.push_back(By::pairs);
  if (has_tiles()) rivals.push_back(By::library);
  if (rivals.empty()) return {};
  constexpr double kGain = 0.9;
  constexpr std::int64_t kWide = 128, kNarrow = 48;
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto of_wide = [](By by) {
    return seconds_of(by, 256, kWide, kWide) + seconds_of(by, 128, kWide, 1024);
  };
  FastProducts found;
  double least = kGain * of_wide(By::float32);
  for (const auto by : rivals) {
    if (const auto seconds = of_wide(by); seconds < least) {
      least = seconds;
      found.by = by;
    }
  }
  if (found.by != By::float32 && seconds_of(found.by, 256, kNarrow, kNarrow) >=
                                     kGain * seconds_of(By::float32, 256, kNarrow, kNarrow)) {
    found.least = kWide * kWide;
  }
  at::set_num_threads(threads);
  return found;
}

FastProducts& chosen() {
  static FastProducts products = [] {
    if (!fast_products_are_given()) return measured();
    const std::string_view value = std::getenv(kVariable);
    if (const auto given = parse_fast_products(value)) return *given;
    throw InputError(std::string(kVariable) + " = " + std::string(value) +
                     ", must be float32, pairs or LibTorch, the latter two perhaps with \" from N "
                     "weights\"");
  }();
  return products;
}

}  // namespace

std::string to_string(const FastProducts& products) {
  std::string text;
  for (const auto& [name, by] : kNames) {
    if (by == products.by) text = name;
  }
  if (products.least == 0) return text;
  return text + std::string(kFrom) + std::to_string(products.least) + std::string(kWeights);
}

std::optional<FastProducts> parse_fast_products(std::string_view text) {
  FastProducts products;
  const auto end = text.find(kFrom);
  const auto* const found = std::find_if(kNames.begin(), kNames.end(), [&](const auto& known) {
    return known.first == text.substr(0, end);
  });
  if (found == kNames.end()) return std::nullopt;
  products.by = found->second;
  if (end == std::string_view::npos) return products;
  text.remove_prefix(end + kFrom.size());
  if (products.by == FastProducts::By::float32 || !text.ends_with(kWeights)) return std::nullopt;
  text.remove_suffix(kWeights.size());
  const auto* const last = text.data() + text.size();
  const auto read = std::from_chars(text.data(), last, products.least);
  if (read.ec != std::errc() || read.ptr != last || products.least < 1) return std::nullopt;
  return products;
}

const FastProducts& fast_products() { return chosen(); }

void use_fast_products(const FastProducts& products) { chosen() = products; }

bool fast_products_are_given() {
  const char* value = std::getenv(kVariable);
  return value != nullptr && *value != '\0';
}

}  // namespace nas::nn
