#include "data/text.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/installed.hpp"
#include "core/run_program.hpp"
#include "core/setting_forms.hpp"
#include "data/ids.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

std::vector<Setting> tokenizer_settings() {
  return {
      setting::choice("pretokens", "gpt2", {"gpt2", "cl100k"},
                      "of bpe: where a text is cut before pairs are joined, as GPT-2 or tiktoken's "
                      "cl100k does; a file has its own"),
      {.name = "tokenizer_file",
       .default_value = std::string(),
       .help = "of bpe: a published tokenizer in place of a learned one, whatever vocabulary is: "
               "a tokenizer.json",
       .names_file = true},
      setting::at_most(
          1, setting::positive(setting::number(
                 "coverage", 1.0, 0,
                 "of characters: share of the training split that those with an id make up, by "
                 "falling frequency"))),
      setting::text(
          "alphabet", "ACDEFGHIKLMNPQRSTVWY",
          "of residues: the letters, in the order of their ids; capital and small letters differ")};
}

/// Where the Python package attnas lies; empty where Python finds it by itself.
fs::path python_folder() {
  std::error_code unknown;
  const auto bin = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  std::vector<fs::path> places{bin.parent_path().parent_path()};  // of a wheel
  for (const auto& folder : shared_folders()) places.push_back(folder / "python");
  for (const auto& place : places) {
    if (fs::exists(place / "attnas" / "__init__.py", unknown)) return place;
  }
  return {};
}

/// The folders in which Python looks for packages, with that of attnas before others.
std::string python_path() {
  const char* given = std::getenv("PYTHONPATH");
  const auto own = python_folder().string();
  const std::string others = given != nullptr ? given : "";
  return "PYTHONPATH=" + own + (own.empty() || others.empty() ? "" : ":") + others;
}

std::string python() {
  const char* wanted = std::getenv("NAS_PYTHON");
  return wanted != nullptr && *wanted != '\0' ? wanted : NAS_PROGRAM_PYTHON;
}

/// The settings, in which the file of a tokenizer is that of byte pairs.
nlohmann::json one_tokenizer(const Parameters& settings) {
  nlohmann::json json = settings;
  if (!settings.contains("tokenizer")) return json;
  if (const auto& tokenizer = settings.get<std::string>("tokenizer");
      tokenizer.ends_with(".json")) {
    json.update({{"tokenizer", "bpe"}, {"tokenizer_file", tokenizer}});
  }
  return json;
}

}  // namespace

std::vector<Setting> text_settings(const std::string& tokenizer) {
  const std::vector<std::string> units{"bpe", "byte", "char", "residue", "word"};
  auto tokenizers = units;
  tokenizers.insert(tokenizers.begin(), "unit");
  std::vector<Setting> settings{
      setting::integer(
          "vocabulary", 10000, 0,
          "number of ids, special tokens included, of units that are learned (word, char, "
          "bpe): the most frequent of the training split; 0 = all of them"),
      setting::choice("unit", "word", units, "what a token is; bytes have a vocabulary of 256"),
      {.name = "tokenizer",
       .default_value = tokenizer,
       .help = "the same by another name, or a tokenizer.json; unit: what data.unit says",
       .choices = tokenizers,
       .names_file = true},
      setting::choice("layout", "standard", {"standard", "published"},
                      "standard: one stream with <eos>, every token scored once; published: half "
                      "overlapping windows inside long lines, last target <pad>"),
  };
  for (auto& setting : tokenizer_settings()) settings.push_back(std::move(setting));
  return settings;
}

nlohmann::json recorded_settings(const Parameters& settings) {
  auto json = one_tokenizer(settings);
  if (!settings.contains("tokenizer")) return json;
  if (json["tokenizer"] != "unit") json["unit"] = json["tokenizer"];
  json.erase("tokenizer");
  for (const auto& setting : tokenizer_settings()) {
    const auto given = json.find(setting.name);
    const nlohmann::json defaults = Parameters({setting});
    if (given != json.end() && *given == defaults.at(setting.name)) json.erase(given);
  }
  return json;
}

std::string licence_of(const std::string& corpus) {
  std::ifstream in(python_folder() / "attnas/prepare/sources.json");
  const auto sources = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  const auto known = sources.find(corpus);
  return sources.is_object() && known != sources.end() ? known->value("licence", "") : "";
}

Corpus prepared_corpus(const std::string& name, const Parameters& settings, std::int64_t context,
                       const DataLocation& location) {
  require_in_range("model.context", static_cast<double>(context), 2, 1e9);
  // -B: nothing is left beside the package. Modules of the current folder are not Python's.
  const auto result =
      run_program({"env", "PYTHONSAFEPATH=1", python_path(), python(), "-B", "-m", "attnas.prepare",
                   "corpus", name, "--settings", one_tokenizer(settings).dump(), "--context",
                   std::to_string(context), "--data", location.folder.string()},
                  Output::all);
  if (result.status == 0) return read_ids(name, last_line(result.output), context);
  // What it says last, which may have several lines.
  constexpr std::string_view kTold = "attnas: ";
  const auto told = ('\n' + result.output).rfind('\n' + std::string(kTold));
  auto text = told == std::string::npos
                  ? name + ": Python ends with code " + std::to_string(result.status) + ": " +
                        last_line(result.output)
                  : result.output.substr(told + kTold.size());
  text.erase(text.find_last_not_of('\n') + 1);
  if (result.status == 2) throw InputError(text);
  if (result.status == 130) throw StopRequested();
  if (!result.started || result.status == 126 || result.status == 127) {
    throw InputError(name + ": NAS_PYTHON = " + python() +
                     " prepares texts and does not run: " + last_line(result.output));
  }
  throw MachineError(text);
}

}  // namespace nas
