#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

namespace nas {

/// What nas-model is given besides its command.
struct ModelOptions {
  static constexpr std::int64_t kNotGiven = -1;
  /// Longer than any sequence: no pattern shows all keys of it.
  static constexpr std::int64_t kUnlimited = 1'000'000'000;

  std::vector<std::string> text{};
  std::string split{}, output{};
  std::string prompt{};
  std::int64_t tokens = 20;
  double temperature = 0.8, top_p = 1.0;
  std::int64_t top_k = 0;
  std::int64_t seed = 1;
  std::int64_t width = kNotGiven, heads = kNotGiven, context = kUnlimited;
  std::string semantics = "corrected";
  std::vector<std::string> plugins{};
  bool greedy = false, help = false, version = false;
};

/// A command of nas-model.
/// @param of  its folder or name.   @return exit code.
int use_model(const std::string& command, const std::string& of, const ModelOptions& options,
              const boost::program_options::variables_map& given);

}  // namespace nas
