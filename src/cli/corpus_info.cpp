#include "cli/corpus_info.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "cli/words.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/warning.hpp"
#include "data/corpus_facts.hpp"
#include "data/count_models.hpp"
#include "data/text.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

constexpr std::int64_t kDefaultContext = 128;

using Words = std::vector<std::string>;

void print_line(const std::string& name, const std::string& value) {
  const std::string column(name.size() < 10 ? 10 - name.size() : 1, ' ');
  std::cout << "  " << name << column << printable(value) << '\n';
}

Value parse_value(const Setting& setting, const std::string& text) {
  if (std::holds_alternative<std::int64_t>(setting.default_value)) {
    return parse_number<std::int64_t>(setting.name, text);
  }
  if (std::holds_alternative<double>(setting.default_value)) {
    return parse_number<double>(setting.name, text);
  }
  if (std::holds_alternative<bool>(setting.default_value)) {
    if (text == "true" || text == "false") return text == "true";
    throw InputError(setting.name + " = " + text + ", must be true or false");
  }
  return text;
}

// Applies words SETTING=VALUE to the defaults of a corpus.
Parameters read_settings(const std::vector<Setting>& settings, const Words& words) {
  Parameters parameters(settings);
  for (const auto& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      throw InputError("'" + word + "' is not understood, must be SETTING=VALUE");
    }
    const std::string name = word.substr(0, equals);
    const auto setting = std::find_if(settings.begin(), settings.end(),
                                      [&](const Setting& s) { return s.name == name; });
    if (setting == settings.end()) {
      Words known;
      for (const auto& s : settings) known.push_back(s.name);
      throw InputError("unknown setting '" + name + "'" + known_text(name, known));
    }
    Value value = parse_value(*setting, word.substr(equals + 1));
    const std::string violation = setting->violation(value);
    if (!violation.empty()) throw InputError(word + ": " + violation);
    parameters.set(name, std::move(value));
  }
  return parameters;
}

/// What counts of the whole training split reach.
void print_counts(const Corpus& corpus) {
  print_line("unigram",
             "perplexity " + fixed_text(corpus.unigram_perplexity, 2) + " on valid (add-one)");
  for (const auto& model : count_models(corpus, all_windows(corpus.train))) {
    if (model.order == 1) continue;
    auto text = "perplexity " + fixed_text(std::exp(model.valid.mean_nll()), 2) + " on valid";
    if (model.test.tokens > 0)
      text += ", " + fixed_text(std::exp(model.test.mean_nll()), 2) + " on test";
    print_line(std::to_string(model.order) + "-gram",
               text + (model.order == 2 ? " (Witten-Bell, history of the windows)" : ""));
  }
}

void print_corpus(const Corpus& corpus, const Parameters& settings) {
  std::cout << corpus.description << '\n';
  print_line("vocabulary", grouped(corpus.vocabulary));
  if (!corpus.unit.empty()) {
    auto text = corpus.unit;
    if (corpus.bytes_per_token > 0) {
      text += "; " + fixed_text(corpus.bytes_per_token, 3) + " bytes of valid per token";
    }
    print_line("tokenizer", text);
  }
  for (const auto& [name, windows] :
       {std::pair("train", &corpus.train), {"valid", &corpus.valid}, {"test", &corpus.test}}) {
    print_line(name, grouped(windows->size()) + " windows, " + grouped(windows->num_scored()) +
                         " scored targets");
  }
  const auto unknown = unknown_shares(corpus);
  if (!unknown.empty()) print_line("unknown", unknown_text(unknown));
  if (const auto text = unknown_warning(unknown, settings); !text.empty()) warn(text);
  if (corpus.unigram_perplexity > 0) print_counts(corpus);
  if (corpus.chance) {
    print_line("chance", corpus.chance->by + ": nll " + fixed_text(corpus.chance->nll, 3) +
                             ", accuracy " + fixed_text(100.0 * corpus.chance->accuracy, 1) + " %");
  }
  print_line("hash", corpus.hash);
}

}  // namespace

int corpus_info(Words words) {
  load_plugins(take_options(words, "--plugin"));
  if (words.empty()) {
    for (const auto& name : corpora().keys()) {
      std::cout << name << ": " << corpora().at(name).description.summary << '\n';
    }
    return kDone;
  }
  const auto context_text = take_option(words, "--context");
  const std::int64_t context =
      context_text ? parse_number<std::int64_t>("--context", *context_text) : kDefaultContext;
  if (context < 1) throw InputError("--context = " + *context_text + ", must be at least 1");
  const std::string name = words.front();
  words.erase(words.begin());
  const auto& corpus = corpora().at(name);
  Parameters settings = read_settings(corpus.description.settings, words);
  const bool chosen = std::any_of(words.begin(), words.end(),
                                  [](const auto& word) { return word.starts_with("layout="); });
  // Both layouts of the corpora of the paper; not every text has lines for the published one.
  const bool of_words =
      settings.contains("unit") && recorded_settings(settings).at("unit") == "word";
  if (chosen || licence_of(name).empty() || !of_words) {
    print_corpus(corpus.make(settings, context, default_data_location()), settings);
    return kDone;
  }
  for (const char* layout : {"standard", "published"}) {
    settings.set("layout", std::string(layout));
    print_corpus(corpus.make(settings, context, default_data_location()), settings);
  }
  return kDone;
}

}  // namespace nas
