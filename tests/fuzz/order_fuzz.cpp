// A line of nas-work: the order of a task, with the evaluation that it begins as, or a run's
// recorded configuration.

#include <nlohmann/json.hpp>

#include "evaluation/measurement.hpp"
#include "fuzz/fuzz.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/mechanism_name.hpp"
#include "study/reader/experiment.hpp"
#include "unit/paper_components.hpp"
#include "unit/stand_in_plugins.hpp"

namespace {

using nas::fuzz::require;
using nas::fuzz::taken;
using nlohmann::json;

/// Knows models by their names, and measures nothing.
class Names final : public nas::Measurement {
 public:
  nas::Candidate canonical(const nas::Genotype& genotype) const override {
    return nas::candidate_of(nas::architecture_of(genotype, {}));
  }
  nas::Candidate parse(const std::string& name) const override {
    return nas::candidate_of(nas::parse_unchecked(name, {}));
  }
  json identity() const override { return {{"problem", "names"}}; }
  void measure(const nas::Task& /*task*/, nas::Evaluation& /*evaluation*/) override {}
};

/// Calls what refuses by exceptions of JSON, too.
template <class Call>
void read(Call call) {
  try {
    taken(call);
  } catch (const json::exception&) {  // NOLINT(bugprone-empty-catch): answered as refused
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto line = json::parse(nas::fuzz::text(data, size), nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) return 0;
  read([&] { (void)nas::read_task(line.at("order").at("task"), Names()); });
  read([&] {
    const nas::Evaluation evaluation = line.at("order").at("evaluation");
    const json written = evaluation;
    const nas::Evaluation again = written;
    require(json(again) == written, "an evaluation reads back as itself");
  });
  read([&] {
    const auto config = line.at("config");
    if (config.is_object() && config.contains("plugins")) return;  // they would be loaded
    (void)nas::recorded_experiment(config);
  });
  return 0;
}
