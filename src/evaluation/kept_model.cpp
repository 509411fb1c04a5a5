#include "evaluation/kept_model.hpp"

#include <nlohmann/json.hpp>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "store/record_json.hpp"

namespace nas {

namespace {

using Json = nlohmann::json;

/// @throws InputError where a description is not of this evaluation.
void expect_of(const Json& description, const Evaluation& evaluation) {
  if (!description.is_object()) throw InputError("is no map");
  const auto expect = [](const std::string& name, const Json& found, const Json& recorded) {
    if (found != recorded) {
      throw InputError(name + " = " + found.dump() + ", must be " + recorded.dump() +
                       " as recorded: it is damaged, or of another training run");
    }
  };
  expect("candidate", description.value("candidate", Json()), evaluation.candidate);
  expect("replicate", description.value("replicate", Json()), evaluation.replicate);
  const auto values = description.value("values", Json::object());
  if (!values.is_object()) throw InputError("values = " + values.dump() + ", must be a map");
  for (const auto& [name, value] : values.items()) {
    const auto recorded = evaluation.values.find(name);
    if (recorded != evaluation.values.end()) expect("values." + name, value, recorded->second);
  }
}

}  // namespace

std::string kept_digest(const std::filesystem::path& weights, const Evaluation& evaluation) {
  auto file = weights;
  file.replace_extension(".json");
  if (!std::filesystem::exists(file)) return {};  // it is written after the weights
  try {
    const auto description = parse_record(read_bytes(file));
    expect_of(description, evaluation);
    const auto digest = description.value("sha256", Json(""));
    if (digest.is_string()) return digest;
    throw InputError("sha256 = " + digest.dump() + ", must be a text");
  } catch (const InputError& error) {
    throw InputError(file.string() + ": " + error.what());
  }
}

}  // namespace nas
