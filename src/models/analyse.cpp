#include "models/analyse.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/terminal.hpp"
#include "instruments/attention_analysis.hpp"
#include "instruments/attention_statistics.hpp"
#include "models/sentences.hpp"
#include "models/trained_model.hpp"
#include "report/columns.hpp"
#include "report/text.hpp"
#include "statistics/statistics.hpp"
#include "training/batches.hpp"
#include "training/validation.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Of the random tokens, the same for every model, so that two analyses can be compared pair by
/// pair.
constexpr std::uint64_t kTokenSeed = 1;
constexpr double kConfidence = 0.95;

/// A number of JSON: null where it is none.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

/// The mean of what is defined, with its interval over sequences.
Json estimate_json(const std::vector<double>& values, bool with_values) {
  std::vector<double> defined;
  for (const double value : values) {
    if (std::isfinite(value)) defined.push_back(value);
  }
  Json json{{"mean", nullptr}, {"low", nullptr}, {"high", nullptr}, {"n", defined.size()}};
  if (!defined.empty()) {
    const auto found = estimate(defined, kConfidence);
    json["mean"] = found.mean;
    json["low"] = number(found.low);
    json["high"] = number(found.high);
  }
  if (with_values) {
    json["values"] = Json::array();
    for (const double value : values) json["values"].push_back(number(value));
  }
  return json;
}

/// Of each sequence the mean over the heads in which the statistic is defined.
std::vector<double> over_heads(const std::vector<std::vector<double>>& heads) {
  std::vector<double> means;
  for (std::size_t b = 0; b < heads.front().size(); ++b) {
    double sum = 0.0;
    double count = 0.0;
    for (const auto& head : heads) {
      if (!std::isfinite(head[b])) continue;
      sum += head[b];
      count += 1.0;
    }
    means.push_back(sum / count);
  }
  return means;
}

Json statistics_json(const nn::HeadValues& statistics) {
  auto json = Json::object();
  for (const auto& [name, heads] : statistics) {
    auto& entry =
        json[name] = {{"layer", estimate_json(over_heads(heads), true)}, {"heads", Json::array()}};
    for (const auto& head : heads) entry["heads"].push_back(estimate_json(head, false));
  }
  return json;
}

Json rows_json(const std::vector<std::vector<double>>& rows) {
  auto json = Json::array();
  for (const auto& row : rows) {
    auto& written = json.emplace_back(Json::array());
    for (const double value : row) written.push_back(number(rounded(value)));
  }
  return json;
}

Json layer_json(const nn::LayerAnalysis& layer, const Mechanism& mechanism) {
  Json json{{"layer", layer.layer},
            {"mixer", mechanism.mixer},
            {"statistics", statistics_json(layer.statistics)},
            {"profile", rows_json(layer.profile)},
            {"gates", Json::array()},
            {"example", Json::array()}};
  if (layer.gate) {
    json["gates"].push_back({{"name", mechanism.gating},
                             {"statistics", statistics_json(layer.gate->statistics)},
                             {"histogram", rows_json(layer.gate->histogram)}});
  }
  for (const auto& head : layer.example) json["example"].push_back(rows_json(head));
  return json;
}

Json layers_json(const nn::AttentionAnalysis& analysis, const Architecture& architecture) {
  auto json = Json::array();
  auto attention = analysis.layers.begin();
  for (std::int64_t i = 0; i < architecture.layers; ++i) {
    const auto& mechanism = architecture.layer(i);
    if (attention != analysis.layers.end() && attention->layer == i) {
      json.push_back(layer_json(*attention++, mechanism));
    } else {
      json.push_back({{"layer", i}, {"mixer", mechanism.mixer}});
    }
  }
  return json;
}

/// What was held out of training.
struct HeldOut {
  std::string split;
  std::vector<std::int64_t> windows;
  Batch batch;
};

/// Windows that are text to their end: the last one may not be, and attention to what fills it up
/// is none.
std::int64_t num_whole(const Windows& windows) {
  const auto end = static_cast<std::int64_t>(windows.tokens.size());
  const bool last = windows.starts.back() + windows.length <= end;
  return windows.size() - (last || windows.size() == 1 ? 0 : 1);
}

HeldOut held_out(const Corpus& corpus, std::int64_t sequences) {
  const bool has_test = corpus.test.size() > 0;
  const auto& windows = has_test ? corpus.test : corpus.valid;
  HeldOut chosen{.split = has_test ? "test" : "validation",
                 .windows = evenly_spaced(num_whole(windows), sequences),
                 .batch = {}};
  chosen.batch = read_batch(windows, chosen.windows, 0);
  return chosen;
}

/// The beginnings of some held-out sequences, where tokens are text.
Json sentences_json(nn::Transformer& model, const Corpus& corpus, const Batch& batch) {
  constexpr std::int64_t kSentences = 4;
  constexpr std::int64_t kTokens = 32;
  auto json = Json::array();
  if (!corpus.tokenizer) return json;
  for (std::int64_t i = 0; i < std::min(kSentences, batch.input.size(0)); ++i) {
    const auto row = batch.input[i].slice(0, 0, kTokens).to(at::kLong).contiguous();
    const auto* first = row.data_ptr<std::int64_t>();
    json.push_back(sentence_json(model, {first, first + row.numel()},
                                 [&](const auto& ids) { return corpus.tokenizer->decode(ids); }));
  }
  return json;
}

void require_long_enough(std::int64_t context) {
  if (context >= 2 * nn::kFirstQuery) return;
  throw InputError("model.context = " + std::to_string(context) + ", must be at least " +
                   std::to_string(2 * nn::kFirstQuery) + " to look into its attention");
}

std::string cell(const Json& layer, const char* statistic) {
  const auto& found = layer.at("statistics");
  if (!found.contains(statistic)) return {};
  const auto& mean = found.at(statistic).at("layer").at("mean");
  return mean.is_number() ? fixed_text(mean.get<double>(), 3) : std::string();
}

}  // namespace

std::string folder_name(const std::string& mechanism) {
  constexpr std::size_t kLongest = 100;
  constexpr std::size_t kDigits = 8;
  std::string name;
  for (const char c : mechanism) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
    if (plain || name.empty() || name.back() != '-') name += plain ? c : '-';
  }
  if (name.size() > 1 && name.back() == '-') name.pop_back();
  if (name.size() <= kLongest) return name;
  return name.substr(0, kLongest - kDigits - 1) + "-" + sha256(mechanism).substr(0, kDigits);
}

AnalysisResult analyse_run(const AnalysisRequest& request) {
  const auto run = read_run(request.run);
  const auto candidate = find_mechanism(run, request.mechanism);
  const auto label = run.label(candidate);
  AnalysisResult result{.folder = request.folder.empty() ? folder_of_run(request.run) /
                                                               "attention" / folder_name(label)
                                                         : request.folder,
                        .json = {}};
  TrainedModel trained(run, {.run = request.run,
                             .candidate = candidate,
                             .folder = result.folder,
                             .replicate = request.replicate,
                             .overrides = request.overrides});
  const auto& architecture = trained.architecture();
  const auto& evaluation = trained.evaluation();
  require_long_enough(architecture.context);

  auto model = trained.load();
  make_folder(result.folder);
  const auto corpus = trained.corpus();
  const auto chosen = held_out(corpus, request.sequences);
  const auto analysis =
      nn::analyse_attention(model, chosen.batch.input, chosen.batch.target, kTokenSeed);

  result.json = {{"schema", kAnalysisSchema},
                 {"run", trained.experiment().name},
                 {"mechanism", label},
                 {"candidate", candidate},
                 {"evaluation", evaluation.id},
                 {"replicate", evaluation.replicate},
                 {"weights", trained.origin()},
                 {"corpus", corpus.name},
                 {"corpus_hash", corpus.hash},
                 {"split", chosen.split},
                 {"windows", chosen.windows},
                 {"sequences", chosen.windows.size()},
                 {"length", architecture.context},
                 {"token_seed", kTokenSeed},
                 {"first_query", nn::kFirstQuery},
                 {"confidence", kConfidence},
                 {"model", Json::object()},
                 {"layers", layers_json(analysis, architecture)},
                 {"sentences", sentences_json(model, corpus, chosen.batch)}};
  for (const auto& [name, values] : analysis.model) {
    result.json["model"][name] = estimate_json(values, true);
  }
  write_durably(result.folder / "attention.json", result.json.dump() + "\n");
  return result;
}

std::string analysis_table(const AnalysisResult& result) {
  std::vector<std::pair<const char*, const char*>> shown{
      {"entropy_ratio", "entropy ratio"},   {"row_mass", "row mass"},
      {"sink_mass", "sink mass"},           {"mean_distance", "mean distance"},
      {"previous_token", "previous token"}, {"induction", "induction"},
      {"memory_length", "memory length"}};
  const auto& layers = result.json.at("layers");
  if (std::any_of(layers.begin(), layers.end(), [](const Json& layer) {
        return layer.contains("statistics") && layer.at("statistics").contains("state_used");
      })) {
    shown.emplace_back("state_used", "state used");
  }
  std::vector<Column> columns{{.header = "layer"}};
  for (const auto& [name, header] : shown) columns.push_back({.header = header});
  for (const auto& layer : layers) {
    if (!layer.contains("statistics")) continue;
    columns.front().cells.push_back(std::to_string(layer.at("layer").get<std::int64_t>()));
    for (std::size_t i = 0; i < shown.size(); ++i) {
      columns[i + 1].cells.push_back(cell(layer, shown[i].first));
    }
  }
  const auto width = line_width();
  const auto what = result.json.at("mechanism").get<std::string>() + ", replicate " +
                    std::to_string(result.json.at("replicate").get<std::int64_t>()) + ", weights " +
                    result.json.at("weights").get<std::string>() + ", " +
                    counted(result.json.at("sequences").get<std::int64_t>(), "sequence") +
                    " of the " + result.json.at("split").get<std::string>() +
                    " split; means over heads\n\n";
  return wrapped(what, width) + aligned(columns, width);
}

}  // namespace nas
