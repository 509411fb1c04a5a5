#include "models/model_folder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/plugin.hpp"
#include "core/words.hpp"
#include "data/text.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/slots.hpp"
#include "models/safetensors.hpp"
#include "store/record_json.hpp"

namespace nas {

namespace {

using Json = nlohmann::ordered_json;

struct SourceFile {
  std::string_view name, text;
};

/// The model in PyTorch.
constexpr std::array<SourceFile, 5> kSourceFiles{{
    {
        "model.py",
#include "model_py.hpp"
    },
    {
        "model_attention.py",
#include "model_attention_py.hpp"
    },
    {
        "model_heads.py",
#include "model_heads_py.hpp"
    },
    {
        "model_positions.py",
#include "model_positions_py.hpp"
    },
    {
        "model_recurrent.py",
#include "model_recurrent_py.hpp"
    },
}};

/// What reads a tokenizer.json, in folders that have one.
constexpr std::string_view kModelTokens =
#include "model_tokens_py.hpp"
    ;

/// In the place of config.json's own digest, while that is computed.
const std::string kNoDigest(64, '0');

Json value_json(const Slot& slot, const std::string& value) {
  if (slot.is_integer()) return std::stoll(value);
  if (slot.is_number()) return std::stod(value);
  return value;
}

/// Whether a layer is built from the gene: those of the mixer that say something.
bool is_told(const Slot& slot, const Mechanism& layer) {
  // The feed-forward layer's genes are told as its kind and width.
  for (const auto* other : {"mixer", "heads", "ffn", "ratio"}) {
    if (slot.name == other) return false;
  }
  if (is_text(slot)) return false;  // a part, told as a layer
  const bool attention = layer.word("mixer") == "attn";
  if (attention && slot.paper) return true;
  const bool always = slot.paper && slot.is_component();
  return is_active(slot, layer) && (always || layer.at(slot) != slot.default_value);
}

Json layer_json(const Architecture& architecture, const Mechanism& layer) {
  Json json{{"mixer", layer.word("mixer")}};
  if (has_gene(layer.word("mixer"), slot("heads")))
    json["heads"] = attention_shape(architecture, layer).heads;
  for (const auto* slot : layer_slots()) {
    if (is_told(*slot, layer)) json[slot->name] = value_json(*slot, text(*slot, layer));
  }
  const auto parts =
      mixer_kinds().at(layer.word("mixer")).parts(layer, attention_shape(architecture, layer));
  for (const auto& part : parts) {
    auto told = layer_json(architecture, part);
    for (const auto* other : {"ffn", "hidden"}) told.erase(other);
    json["parts"].push_back(std::move(told));
  }
  json["ffn"] = layer.word("ffn");
  json["hidden"] = hidden_width(architecture, layer);
  return json;
}

Json text_json(const Corpus& corpus) {
  if (corpus.unit.empty()) return {};
  return {{"unit", corpus.unit},
          {"layout", corpus.valid.last_target >= 0 ? "published" : "standard"},
          {"pad", corpus.special.pad},
          {"unknown", corpus.special.unknown},
          {"end_of_sentence", corpus.special.end_of_sentence}};
}

/// A text in which the files that a corpus is read from have their names alone.
std::string without_folders(std::string text, const nlohmann::json& settings) {
  for (const auto& [name, value] : settings.items()) {
    const auto path = value.is_string() ? value.get<std::string>() : "";
    if (path.find('/') == std::string::npos) continue;
    const auto file = std::filesystem::path(path).filename().string();
    for (auto at = text.find(path); at != std::string::npos; at = text.find(path, at + 1)) {
      text.replace(at, path.size(), file);
    }
  }
  return text;
}

}  // namespace

Json architecture_json(const Architecture& architecture) {
  const auto& genes = architecture.genes;
  auto layers = Json::array();
  for (std::int64_t i = 0; i < architecture.layers; ++i) {
    layers.push_back(layer_json(architecture, architecture.layer(i)));
  }
  Json model{{"vocabulary", architecture.vocabulary},
             {"context", architecture.context},
             {"width", architecture.width},
             {"heads", architecture.heads},
             {"feed_forward", architecture.feed_forward},
             {"hidden", architecture.hidden},
             {"dropout", architecture.dropout},
             {"position_embedding", genes.word("position_embedding")},
             {"norm", genes.word("norm")},
             {"norm_place", genes.word("norm_place")},
             {"block", genes.word("block")},
             {"tied", genes.word("tied") == "1"}};
  if (genes != ModelGenes(genes).set("norm_eps", ModelGenes{}.at(slot("norm_eps"))))
    model["norm_eps"] = genes.real("norm_eps");
  return {{"candidate", to_string(architecture)},
          {"mechanism", label(architecture)},
          {"semantics", to_string(architecture.semantics)},
          {"model", model},
          {"layers", layers}};
}

namespace {

/// The options of a model that a plug-in computes, "normalization softpick".
std::set<std::string> options_of(const PluginFile& plugin, const Json& config) {
  std::set<std::string> found;
  const auto look_into = [&](const Json& genes) {
    for (const auto& [gene, value] : genes.items()) {
      const auto option =
          gene + ' ' + (value.is_string() ? value.get<std::string>() : value.dump());
      if (holds(plugin.registers, option)) found.insert(option);
    }
  };
  look_into(config.at("model"));
  for (const auto& layer : config.at("layers")) {
    look_into(layer);
    for (const auto& part : layer.value("parts", Json::array())) look_into(part);
  }
  return found;
}

std::filesystem::path module_of(const PluginFile& plugin) {
  return std::filesystem::path(plugin.file).replace_extension(".py");
}

/// What plug-ins' modules of PyTorch append to model_attention.py, as attnas.plugin_modules does.
std::string appended_modules(const Json& config) {
  std::string appended;
  for (const auto& plugin : loaded_plugins()) {
    const auto file = module_of(plugin);
    if (options_of(plugin, config).empty() || !std::filesystem::is_regular_file(file)) continue;
    appended += "\n\n# Of plug-in " + file.stem().string() + "\n\n";
    std::istringstream lines(read_bytes(file));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("from attnas") && !line.starts_with("import attnas"))
        appended += line + '\n';
    }
  }
  return appended;
}

/// What model.py compares itself with when it is loaded: logits of the last of some tokens.
Json check_of(const nn::Transformer& model) {
  constexpr std::int64_t kTokens = 12, kStride = 7;
  const auto& architecture = model.array().architectures().front();
  const auto count = std::min(kTokens, architecture.context);
  const auto ids = at::arange(count, at::kLong).mul(kStride).remainder(architecture.vocabulary);
  const at::NoGradGuard no_grad;
  nn::Transformer same(architecture);
  const auto own = model.parameters(), copied = same.parameters();
  for (std::size_t i = 0; i < own.size(); ++i) copied[i].second.copy_(own[i].second);
  const torch::Tensor logits = same.logits(ids.view({1, -1}), {})[0][count - 1].to(at::kDouble);
  const auto* numbers = logits.data_ptr<double>();
  return {{"tokens", std::vector<std::int64_t>(ids.data_ptr<std::int64_t>(),
                                               ids.data_ptr<std::int64_t>() + count)},
          {"logits", std::vector<double>(numbers, numbers + std::min(kTokens, logits.numel()))}};
}

}  // namespace

std::vector<std::string> options_of_plugins(const Json& config) {
  std::set<std::string> found;
  for (const auto& plugin : loaded_plugins()) {
    if (!std::filesystem::is_regular_file(module_of(plugin)))
      found.merge(options_of(plugin, config));
  }
  return {found.begin(), found.end()};
}

Json model_config(const Architecture& architecture, const Corpus& corpus, const Parameters& data) {
  auto config = architecture_json(architecture);
  config["text"] = text_json(corpus);
  const auto given = recorded_settings(data);
  config["data"] = {{"corpus", corpus.name}, {"hash", corpus.hash}, {"settings", given}};
  for (auto& value : config["data"]["settings"]) {  // paths of this machine stay private
    if (value.is_string()) value = without_folders(value.get<std::string>(), given);
  }
  if (corpus.labels > 0) config["data"]["labels"] = corpus.labels;
  return config;
}

void write_model_folder(const std::filesystem::path& folder, const Json& config,
                        const Corpus& corpus, const nn::Transformer& model) {
  std::vector<std::pair<std::string, torch::Tensor>> weights;
  for (auto& [name, tensor] : model.parameters()) weights.emplace_back(name, tensor[0]);
  const auto appended = appended_modules(config);
  for (const auto& file : kSourceFiles) {
    const bool takes = file.name == "model_attention.py";
    write_durably(folder / file.name, std::string(file.text) + (takes ? appended : ""));
  }
  Json digests{{"model.safetensors", write_safetensors(folder / "model.safetensors", weights)}};
  if (const auto& name = corpus.tokenizer_file; !name.empty()) {
    write_durably(folder / name, corpus.tokenizer);
    digests[name] = sha256(corpus.tokenizer);
    if (name == "tokenizer.json") write_durably(folder / "model_tokens.py", kModelTokens);
  }
  digests["config.json"] = kNoDigest;
  auto whole = config;
  if (!appended.empty()) whole["check"] = check_of(model);
  whole["sha256"] = digests;
  auto text = whole.dump(1) + "\n";
  text.replace(text.rfind(kNoDigest), kNoDigest.size(), sha256(text));
  write_durably(folder / "config.json", text);
}

namespace {

const nlohmann::json& member(const nlohmann::json& json, const std::string& name) {
  if (!json.is_object() || !json.contains(name)) throw InputError(name + " is missing");
  return json.at(name);
}

std::string word(const nlohmann::json& json, const std::string& name) {
  const auto& value = member(json, name);
  if (!value.is_string()) throw InputError(name + " = " + value.dump() + ", must be a text");
  return value;
}

double number(const nlohmann::json& json, const std::string& name, double least, double most) {
  const auto& value = member(json, name);
  if (!value.is_number()) throw InputError(name + " = " + value.dump() + ", must be a number");
  require_in_range(name, value.get<double>(), least, most);
  return value;
}

/// A size of a model; what it is computed from stays far below 2^63.
std::int64_t size(const nlohmann::json& json, const std::string& name, double least, double most) {
  const auto value = number(json, name, least, most);
  const auto integer = static_cast<std::int64_t>(value);
  if (static_cast<double>(integer) == value) return integer;
  throw InputError(name + " = " + member(json, name).dump() + ", must be an integer");
}

/// The architecture is the candidate's, in the frame of the sizes; everything else that the
/// configuration says, by which model.py builds it, must follow.
Architecture read_architecture(const nlohmann::json& config) {
  const auto& model = member(config, "model");
  Architecture frame{.semantics = parse_semantics(word(config, "semantics")),
                     .layers = std::ssize(member(config, "layers"))};
  require_in_range("number of layers", static_cast<double>(frame.layers), 1, 1e4);
  frame.width = size(model, "width", 1, 1e6);
  frame.heads = size(model, "heads", 1, 1e6);
  frame.context = size(model, "context", 1, 1e9);
  frame.vocabulary = size(model, "vocabulary", 1, 1e8);
  frame.feed_forward = size(model, "feed_forward", 1, 1e4);
  frame.hidden = size(model, "hidden", 0, 1e7);
  frame.dropout = number(model, "dropout", 0, 1);
  auto architecture = canonical(parse_model(word(config, "candidate"), frame));
  require_built(architecture);
  const nlohmann::json again = architecture_json(architecture);
  for (const auto& [name, value] : again.items()) {
    if (member(config, name) != value) {
      throw InputError(name + " = " + member(config, name).dump() + ", must be " + value.dump() +
                       " of candidate " + to_string(architecture));
    }
  }
  return architecture;
}

/// What `read` makes of a file; its errors begin with the file's name.
template <class Read>
auto read_file(const std::filesystem::path& file, Read read) {
  if (!std::filesystem::is_regular_file(file)) {
    throw InputError(file.string() +
                     ": no such file; give a folder that nas-export --format pytorch has written");
  }
  try {
    return read(file);
  } catch (const InputError& error) {
    throw InputError(file.string() + ": " + error.what());
  }
}

/// @param digest  digest(expected) of the file of this name, where config.json has those of its folder.
template <class Digest>
void expect_digest(const nlohmann::json& config, const std::string& name, Digest digest) {
  if (!config.is_object() || !config.contains("sha256")) return;  // of an earlier version
  const auto expected = word(config.at("sha256"), name);
  if (const std::string found = digest(expected); found != expected) {
    throw InputError("its SHA-256 is " + found + ", must be " + expected +
                     " as config.json says: it is damaged, or of another model");
  }
}

nlohmann::json read_config(const std::filesystem::path& file) {
  constexpr std::uintmax_t kMost = 100'000'000;
  if (std::filesystem::file_size(file) > kMost) throw InputError("must be at most 100 MB");
  auto bytes = read_bytes(file);
  auto config = parse_record(bytes);
  expect_digest(config, "config.json", [&](const std::string& expected) {
    if (const auto place = bytes.find(expected);
        place != std::string::npos && expected.size() == kNoDigest.size()) {
      bytes.replace(place, expected.size(), kNoDigest);
    }
    return sha256(bytes);
  });
  return config;
}

/// Squares of more overflow in sums of float32.
constexpr float kLargestWeight = 1e15F;

/// Whether all are numbers of at most that size.
bool are_weights(const float* numbers, std::int64_t size) {
  std::int64_t others = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    others += std::abs(numbers[i]) <= kLargestWeight ? 0 : 1;
  }
  return others == 0;
}

/// Reads each tensor to where the model has it.
void take_weights(SafetensorsFile& file, const nn::Transformer& model) {
  const auto parameters = model.parameters();
  for (const auto& [name, parameter] : parameters) {
    const auto found = file.tensors().find(name);
    if (found == file.tensors().end()) throw InputError("tensor " + name + " is missing");
    const auto shape = parameter.sizes().slice(1).vec();
    if (found->second.shape != shape) {
      throw InputError("tensor " + name + " has shape " + Json(found->second.shape).dump() +
                       ", must have " + Json(shape).dump());
    }
    auto* numbers = parameter.data_ptr<float>();
    file.read(found->second, numbers);
    if (!are_weights(numbers, parameter.numel())) {
      throw InputError("tensor " + name + " has a number that is none, or beyond 1e+15");
    }
  }
  if (file.tensors().size() == parameters.size()) return;
  for (const auto& [name, tensor] : file.tensors()) {
    const auto is = [&name = name](const auto& parameter) { return parameter.first == name; };
    if (std::none_of(parameters.begin(), parameters.end(), is))
      throw InputError("tensor " + beginning(name) + " is none of the model of config.json");
  }
}

nn::Transformer read_model(const Architecture& architecture, SafetensorsFile file) {
  std::int64_t numbers = 0;
  for (const auto& [name, tensor] : file.tensors()) numbers += tensor.numel();
  // How much memory a model takes is the configuration's to say: at most twice what is there.
  if (numbers < num_parameters(architecture) / 2) {
    throw InputError("has " + std::to_string(numbers) + " numbers, the model of config.json has " +
                     std::to_string(num_parameters(architecture)) + " parameters");
  }
  nn::Transformer model(architecture, NumericalMode::exact);
  take_weights(file, model);
  return model;
}

Parameters read_settings(const nlohmann::json& json, const std::vector<Setting>& settings) {
  Parameters read(settings);
  if (!json.is_object()) throw InputError("settings = " + json.dump() + ", must be a map");
  for (const auto& [name, value] : json.items()) {
    if (!read.contains(name)) throw InputError(name + " is no setting of this corpus");
  }
  try {
    from_json(json, read);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(std::string("settings: ") + error.what());
  }
  for (const auto& setting : settings) {
    const auto& value = read.at(setting.name);
    if (const auto violation = setting.violation(value); !violation.empty()) {
      throw InputError(setting.name + " = " + to_text(value) + ", " + violation);
    }
  }
  return read;
}

}  // namespace

ModelFolder read_model_folder(const std::filesystem::path& folder) {
  nlohmann::json config;
  const auto architecture = read_file(folder / "config.json", [&](const auto& file) {
    config = read_config(file);
    return read_architecture(config);
  });
  auto model = read_file(folder / "model.safetensors", [&](const auto& file) {
    expect_digest(config, "model.safetensors", [&](const auto&) { return sha256_file(file); });
    return read_model(architecture, SafetensorsFile(file));
  });
  (void)member(config, "text");
  return {.config = config, .model = std::move(model)};
}

Architecture read_model_architecture(const std::filesystem::path& folder) {
  return read_file(folder / "config.json",
                   [](const auto& file) { return read_architecture(read_config(file)); });
}

Corpus corpus_of_model(const nlohmann::json& config) {
  const auto& data = member(config, "data");
  const auto& corpus = corpora().at(word(data, "corpus"));
  const auto settings = read_settings(member(data, "settings"), corpus.description.settings);
  const auto make = [&] {
    try {
      return corpus.make(settings, member(config, "model").at("context"), default_data_location());
    } catch (const InputError& error) {
      if (!settings.contains("path")) throw;
      throw InputError(std::string(error.what()) +
                       "; config.json has the names of files alone: give --text FILE, or the "
                       "command in their folder");
    }
  };
  auto made = make();
  if (made.hash != word(data, "hash")) {
    throw InputError("corpus " + made.name + " here has SHA-256 " + made.hash + ", must be " +
                     word(data, "hash") + " as in the training run");
  }
  return made;
}

}  // namespace nas
