#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "cli/table_commands.hpp"
#include "cli/words.hpp"
#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/format.hpp"
#include "core/run_program.hpp"
#include "core/stop.hpp"
#include "core/terminal.hpp"
#include "core/warning.hpp"
#include "data/corpus_facts.hpp"
#include "data/count_models.hpp"
#include "data/text.hpp"
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

/// Lets another program take this process over.
[[noreturn]] void become(Words words) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::cout.flush();
  execvp(argv.front(), argv.data());
  throw MachineError(io_failure(words.front(), errno));
}

constexpr const char* kPythonCommands = "attnas.prepare.commands";

[[noreturn]] void get(Words words) {
  const std::string from = take_option(words, "--from").value_or("");
  Words command{"get", take_name(words, "get")};
  if (!words.empty()) throw InputError("get: '" + words.front() + "' is not understood");
  if (!from.empty()) command.push_back("--from=" + from);
  become(python_command(kPythonCommands, command));
}

[[noreturn]] void list(const Words& words) {
  if (!words.empty()) throw InputError("list: '" + words.front() + "' is not understood");
  Words command{"list"};
  for (const auto& name : corpora().keys()) {
    command.insert(command.end(), {name, corpora().at(name).description.summary});
  }
  become(python_command(kPythonCommands, command));
}

/// Where the files of a corpus are, and how large. @return whether it has any.
bool print_files(const std::string& name) {
  const auto result = run_program(python_command(kPythonCommands, {"files", name}), Output::all);
  constexpr std::string_view kProgram = "nas-data: ";
  if (result.status == 2 && result.output.starts_with(kProgram)) {
    throw InputError(
        result.output.substr(kProgram.size(), result.output.size() - kProgram.size() - 1));
  }
  if (result.status != 0) throw MachineError(last_line(result.output));
  std::cout << result.output;
  return !result.output.empty();
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

int info(Words words) {
  const auto context_text = take_option(words, "--context");
  const std::int64_t context =
      context_text ? parse_number<std::int64_t>("--context", *context_text) : kDefaultContext;
  if (context < 1) throw InputError("--context = " + *context_text + ", must be at least 1");
  const std::string name = take_name(words, "info");
  const auto& corpus = corpora().at(name);
  Parameters settings = read_settings(corpus.description.settings, words);
  std::cout << name << ": " << corpus.description.summary << '\n';
  const bool has_files = print_files(name);
  const bool chosen = std::any_of(words.begin(), words.end(),
                                  [](const auto& word) { return word.starts_with("layout="); });
  // Both layouts of the corpora of the paper; not every text has lines for the published one.
  const bool of_words =
      settings.contains("unit") && recorded_settings(settings).at("unit") == "word";
  if (chosen || !has_files || !of_words) {
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
  become(std::move(arguments));
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
  if (command == "get") get(std::move(words));
  if (command == "list") list(words);
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
