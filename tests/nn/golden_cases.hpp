// Reading golden cases, JSON Lines of layers and models with what naive loops gave, and comparing.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/slots.hpp"

namespace nas::test {

using Json = nlohmann::json;

/// @return the lines of a file, gzipped or not.
inline std::istringstream lines_of(const std::string& path) {
  const std::string command = "gzip -dcf '" + path + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 16U);
  for (std::size_t size = 0;
       (size = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;) {
    text.append(buffer.data(), size);
  }
  return std::istringstream(text);
}

/// The cases of a kind in some files that are there.
inline std::vector<Json> cases_of(const std::string& kind,
                                  const std::vector<std::filesystem::path>& files) {
  std::vector<Json> cases;
  for (const auto& file : files) {
    if (!std::filesystem::exists(file)) continue;
    auto lines = lines_of(file);
    for (std::string line; std::getline(lines, line);) {
      auto record = Json::parse(line);
      if (record.at("kind") == kind) cases.push_back(std::move(record));
    }
  }
  EXPECT_FALSE(cases.empty()) << files.front() << " has no cases of kind " << kind;
  return cases;
}

/// The cases of the wide space of a kind, in order of the file NAS_GOLDEN_SPACE, then those of
/// space_additions.jsonl beside it.
inline std::vector<Json> space_cases(const std::string& kind) {
  const char* given = std::getenv("NAS_GOLDEN_SPACE");
  if (given == nullptr) return {};
  const std::filesystem::path path(given);
  return cases_of(kind, {path, path.parent_path() / "space_additions.jsonl"});
}

/// The cases of the wide space are not part of the repository.
class SpaceCases : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("NAS_GOLDEN_SPACE") == nullptr) {
      GTEST_SKIP() << "NAS_GOLDEN_SPACE does not name a file of the wide space's golden cases";
    }
  }
};

/// Numbers, nested or not.
inline std::vector<double> flat(const Json& json) {
  if (!json.is_array()) return {json.get<double>()};
  std::vector<double> values;
  for (const auto& item : json) {
    for (const auto value : flat(item)) values.push_back(value);
  }
  return values;
}

/// @return numbers, or the "values" of a map, as a float64 tensor.
inline torch::Tensor tensor_of(const Json& json, at::IntArrayRef sizes) {
  return at::tensor(flat(json.is_object() ? json.at("values") : json),
                    at::TensorOptions(at::kDouble))
      .view(sizes);
}

/// In which mode and type a case of the wide space is computed, and how near it must come.
struct Way {
  NumericalMode mode;
  at::ScalarType type;
  double tolerance;  ///< relative to max(1, |expected|)

  [[nodiscard]] std::string text() const {
    return std::string(to_string(mode)) + " " + at::toString(type);
  }
};

inline const std::vector<Way>& ways() {
  static const std::vector<Way> all{{NumericalMode::reference, at::kDouble, 1e-9},
                                    {NumericalMode::exact, at::kDouble, 1e-9},
                                    {NumericalMode::reference, at::kFloat, 2e-5},
                                    {NumericalMode::exact, at::kFloat, 2e-5}};
  return all;
}

/// Element by element.
inline void expect_near(const torch::Tensor& actual, const torch::Tensor& expected, const Way& way,
                        const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  const auto scale = expected.abs().clamp_min(1.0);
  const auto error = ((actual.to(at::kDouble) - expected) / scale).abs().max().item<double>();
  EXPECT_LE(error, way.tolerance) << what;
}

/// Reads a layer's genes, those that its mixer has.
inline void read_genes(const Json& genes, Mechanism& layer) {
  for (const auto* slot : layer_slots()) {
    if (!genes.contains(slot->written)) continue;
    const auto& value = genes.at(slot->written);
    if (slot->is_integer()) {
      layer.set(*slot, value.get<std::int64_t>());
    } else if (slot->is_number()) {
      layer.set(*slot, value.get<double>());
    } else {
      layer.set(*slot, value.get<std::string>());
    }
  }
}

}  // namespace nas::test
