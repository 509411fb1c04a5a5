// nas-model: what an exported model says of a text, what it writes, what a mechanism consists of.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "cli/command_line.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/stop.hpp"
#include "data/data_set.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/shorthand.hpp"
#include "models/generation.hpp"
#include "models/model_folder.hpp"
#include "models/sentences.hpp"
#include "report/text.hpp"
#include "training/task.hpp"
#include "training/validation.hpp"

namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* kUsage =
    "nas-model: a model that nas-export --format pytorch has written, without its run\n"
    "\n"
    "Usage: nas-model COMMAND [OPTIONS]\n"
    "\n"
    "Commands:\n"
    "  evaluate FOLDER [--text FILE | --split SPLIT]\n"
    "      how well it predicts a text, or a split of the corpus that it was trained on\n"
    "  generate FOLDER [--prompt TEXT] [--tokens N] [--temperature T] [--top-k K]\n"
    "           [--top-p P] [--seed S] [--greedy]\n"
    "      what it takes to follow: tokens that are drawn, or with --greedy the likeliest ones\n"
    "  attention FOLDER --text TEXT... [-o FOLDER]\n"
    "      what each head looks at in sentences: attention.json, and a page to choose from\n"
    "  genes NAME --width D --heads H [--context L] [--semantics S]\n"
    "      the layers of the model of a name, as JSON: what config.json of a folder says of them\n"
    "\n"
    "Examples:\n"
    "  $ nas-model evaluate best --text mytext.txt\n"
    "  $ nas-model generate best --prompt \"The jury\" --tokens 40 --seed 3\n"
    "  $ nas-model attention best --text \"The jury said that it was done\"\n"
    "\n";

/// What nas-model is given besides its command.
struct Options {
  static constexpr std::int64_t kNotGiven = -1;
  /// Longer than any sequence: no pattern shows all keys of it.
  static constexpr std::int64_t kUnlimited = 1'000'000'000;

  std::vector<std::string> text{};
  std::string split{}, output{};
  std::string prompt{};
  std::int64_t tokens = 20;
  double temperature = 0.8, top_p = 1.0;
  std::int64_t top_k = 0;
  std::int64_t seed = 1;
  std::int64_t width = kNotGiven, heads = kNotGiven, context = kUnlimited;
  std::string semantics = "corrected";
  std::vector<std::string> plugins{};
  bool greedy = false, help = false, version = false;
};

[[noreturn]] void refuse(const std::string& message) {
  throw nas::InputError("command line: " + message);
}

/// The special tokens and windows of what is scored, and what is asked of it.
struct Scored {
  nas::SpecialTokens special;
  nas::Windows windows;
  std::shared_ptr<const nas::LearningTask> task = nas::next_token();
  const char* unit = "token";
};

Scored windows_of_text(const nas::ModelFolder& folder, const Options& options) {
  if (!folder.text) {
    throw nas::InputError(
        "the tokens of this model are no text; --split test scores it on the task that it was "
        "trained on");
  }
  const auto length = folder.config.at("model").at("context").get<std::int64_t>();
  Scored scored{
      folder.text->special(),
      folder.text->windows(nas::read_text_file(options.text.front()), length, /*train=*/false)};
  if (scored.windows.size() > 0) return scored;
  throw nas::InputError(options.text.front() + ": has " +
                        (scored.windows.last_target >= 0
                             ? "no line of more than " + std::to_string(length) +
                                   " words (the context), which layout published needs"
                             : "no text"));
}

Scored windows_of_split(const nas::ModelFolder& folder, const std::string& split) {
  auto corpus = nas::corpus_of_model(folder.config);
  const auto task = nas::task_of(corpus);
  return {corpus.special, std::move(split == "valid" ? corpus.valid : corpus.test), task,
          corpus.labels > 0 ? "label" : "token"};
}

int evaluate(const std::string& path, const Options& options) {
  if (!options.text.empty() && !options.split.empty()) refuse("give --text or --split, not both");
  const auto split = options.split.empty() ? "test" : options.split;
  if (split != "valid" && split != "test") refuse("--split " + split + ", must be valid or test");
  if (options.text.size() > 1) refuse("--text is given twice, must be one file");
  auto folder = nas::read_model_folder(path);
  const auto [special, windows, task, unit] =
      options.text.empty() ? windows_of_split(folder, split) : windows_of_text(folder, options);
  constexpr std::int64_t kBatch = 16;
  const auto all = nas::evenly_spaced(windows.size(), 0);
  const auto scores =
      nas::validate(folder.model.array(), windows, all, special, kBatch, "cpu", *task).front();
  const double nll = scores.nll / static_cast<double>(scores.tokens);
  if (!std::isfinite(scores.perplexity())) {
    throw nas::InputError(path + ": nll is " + nas::shortest(nll) + " nats per " + unit +
                          ", whose perplexity is not finite: the weights are "
                          "damaged, or of a training run that diverged");
  }
  const auto share = [&](std::int64_t tokens) {
    return nas::fixed_text(100.0 * static_cast<double>(tokens) / static_cast<double>(scores.tokens),
                           2) +
           " %";
  };
  std::cout << "perplexity  " << nas::fixed_text(scores.perplexity(), 4) << "\nnll         "
            << nas::fixed_text(nll, 9) << " nats per " << unit << "\naccuracy    "
            << share(scores.correct) << '\n'
            << unit << "s      " << scores.tokens << '\n';
  if (special.unknown >= 0)
    std::cout << "unknown     " << share(scores.unknown_tokens) << " of the tokens\n";
  return nas::kDone;
}

constexpr const char* kSpace = " \t\n\v\f\r";

std::string stripped(std::string text) {
  text.erase(0, std::min(text.find_first_not_of(kSpace), text.size()));
  text.erase(text.find_last_not_of(kSpace) + 1);
  return text;
}

int generate(const std::string& path, const Options& options, const po::variables_map& given) {
  if (options.tokens < 0) refuse("--tokens " + std::to_string(options.tokens) + ", must be >= 0");
  if (options.temperature < 0.0 || !std::isfinite(options.temperature)) {
    refuse("--temperature " + nas::shortest(options.temperature) +
           ", must be finite and >= 0; 0 takes the likeliest");
  }
  const double temperature = options.greedy ? 0.0 : options.temperature;
  if (options.greedy && given.count("temperature") > 0) {
    refuse("give --greedy or --temperature, not both");
  }
  if (given.count("seed") > 0 && temperature == 0.0) {
    refuse("--seed draws, must be left out beside --greedy and --temperature 0");
  }
  if (options.top_k < 0) refuse("--top-k " + std::to_string(options.top_k) + ", must be >= 0");
  if (!(options.top_p > 0.0 && options.top_p <= 1.0)) {
    refuse("--top-p " + nas::shortest(options.top_p) + ", must be in (0, 1]");
  }
  if (options.seed < 0) refuse("--seed " + std::to_string(options.seed) + ", must be >= 0");
  auto folder = nas::read_model_folder(path);
  if (!folder.text) {
    throw nas::InputError(path +
                          ": the tokens of this model are no text, which nobody could read; "
                          "nas-model evaluate scores it");
  }
  auto ids = folder.text->prompt(options.prompt);
  if (ids.empty()) refuse("--prompt needs a word: the model begins inside a line");
  const auto special = folder.text->special();
  const auto unknown = std::count(ids.begin(), ids.end(), special.unknown);
  if (unknown > 0) {
    std::cerr << "note: the model does not know " << unknown << " of the prompt's words\n";
  }
  // Tokens that stand for no text.
  std::vector<std::int64_t> never;
  for (const auto id : {special.pad, special.unknown}) {
    if (id >= 0) never.push_back(id);
  }
  const auto prompted = std::ssize(ids);
  ids = nas::generate(folder.model, std::move(ids), options.tokens,
                      {.temperature = temperature,
                       .seed = static_cast<std::uint64_t>(options.seed),
                       .never = never,
                       .top_k = options.top_k,
                       .top_p = options.top_p});
  auto text = stripped(folder.text->text(ids));
  // Of the prompt its own words, also those that the model does not know.
  const auto head = stripped(folder.text->text({ids.begin(), ids.begin() + prompted}));
  if (!options.prompt.empty() && text.starts_with(head)) {
    text = stripped(options.prompt) + text.substr(head.size());
  }
  std::cout << text << '\n' << std::flush;
  const auto written = folder.text->text({ids.begin() + prompted, ids.end()});
  const auto ends = written.substr(written.find_last_not_of(kSpace) + 1);
  if (const auto count = std::count(ends.begin(), ends.end(), '\n'); count > 0) {
    std::cerr << "note: ends of a line that follow the text: " << count << '\n';
  }
  return nas::kDone;
}

/// Without the slashes at its end.
std::string trimmed(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

int attention(const std::string& path, const Options& options) {
  if (options.text.empty()) refuse("attention needs --text, a sentence");
  auto folder = nas::read_model_folder(path);
  const fs::path output = options.output.empty() ? trimmed(path) + "-attention" : options.output;
  nas::write_sentences(folder, path, options.text, output);
  std::cout << "written to " << (output / "attention.json").string() << '\n' << std::flush;
  nas::write_page(nas::page_of_attention(output));
  return nas::kDone;
}

int genes(const std::string& name, const Options& options) {
  if (options.width == Options::kNotGiven || options.heads == Options::kNotGiven) {
    refuse("genes needs --width and --heads");
  }
  nas::load_plugins_of_names({name});
  nas::Architecture frame{.semantics = nas::parse_semantics(options.semantics),
                          .layers = 1,
                          .width = options.width,
                          .heads = options.heads,
                          .context = options.context,
                          .vocabulary = 1};
  const auto architecture = nas::canonical(nas::named_model(name, frame));
  nas::require_built(architecture);
  std::cout << nas::model_config(architecture, {}, {}).at("layers").dump(1) << '\n';
  return nas::kDone;
}

po::options_description options_of(Options& options) {
  po::options_description all("Options");
  all.add_options()  //
      ("text", po::value(&options.text),
       "evaluate: a file of text; attention: a sentence, may be given several times")(
          "output,o", po::value(&options.output),
          "attention: folder of what is written (default: FOLDER-attention)")(
          "split", po::value(&options.split), "evaluate: valid or test (default: test)")  //
      ("prompt", po::value(&options.prompt),
       "generate: the beginning (default: that of a text)")                              //
      ("tokens", po::value(&options.tokens), "generate: how many tokens (default: 20)")  //
      ("temperature", po::value(&options.temperature),
       "generate: draw each token from softmax(logits / T) (default: 0.8); 0 takes the "
       "likeliest")  //
      ("top-k", po::value(&options.top_k),
       "generate: draw from the K likeliest tokens (default: 0, all)")  //
      ("top-p", po::value(&options.top_p),
       "generate: draw from the likeliest tokens that have this probability (default: 1)")(
          "greedy", po::bool_switch(&options.greedy), "generate: take the likeliest tokens")  //
      ("seed", po::value(&options.seed), "generate: of what is drawn (default: 1)")           //
      ("width", po::value(&options.width), "genes: width D of the residual stream")           //
      ("heads", po::value(&options.heads), "genes: heads of a layer that names no number")    //
      ("context", po::value(&options.context),
       "genes: L tokens, beside which a window has an effect or none (default: more than any)")  //
      ("semantics", po::value(&options.semantics),
       "genes: corrected or published (default: corrected)")         //
      ("plugin", po::value(&options.plugins), nas::kPluginHelp)      //
      ("help,h", po::bool_switch(&options.help), "print this text")  //
      ("version", po::bool_switch(&options.version), "print versions");
  return all;
}

/// Refuses options that another command has.
void require_own(const std::string& command, const po::variables_map& given) {
  static const std::map<std::string, std::string> kCommands{
      {"split", "evaluate"},  {"prompt", "generate"}, {"output", "attention"},
      {"tokens", "generate"}, {"seed", "generate"},   {"temperature", "generate"},
      {"greedy", "generate"}, {"width", "genes"},     {"top-k", "generate"},
      {"top-p", "generate"},  {"heads", "genes"},     {"context", "genes"},
      {"semantics", "genes"}};
  if (given.count("text") > 0 && command != "evaluate" && command != "attention") {
    refuse("--text belongs to nas-model evaluate and attention");
  }
  for (const auto& [option, of] : kCommands) {
    if (of != command && given.count(option) > 0 && !given[option].defaulted()) {
      refuse("--" + option + " belongs to nas-model " + of);
    }
  }
}

int run(int argc, char** argv) {
  Options options;
  const auto visible = options_of(options);
  std::vector<std::string> words;
  const auto given = nas::parse_command_line(argc, argv, "nas-model", visible, words);
  if (nas::answers(options.help, options.version, kUsage, visible)) {
    return nas::kDone;
  }
  if (words.size() != 2)
    refuse("give a command and a folder, or a name; nas-model --help lists them");
  const auto& command = words.front();
  const auto& of = words.back();
  if (const std::vector<std::string> known{"evaluate", "generate", "attention", "genes"};
      std::find(known.begin(), known.end(), command) == known.end()) {
    refuse("unknown command '" + command + "', known: " + nas::join(known) +
           nas::did_you_mean(command, known));
  }
  require_own(command, given);
  nas::load_plugins(options.plugins);
  nas::install_stop_handlers();
  if (command == "evaluate") return evaluate(of, options);
  if (command == "generate") return generate(of, options, given);
  if (command == "attention") return attention(of, options);
  return genes(of, options);
}

}  // namespace

int nas::nas_model(int argc, char** argv) {
  return nas::run_main("nas-model", [&] { return run(argc, argv); });
}
