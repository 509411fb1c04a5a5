#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "convert/hybrid.hpp"
#include "convert/probe.hpp"
#include "convert/stage_one.hpp"

namespace nas {

/// What one placement says of one document and the probes beside it, in comparison with the teacher.
struct Assessment {
  double kl = 0.0;         ///< mean over the document's tokens of KL(teacher || placement), nats
  double text_nll = 0.0;   ///< mean -log p of its targets, nats
  double text_loss = 0.0;  ///< mean -log p of its targets, less the teacher's, nats
  double agreement = 0.0;  ///< share of its tokens at which both have one likeliest next token
  double recall =
      0.0;  ///< mean over the probes of the mean -log p of the answers, less the teacher's, nats
  double recall_margin = 0.0;  ///< mean over the probes of by how much likelier an answer is to the
                               ///< teacher than another answer of the same probe, nats
};

/// The mean of so many.
Assessment mean_of(std::int64_t count, const std::function<Assessment(std::int64_t)>& assess);

/// The samples of a replicate: a document first, then probes.
using Samples = std::vector<Sample>;

/// Assesses placements of one teacher. What is below the first layer that differs is kept of the teacher, as are its
/// probabilities of the last documents. Called by several threads.
///
/// Cost of a placement: the forward passes of the samples from that layer on, and of the document's output layer.
class Assessor {
 public:
  /// @param samples  those of a replicate; called once each, by one thread at a time.
  /// @param room     bytes that may be kept of documents; one is kept in any case.
  /// @param learned  what blocks have learned; nullptr: nothing. Outlives it.
  Assessor(const Conversion& conversion, const Weights& weights, NumericalMode mode,
           std::function<Samples(std::int64_t replicate)> samples, double room,
           LearnedBlocks* learned = nullptr);

  /// @param learns  the replicate whose blocks have learned, where it is another one; -1: that of the samples.
  [[nodiscard]] Assessment assess(const Placement& placement, std::int64_t replicate,
                                  std::int64_t learns = -1);
  /// The same of a model with weights of its own, computed by the caller alone.
  [[nodiscard]] Assessment assess(nn::TransformerArray& hybrid, std::int64_t replicate);
  /// The same of blocks as they begin.
  [[nodiscard]] Assessment assess_untrained(const Placement& placement, std::int64_t replicate);
  /// Of what is kept of replicates.
  [[nodiscard]] double kept_bytes();
  /// Milliseconds that the placement takes for one token of one sequence with so many before it, on this machine: those of
  /// its layers, each form of which is measured once, and of the output layer.
  [[nodiscard]] double decode_milliseconds(const Placement& placement, std::int64_t tokens);
  /// The sum over layers of what each block costs where it alone is in the model: what assess() would be if losses
  /// added up. Each of these is assessed once.
  [[nodiscard]] Assessment added_up(const Placement& placement, std::int64_t replicate,
                                    std::int64_t learns = -1);

 private:
  /// What is kept of a sample.
  struct Known {
    Sample sample;
    std::vector<torch::Tensor> streams{};  ///< before each layer
    torch::Tensor asked{};                 ///< places that have a target
    torch::Tensor targets{};               ///< of these
    torch::Tensor log_probabilities{};     ///< of a document, (T, V)
    torch::Tensor likeliest{};             ///< of a document, (T)
    double nll = 0.0, margin = 0.0;        ///< the teacher's
  };
  using Replicate = std::vector<Known>;

  [[nodiscard]] std::shared_ptr<const Replicate> known(std::int64_t replicate, HybridModel& model);
  [[nodiscard]] static double bytes_of(const Replicate& samples);
  [[nodiscard]] Known look_at(const Sample& sample, bool document, HybridModel& model) const;
  /// Calls with a model that no other thread computes with. @param seed  of what its blocks have learned, or kUntrained.
  template <class Call>
  auto with_model(std::int64_t seed, const Call& call);
  Assessment assess(const Placement& placement, std::int64_t replicate, HybridModel& model);
  /// The means over samples of what features say of each, (N, D). @param output  what makes logits of them, (1, V, D).
  [[nodiscard]] Assessment compared(
      const Replicate& samples, const torch::Tensor& output,
      const std::function<torch::Tensor(const Known&)>& features) const;

  const Conversion& conversion_;
  const Weights& weights_;
  NumericalMode mode_;
  std::function<Samples(std::int64_t)> samples_;
  double room_;
  LearnedBlocks* learned_;
  std::mutex making_, lending_;
  std::list<std::pair<std::int64_t, std::shared_ptr<const Replicate>>>
      kept_;                                                          // the last used first
  std::multimap<std::int64_t, std::unique_ptr<HybridModel>> models_;  // by their seed
  std::mutex timing_;
  std::map<std::string, double> times_;  // by the form of a layer
  std::mutex adding_;
  std::map<std::tuple<std::int64_t, std::int64_t, Placement>, Assessment>
      alone_;  // of a replicate, whose blocks have learned, and one block
};

}  // namespace nas
