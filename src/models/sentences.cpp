#include "models/sentences.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "instruments/attention_analysis.hpp"
#include "models/analyse.hpp"

namespace nas {

namespace {

/// A text that is no UTF-8, as a part of a character, with marks in its place.
std::string readable(const std::string& text) {
  return nlohmann::json::parse(
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

nlohmann::json maps_json(const nn::HeadMaps& heads) {
  auto json = nlohmann::json::array();
  for (const auto& head : heads) {
    auto& rows = json.emplace_back(nlohmann::json::array());
    for (const auto& row : head) {
      auto& written = rows.emplace_back(nlohmann::json::array());
      for (const double weight : row) {
        written.push_back(std::isfinite(weight) ? nlohmann::json(rounded(weight))
                                                : nlohmann::json());
      }
    }
  }
  return json;
}

/// The same model in numerical mode reference, of which attention is recorded.
nn::Transformer of_reference(nn::Transformer& model) {
  const at::NoGradGuard no_grad;
  nn::Transformer made(model.array().architectures().front(), NumericalMode::reference);
  const auto from = model.parameters();
  const auto to = made.parameters();
  for (std::size_t i = 0; i < to.size(); ++i) to[i].second.copy_(from[i].second);
  return made;
}

}  // namespace

double rounded(double value) {
  std::array<char, 32> text{};
  const auto* end =
      std::to_chars(text.begin(), text.end(), value, std::chars_format::general, 3).ptr;
  std::from_chars(text.begin(), end, value);
  return value;
}

nlohmann::json sentence_json(nn::Transformer& model, const std::vector<std::int64_t>& ids,
                             const TextOfIds& text) {
  nlohmann::json json{{"tokens", nlohmann::json::array()}, {"layers", nlohmann::json::array()}};
  for (const auto id : ids) json["tokens"].push_back(readable(text({id})));
  for (const auto& layer : nn::attention_maps(model, ids)) {
    json["layers"].push_back({{"layer", layer.layer}, {"maps", maps_json(layer.heads)}});
  }
  return json;
}

void write_sentences(ModelFolder& model, const std::string& name,
                     const std::vector<std::string>& sentences,
                     const std::filesystem::path& folder) {
  if (!model.text) {
    throw InputError(name + ": the tokens of this model are no text; nas-analyse looks into it");
  }
  const auto& architecture = model.model.array().architectures().front();
  const auto most = architecture.genes.position_embedding == "learned"
                        ? std::min(kSentenceTokens, architecture.context)
                        : kSentenceTokens;
  auto reference = of_reference(model.model);
  auto written = nlohmann::json::array();
  for (const auto& sentence : sentences) {
    const auto ids = model.text->prompt(sentence);
    if (ids.empty()) throw InputError("--text needs a word: the model begins inside a line");
    if (std::ssize(ids) > most) {
      throw InputError("--text has " + std::to_string(ids.size()) + " tokens, must have at most " +
                       std::to_string(most));
    }
    written.push_back(
        sentence_json(reference, ids, [&](const auto& some) { return model.text->text(some); }));
  }
  if (written.front().at("layers").empty()) {
    throw InputError(name + ": no layer of this model attends");
  }
  auto layers = nlohmann::json::array();
  for (std::int64_t i = 0; i < architecture.layers; ++i) {
    layers.push_back({{"layer", i}, {"mixer", architecture.layer(i).mixer}});
  }
  const nlohmann::json json{{"schema", kAnalysisSchema},
                            {"mechanism", model.config.at("mechanism")},
                            {"candidate", model.config.at("candidate")},
                            {"weights", "of " + readable(name)},
                            {"model", nlohmann::json::object()},
                            {"layers", std::move(layers)},
                            {"sentences", std::move(written)}};
  make_folder(folder);
  write_durably(folder / "attention.json", json.dump() + "\n");
}

}  // namespace nas
