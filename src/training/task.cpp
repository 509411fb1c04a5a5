#include "training/task.hpp"

#include "core/error.hpp"

namespace nas {

std::shared_ptr<const LearningTask> next_token() { return tasks().at("next_token").make(Corpus()); }

std::shared_ptr<const LearningTask> task_of(const Corpus& corpus) {
  for (const auto& [name, windows] : corpus.further) {
    if (!name.starts_with("test_")) {
      throw InputError("corpus " + corpus.name + ": further split '" + name +
                       "', its name must begin with test_");
    }
    if (windows.size() == 0) {
      throw InputError("corpus " + corpus.name + ": split " + name +
                       " has 0 windows, must have at least 1");
    }
  }
  return tasks().at(corpus.task).make(corpus);
}

nlohmann::json task_facts(const Corpus& corpus, const LearningTask& task) {
  auto facts = nlohmann::json::object();
  for (const auto& [name, windows] : corpus.further) {
    facts["further_splits"][name] = {
        {"windows", windows.size()}, {"length", windows.length}, {"targets", windows.num_scored()}};
  }
  if (corpus.task == "next_token") return facts;
  facts["task"] = {{"name", corpus.task}, {"values", nlohmann::json::array()}};
  for (const auto& value : task.values()) {
    facts["task"]["values"].push_back(
        {{"name", value.name}, {"unit", value.unit}, {"maximise", value.maximise}});
  }
  return facts;
}

std::string unreadable_split(const Corpus& corpus, const Architecture& architecture) {
  if (architecture.genes.word("position_embedding") != "learned") return {};
  for (const auto& [name, windows] : corpus.further) {
    if (windows.length <= architecture.context) continue;
    return "split " + name + " of the corpus " + corpus.name + " has windows of " +
           std::to_string(windows.length) +
           " tokens, must be at most model.context = " + std::to_string(architecture.context) +
           " where position_embedding is learned; sinusoidal and none read longer ones";
  }
  return {};
}

void set_task_values(Evaluation& evaluation, const LearningTask& task,
                     const std::map<std::string, Scores>& further) {
  for (const auto& value : task.values()) {
    if (is_usable(evaluation)) {
      evaluation.values[value.name] = value.of(evaluation.curve.back().valid);
    }
    for (const auto& [split, scores] : further) {
      evaluation.values[split + "_" + value.name] = value.of(scores);
    }
  }
  for (const auto& [split, scores] : further) {
    evaluation.values[split + "_tokens"] = static_cast<double>(scores.tokens);
  }
}

}  // namespace nas
