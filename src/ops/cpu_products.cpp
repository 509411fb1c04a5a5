#include "ops/cpu_products.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "core/error.hpp"
#include "core/thread_clock.hpp"
#include "kernels/pairs.hpp"

namespace nas::nn {

namespace {

using Way = CpuProducts::By;

constexpr std::string_view kFrom = " from ", kWeights = " weights";
constexpr std::array<std::pair<std::string_view, Way>, 4> kNames{{{"float32", Way::float32},
                                                                  {"pairs", Way::pairs},
                                                                  {"tiles", Way::tiles},
                                                                  {"LibTorch", Way::library}}};

const char* variable(NumericalMode mode) {
  return mode == NumericalMode::fast   ? "NAS_FAST_PRODUCTS"
         : mode == NumericalMode::tf32 ? "NAS_TF32_PRODUCTS"
                                       : "NAS_EXACT_PRODUCTS";
}

/// Least time of a map's three products, conversions included; whoever else uses the core does not count.
double seconds_of(NumericalMode mode, Way by, std::int64_t rows, std::int64_t in,
                  std::int64_t out) {
  const auto x = at::ones({1, rows, in}), weight = at::ones({1, out, in});
  const auto by_y = at::ones({1, rows, out});
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  double least = 0.0;
  for (int i = 0; i < 4; ++i) {
    const double begin = thread_cpu_seconds();
    try_products(mode, by, x, weight, by_y);
    const double seconds = thread_cpu_seconds() - begin;
    if (i > 0) least = i == 1 ? seconds : std::min(least, seconds);  // the first touches memory
  }
  at::set_num_threads(threads);
  return least;
}

CpuProducts measured(NumericalMode mode) {
  const auto seconds = [mode](Way by, bool wide) {
    return wide ? seconds_of(mode, by, 256, 128, 128) + seconds_of(mode, by, 128, 128, 1024)
                : seconds_of(mode, by, 256, 48, 48);
  };
  return fastest_products(mode, kernels::has_pair_products(),
                          kernels::has_pair_products(/*tiles=*/true), seconds);
}

CpuProducts taken(NumericalMode mode) {
  if (!are_cpu_products_given(mode)) return measured(mode);
  const std::string_view value = std::getenv(variable(mode));
  if (const auto given = parse_cpu_products(mode, value)) return *given;
  throw InputError(std::string(variable(mode)) + " = " + std::string(value) + ", must be float32" +
                   (mode == NumericalMode::fast ? ", pairs, tiles or LibTorch" : " or tiles") +
                   ", all but the first perhaps with \" from N weights\"");
}

/// Of each mode when it is first asked for.
template <NumericalMode kMode>
CpuProducts& kept() {
  static CpuProducts products = taken(kMode);
  return products;
}

CpuProducts& chosen(NumericalMode mode) {
  static CpuProducts reference;
  if (mode == NumericalMode::exact) return kept<NumericalMode::exact>();
  if (mode == NumericalMode::tf32) return kept<NumericalMode::tf32>();
  return mode == NumericalMode::fast ? kept<NumericalMode::fast>() : reference;
}

}  // namespace

std::string to_string(const CpuProducts& products) {
  std::string text;
  for (const auto& [name, by] : kNames) {
    if (by == products.by) text = name;
  }
  if (products.least == 0) return text;
  return text + std::string(kFrom) + std::to_string(products.least) + std::string(kWeights);
}

std::optional<CpuProducts> parse_cpu_products(NumericalMode mode, std::string_view text) {
  CpuProducts products;
  const auto end = text.find(kFrom);
  const auto* const found = std::find_if(kNames.begin(), kNames.end(), [&](const auto& known) {
    return known.first == text.substr(0, end);
  });
  if (found == kNames.end()) return std::nullopt;
  products.by = found->second;
  const bool of_fast = products.by == Way::pairs || products.by == Way::library;
  if (of_fast && mode != NumericalMode::fast) return std::nullopt;
  if (end == std::string_view::npos) return products;
  text.remove_prefix(end + kFrom.size());
  if (products.by == Way::float32 || !text.ends_with(kWeights)) return std::nullopt;
  text.remove_suffix(kWeights.size());
  const auto* const last = text.data() + text.size();
  const auto read = std::from_chars(text.data(), last, products.least);
  if (read.ec != std::errc() || read.ptr != last || products.least < 1) return std::nullopt;
  return products;
}

CpuProducts fastest_products(NumericalMode mode, bool has_pairs, bool has_tiles,
                             const std::function<double(Way, bool wide)>& seconds) {
  constexpr double kGain = 0.9;
  const bool fast = mode == NumericalMode::fast;
  CpuProducts found;
  double least = 0.0;
  for (const auto& [by, had] : {std::pair{Way::pairs, fast && has_pairs},
                                {Way::library, fast && has_tiles},
                                {Way::tiles, has_tiles}}) {
    if (!had) continue;
    if (least == 0.0) least = kGain * seconds(Way::float32, true);
    if (const auto time = seconds(by, true); time < least) {
      least = time;
      found.by = by;
    }
  }
  if (found.by != Way::float32 &&
      seconds(found.by, false) >= kGain * seconds(Way::float32, false)) {
    found.least = std::int64_t{128} * 128;
  }
  return found;
}

const CpuProducts& cpu_products(NumericalMode mode) { return chosen(mode); }

CpuProducts use_cpu_products(NumericalMode mode, const CpuProducts& products) {
  return std::exchange(chosen(mode), products);
}

bool are_cpu_products_given(NumericalMode mode) {
  const char* value = std::getenv(variable(mode));
  return value != nullptr && *value != '\0';
}

kernels::PairForm pair_form(NumericalMode mode, Way by) {
  if (by == Way::pairs) return kernels::pair_form();
  const int parts = mode == NumericalMode::exact ? 3 : mode == NumericalMode::tf32 ? 2 : 1;
  return kernels::pair_form(/*tiles=*/true, parts);
}

}  // namespace nas::nn
