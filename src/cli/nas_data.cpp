#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "cli/running_trainings.hpp"
#include "cli/status_lines.hpp"
#include "cli/table_commands.hpp"
#include "cli/words.hpp"
#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/format.hpp"
#include "core/stop.hpp"
#include "core/terminal.hpp"
#include "core/warning.hpp"
#include "data/corpus_facts.hpp"
#include "data/count_models.hpp"
#include "data/data_set.hpp"
#include "data/text.hpp"
#include "data/vocabulary.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

constexpr const char* kUsage =
    "nas-data: the text that models are trained on, and tables of finished training runs\n"
    "\n"
    "Usage: nas-data COMMAND\n"
    "\n"
    "Commands:\n"
    "  list                    corpora that are known, and where they are\n"
    "  get NAME [--from PATH]  downloads a corpus, or takes it from a folder or an archive\n"
    "  info NAME [--context L] [SETTING=VALUE ...]\n"
    "                          sizes, windows, hashes, source and licence\n"
    "  gates CONFIG [KEY.PATH=VALUE ...] [--output FOLDER] [--record FILE]\n"
    "                          whether attention matters on a task: a pilot that trains\n"
    "                          (nas-train --gates), a verdict and a record; 3 if not\n"
    "  gates --judge FILE      judges such a record again, by the rules of this version\n"
    "  table pack STORE|FOLDER ... --output FILE [--name NAME] [--measured STORE|FOLDER]\n"
    "             [--gates FILE]\n"
    "                          packs the training runs of searches into one table;\n"
    "                          --measured: latency from another search;\n"
    "                          --gates: keeps the record of its task's gates\n"
    "  table verify FILE [STORE|FOLDER ...]\n"
    "                          checksum; whether it says what the runs say, and which of\n"
    "                          its cells none of them has\n"
    "  table info FILE         what is in a table, and how noisy it is\n"
    "  table audit FILE --rungs STEP,STEP,... [--eta ETA] [--objectives NAME,...]\n"
    "             [--promote crowding|epsilon_net] [--seeds N]\n"
    "             [--format text|json|csv] [--output FILE]\n"
    "                          what pruning training runs at these steps would lose and\n"
    "                          save, by replaying N searches; the last step is the end\n"
    "\n"
    "Examples:\n"
    "  $ nas-data get brown\n"
    "  $ nas-data get wikitext-2 --from wikitext-2-v1.zip\n"
    "  $ nas-data info text_file path=mytext.txt vocabulary=2000\n"
    "  $ nas-data gates configs/quickstart.yaml\n"
    "  $ nas-data table pack runs/first runs/second --output mine.table\n"
    "  $ nas-data table audit mine.table --rungs 50,150,400\n"
    "\n"
    "Options:\n"
    "  --plugin FILE.so        loads a shared library with further corpora\n"
    "  -h [ --help ]           print this text\n"
    "  --version               print the version\n";

constexpr std::int64_t kDefaultContext = 128;

using Words = std::vector<std::string>;

void print_line(const std::string& name, const std::string& value) {
  const std::string column(name.size() < 10 ? 10 - name.size() : 1, ' ');
  std::cout << wrapped("  " + name + column + printable(value) + '\n', line_width());
}

// The one corpus that a command is about, which is the first word.
std::string take_name(Words& words, const std::string& command) {
  if (words.empty()) {
    throw InputError(command + ": no name given, known: " + join(corpora().keys()));
  }
  std::string name = words.front();
  words.erase(words.begin());
  (void)corpora().at(name);  // refuses unknown names
  return name;
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
      throw InputError("unknown setting '" + name + "', known: " + join(known) +
                       did_you_mean(name, known));
    }
    Value value = parse_value(*setting, word.substr(equals + 1));
    const std::string violation = setting->violation(value);
    if (!violation.empty()) throw InputError(word + ": " + violation);
    parameters.set(name, std::move(value));
  }
  return parameters;
}

/// Gets a data set; on a terminal a line says how far it is.
GetResult get_shown(const DataSet& data_set, const std::string& from) {
  std::optional<PacedLine> line;
  GetProgress progress;
  if (is_terminal(STDERR_FILENO)) {
    line.emplace(std::cerr, terminal_width, steady_seconds);
    progress = [&line](const std::string& address, std::int64_t received, std::int64_t total) {
      line->show(
          human_bytes(received) + (total > 0 ? " of " + human_bytes(total) : "") + "  " + address,
          total > 0 && received == total);
    };
  }
  return get_data_set(data_set, default_data_location(), from, progress);
}

int get(Words words) {
  const std::string from = take_option(words, "--from").value_or("");
  const std::string name = take_name(words, "get");
  if (!words.empty()) throw InputError("get: '" + words.front() + "' is not understood");
  const DataSet* data_set = find_known_data_set(name);
  if (data_set == nullptr) {
    std::cout << name << " needs no download\n";
    return 0;
  }
  const auto result = get_shown(*data_set, from);
  if (result.already_present) {
    std::cout << name << " is already in " << result.folder.string() << '\n';
  } else {
    std::cout << name << " is now in " << result.folder.string() << '\n';
    print_line("source", result.provenance.source);
    print_line("content", "SHA-256 " + result.provenance.content_sha256);
    print_line("licence", data_set->licence);
  }
  return 0;
}

int list(const Words& words) {
  if (!words.empty()) throw InputError("list: '" + words.front() + "' is not understood");
  const DataLocation location = default_data_location();
  for (const auto& name : corpora().keys()) {
    std::cout << name << '\n';
    print_line("what", corpora().at(name).description.summary);
    const DataSet* data_set = find_known_data_set(name);
    if (data_set != nullptr) {
      print_line("in", data_set->language + ", " + human_bytes(data_set->bytes));
      print_line("terms", data_set->licence);
    }
    if (data_set == nullptr) {
      print_line("where", "needs no download");
    } else if (const auto files = find_data_set(name, location)) {
      print_line("where", files->train.parent_path().string());
    } else {
      print_line("where", "not in " + location.folder.string() + "; nas-data get " + name +
                              (data_set->given_only() ? " --from PATH" : ""));
    }
  }
  return 0;
}

void print_split(const std::string& name, const std::string& text) {
  std::int64_t lines = 0;
  std::int64_t tokens = 0;
  for_each_line(text, [&](std::string_view) { ++lines; });
  for_each_word(text, [&](std::string_view) { ++tokens; });
  print_line(name, grouped(tokens) + " tokens in " + grouped(lines) + " lines, " +
                       human_bytes(static_cast<std::int64_t>(text.size())));
}

/// @param is_text  has words.
void print_files(const std::string& name, const DataSet& data_set, bool is_text) {
  const DataLocation location = default_data_location();
  const SplitTexts texts = read_data_set(name, location);
  const auto files = *find_data_set(name, location);
  const auto provenance = read_provenance(files);
  print_line("folder", files.train.parent_path().string());
  print_line("source", provenance ? provenance->source : "the user's own files");
  print_line("licence", data_set.licence);
  print_line("content", "SHA-256 " + splits_sha256(files));
  if (!is_text) return;
  print_split("train", texts.train);
  print_split("valid", texts.valid);
  print_split("test", texts.test);
  const Vocabulary vocabulary(texts.train, 0, Vocabulary::Specials::unknown_end);
  print_line("types", grouped(vocabulary.size()) + " in train, with <unk> and <eos>");
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
  if (corpus.tokenizer) {
    auto text = corpus.unit + ": " + tokenizers().at(corpus.unit).description.summary;
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

int info(Words words) {
  const auto context_text = take_option(words, "--context");
  const std::int64_t context =
      context_text ? parse_number<std::int64_t>("--context", *context_text) : kDefaultContext;
  if (context < 1) throw InputError("--context = " + *context_text + ", must be at least 1");
  const std::string name = take_name(words, "info");
  const auto& corpus = corpora().at(name);
  Parameters settings = read_settings(corpus.description.settings, words);
  std::cout << name << ": " << corpus.description.summary << '\n';
  const DataSet* data_set = find_known_data_set(name);
  if (data_set != nullptr) print_files(name, *data_set, settings.contains("unit"));
  const bool chosen = std::any_of(words.begin(), words.end(),
                                  [](const auto& word) { return word.starts_with("layout="); });
  // Both layouts of the corpora of the paper; not every text has lines for the published one.
  const bool is_text = settings.contains("unit");
  if (chosen || data_set == nullptr || !is_text || !tokenizer_kind(settings).published) {
    print_corpus(corpus.make(settings, context, default_data_location()), settings);
    return 0;
  }
  for (const char* layout : {"standard", "published"}) {
    settings.set("layout", std::string(layout));
    print_corpus(corpus.make(settings, context, default_data_location()), settings);
  }
  return 0;
}

/// Pilots train, which nas-train can: it takes this process over.
[[noreturn]] void become_pilot(const Words& words) {
  std::error_code unknown;
  const auto program = fs::read_symlink("/proc/self/exe", unknown).replace_filename("nas-train");
  Words arguments{program.string(), "--gates"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(argv.front(), argv.data());
  throw MachineError(io_failure(program, errno));
}

int run(Words words) {
  if (!words.empty() && words.front() == "gates" && !has_word(words, {"--help", "-h"})) {
    become_pilot({words.begin() + 1, words.end()});
  }
  if (has_word(words, {"--help", "-h"})) {
    std::cout << wrapped(kUsage + help_end(), line_width(), /*paragraphs=*/true);
    return 0;
  }
  if (has_word(words, {"--version"})) {
    std::cout << version_line();
    return 0;
  }
  require_options(words,
                  {"--plugin", "--from", "--context", "--output", "--name", "--measured", "--gates",
                   "--rungs", "--eta", "--objectives", "--promote", "--seeds", "--format"});
  load_plugins(take_options(words, "--plugin"));
  if (words.empty()) {
    std::cerr << kUsage;
    return kBadInput;
  }
  const std::string command = words.front();
  words.erase(words.begin());
  if (command == "get") return get(std::move(words));
  if (command == "list") return list(words);
  if (command == "info") return info(std::move(words));
  if (command == "table") return table_command(std::move(words));
  throw InputError("unknown command '" + command + "', known: gates, get, info, list, table" +
                   did_you_mean(command, {"gates", "get", "info", "list", "table"}));
}

}  // namespace

}  // namespace nas

int nas::nas_data(int argc, char** argv) {
  nas::install_stop_handlers();
  return nas::run_main("nas-data", [&] { return nas::run({argv + 1, argv + argc}); });
}
