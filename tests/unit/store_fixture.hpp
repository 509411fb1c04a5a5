#pragma once

#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "store/store.hpp"

namespace nas {

class StoreTest : public ::testing::Test {
 protected:
  static Evaluation example(const std::string& id = "e1") {
    Evaluation evaluation;
    evaluation.id = id;
    evaluation.candidate = "dot|softmax|none|fixed|bias|0.1";
    evaluation.replicate = 2;
    evaluation.identity = {{"candidate", evaluation.candidate}, {"rate", 0.1}};
    evaluation.status = Status::diverged;
    evaluation.reason = "it's not finite";
    CurvePoint point;
    point.step = 50;
    point.train_nll = std::numeric_limits<double>::quiet_NaN();
    point.valid.nll = std::numeric_limits<double>::infinity();
    point.valid.tokens = 7;
    point.valid.unknown_nll = 1.0 / 3.0;
    point.seconds = 1.25;
    evaluation.curve = {point};
    evaluation.values = {{"perplexity", 0.1 + 0.2}, {"parameters", 1693184.0}};
    evaluation.measured = {{"pid", 7}, {"train_seconds", 1.25}};
    return evaluation;
  }
  /// A training run that is paused at a step.
  static Evaluation paused(Evaluation evaluation, std::int64_t step) {
    evaluation.status = Status::paused;
    evaluation.reason.clear();
    evaluation.curve.back().step = step;
    return evaluation;
  }
  static Evaluation with_status(const std::string& id, Status status) {
    auto evaluation = example(id);
    evaluation.status = status;
    return evaluation;
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  fs::path file_ = folder_ / "store.sqlite";
};

}  // namespace nas
