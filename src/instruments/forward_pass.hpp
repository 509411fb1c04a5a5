#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/numerical_mode.hpp"
#include "genotype/architecture.hpp"

namespace nas::nn {

/// What of a model is run: all of it, from tokens to logits, or one attention layer alone.
enum class Part { model, attention };
/// @throws InputError unless "model" or "attention".
Part parse_part(const std::string& text);

/// Sizes and place of a forward pass.
struct PassSettings {
  Part part = Part::attention;
  std::int64_t batch = 1;      ///< sequences, >= 1
  std::int64_t context = 0;    ///< tokens per sequence; 0 = the architecture's; may be longer
  std::string device = "cpu";  ///< "cpu", "cuda", "cuda:0", ...
  NumericalMode numerical_mode = NumericalMode::exact;
};

/// A forward pass that is ready to be run again and again: without gradients, in evaluation mode
/// (no dropout), always over the same input. Parameters have the initial values of a training run
/// of seed 1, so that no value depends on what memory held before.
class ForwardPass {
 public:
  /// @throws InputError for sizes below 1 or an architecture that is not valid.
  ForwardPass(const Architecture& architecture, const PassSettings& settings);
  ~ForwardPass();
  ForwardPass(ForwardPass&&) noexcept;
  ForwardPass& operator=(ForwardPass&&) noexcept;

  /// Runs it once and waits until the device is done.
  void operator()();
  /// Gives it to the device's current stream and does not wait; on the CPU it is done then.
  void enqueue();
  /// @return tokens of one sequence.
  [[nodiscard]] std::int64_t context() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Sets the number of threads of Torch's operators that the constructing thread calls, and resets
/// it at the end.
class ThreadScope {
 public:
  /// @throws InputError unless threads >= 1.
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

}  // namespace nas::nn
