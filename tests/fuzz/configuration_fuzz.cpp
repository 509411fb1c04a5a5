// A configuration, and after each NUL an override: YAML to an Experiment, or what is wrong with it.

#include "fuzz/fuzz.hpp"
#include "study/reader/experiment.hpp"
#include "unit/paper_components.hpp"
#include "unit/stand_in_plugins.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto overrides = nas::fuzz::parts(nas::fuzz::text(data, size));
  const auto yaml = overrides.front();
  overrides.erase(overrides.begin());
  nas::fuzz::taken([&] {
    const auto document = nas::read_document(yaml, "fuzz.yaml", overrides, nas::plugin_sections());
    if (document.find("plugins") != nullptr) return;  // they would be loaded
    nas::Diagnostics mistakes;
    const auto experiment = nas::read_experiment(document, "fuzz.yaml", mistakes);
    if (mistakes.size() > 0) return mistakes.throw_if_any();
    // A record of it can be read again, and says the same.
    const auto recorded = nlohmann::json::parse(experiment.resolved.dump());
    const auto again = nas::recorded_experiment(recorded);
    nas::fuzz::require(nas::differing_keys(recorded, again.resolved).empty(),
                       "the record is that of the experiment");
  });
  return 0;
}
