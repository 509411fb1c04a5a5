#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/numerical_mode.hpp"
#include "core/visibility.hpp"
#include "genotype/architecture.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// What of a model is run: all of it, from tokens to logits; one attention layer alone; or the model
/// for the last token of a sequence alone, with the state of the tokens before (nn/decoder.hpp).
enum class Part { model, attention, step };
/// @throws InputError unless "model" or "attention".
Part parse_part(const std::string& text);

/// Sizes and place of a forward pass.
struct PassSettings {
  Part part = Part::attention;
  std::int64_t batch = 1;    ///< sequences, >= 1
  std::int64_t context = 0;  ///< tokens per sequence; 0 = the architecture's; may be longer. For a
                             ///< step the last is its own.
  std::string device = "cpu";                           ///< "cpu", "cuda", "cuda:0", ...
  NumericalMode numerical_mode = NumericalMode::exact;  ///< of a step always reference: kernels are
                                                        ///< for many tokens
};

/// A forward pass that is ready to be run again and again: without gradients, in evaluation mode
/// (no dropout), always over the same input. Parameters have the initial values of a training run
/// of seed 1, so that no value depends on what memory held before.
class ForwardPass {
 public:
  /// Of a step, the state is made token by token: it takes as many steps as there are tokens.
  /// @throws InputError for sizes below 1 or an architecture that is not valid, CandidateFailure for
  /// a step of a model that cannot be decoded.
  ForwardPass(const Architecture& architecture, const PassSettings& settings);
  ~ForwardPass();
  ForwardPass(ForwardPass&&) noexcept;
  ForwardPass& operator=(ForwardPass&&) noexcept;

  /// Makes ready for the next run, which is then the same as the first, and waits until the device
  /// is done: of a step, the state is what it was before. Nothing for other parts.
  void prepare();
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

}  // namespace nn
}  // namespace nas
