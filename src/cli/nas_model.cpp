// nas-model: how well an exported model predicts, what a mechanism consists of, and a run's model for
// who looks into it. What PyTorch does, Python does (attnas.use_model).

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <boost/program_options.hpp>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/programs.hpp"
#include "convert/place.hpp"
#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/stop.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/shorthand.hpp"
#include "models/agreement.hpp"
#include "models/model_folder.hpp"
#include "models/trained_model.hpp"
#include "report/text.hpp"
#include "training/batches.hpp"
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
    "  generate FOLDER [--prompt TEXT] [--tokens N] [--seed S] [--greedy]\n"
    "      what it takes to follow: tokens that are drawn, or with --greedy the likeliest ones\n"
    "  attention FOLDER --text TEXT... [-o FOLDER]\n"
    "      what each head looks at in sentences: attention.json, and a page to choose from\n"
    "  genes NAME --width D --heads H [--context L] [--semantics S]\n"
    "        [--config [--layers N] [--vocabulary V] [--hidden F]]\n"
    "      the layers of the model of a name, as JSON: what config.json of a folder says of them;\n"
    "      with --config all that it says of the architecture, without dropout\n"
    "  import FOLDER -o MODEL\n"
    "      a transformer that others have trained, as such a model; import --help tells which\n"
    "  check MODEL --expected FILE\n"
    "      how far its stream, logits and likeliest tokens are from those of another program, in "
    "a\n"
    "      file of safetensors: exit code 1 where they differ by more than 2e-5 of the largest\n"
    "  place MODEL PLACEMENT -o FOLDER [--original SOURCE | --trained BLOCKS]\n"
    "      the model with blocks in the place of its layers, as a search of them names it:\n"
    "      \"full 0,17-29; window{64,4} 1-16\"; of windows without first tokens, and with SOURCE,\n"
    "      which MODEL was imported from, SOURCE with another config.json, for transformers; with\n"
    "      BLOCKS, stage1/.../SEED of a search's folder, what they have learned\n"
    "  take RUN MECHANISM [KEY.PATH=VALUE ...] -o FOLDER [--sequences N] [--replicate R]\n"
    "       [--keep FOLDER]\n"
    "      the model of a run with sequences that it has not seen, for nas-analyse\n"
    "\n"
    "generate, attention and evaluate --text need Python with torch; generate --help has their\n"
    "options.\n"
    "\n"
    "Examples:\n"
    "  $ nas-model evaluate best --text mytext.txt\n"
    "  $ nas-model generate best --prompt \"The jury\" --tokens 40 --seed 3\n"
    "  $ nas-model attention best --text \"The jury said that it was done\"\n"
    "\n";

struct Options {
  static constexpr std::int64_t kNotGiven = -1;
  /// Longer than any sequence: no pattern shows all keys of it.
  static constexpr std::int64_t kUnlimited = 1'000'000'000;

  std::vector<std::string> text{};
  std::string split{}, output{}, keep{}, expected{}, original{}, trained{};
  std::int64_t width = kNotGiven, heads = kNotGiven, context = kUnlimited;
  std::int64_t layers = kNotGiven, vocabulary = 1, hidden = 0;
  std::int64_t sequences = 64, replicate = kNotGiven;
  std::string semantics = "corrected";
  std::vector<std::string> plugins{};
  bool config = false, help = false, version = false;
};

[[noreturn]] void refuse(const std::string& message) {
  throw nas::InputError("command line: " + message);
}

/// Becomes the command of Python. @throws InputError where no Python has what it needs.
[[noreturn]] void become_python(std::vector<std::string> words) {
  const bool imports = words.front() == "import", places = words.front() == "place";
  const std::string needed = imports || places ? "numpy" : "torch";
  const auto python = nas::find_python(
      "import importlib.util; importlib.util.find_spec('" + needed + "').loader", needed);
  if (!python) {
    throw nas::InputError(words.front() + (words.front() == "evaluate" ? " --text" : "") +
                          " needs Python with " + needed + " (Debian: apt-get install python3-" +
                          needed + "; elsewhere: pip install " + needed +
                          "); NAS_PYTHON may name one");
  }
  auto command = nas::module_command(*python, imports  ? "attnas.import_model"
                                              : places ? "attnas.config_form"
                                                       : "attnas.use_model");
  command.insert(command.end(), words.begin() + (imports || places ? 1 : 0), words.end());
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  throw nas::MachineError(*python + ": cannot be started");
}

int evaluate(const std::string& path, const Options& options) {
  if (!options.text.empty() && !options.split.empty()) refuse("give --text or --split, not both");
  if (options.text.size() > 1) refuse("--text is given twice, must be one file");
  if (!options.text.empty()) become_python({"evaluate", path, "--text", options.text.front()});
  const auto split = options.split.empty() ? "test" : options.split;
  if (split != "valid" && split != "test") refuse("--split " + split + ", must be valid or test");
  auto folder = nas::read_model_folder(path);
  const auto corpus = nas::corpus_of_model(folder.config);
  const auto task = nas::task_of(corpus);
  const auto* unit = corpus.labels > 0 ? "label" : "token";
  const auto& windows = split == "valid" ? corpus.valid : corpus.test;
  constexpr std::int64_t kBatch = 16;
  const auto all = nas::evenly_spaced(windows.size(), 0);
  const auto scores =
      nas::validate(folder.model.array(), windows, all, corpus.special, kBatch, "cpu", *task)
          .front();
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
  if (corpus.special.unknown >= 0)
    std::cout << "unknown     " << share(scores.unknown_tokens) << " of the tokens\n";
  return nas::kDone;
}

int genes(const std::string& name, const Options& options) {
  if (options.width == Options::kNotGiven || options.heads == Options::kNotGiven) {
    refuse("genes needs --width and --heads");
  }
  nas::load_plugins_of_names({name});
  const bool counted = options.layers != Options::kNotGiven;
  nas::Architecture frame{.semantics = nas::parse_semantics(options.semantics),
                          .layers = counted ? options.layers : 1,
                          .width = options.width,
                          .heads = options.heads,
                          .context = options.context,
                          .vocabulary = options.vocabulary,
                          .hidden = options.hidden,
                          .dropout = 0.0};
  if (options.hidden < 0) refuse("--hidden must be >= 0");
  const auto architecture = nas::canonical(nas::named_model(name, frame));
  nas::require_built(architecture);
  if (counted) nas::require_layers(name, architecture, options.layers);
  const auto json = nas::architecture_json(architecture);
  std::cout << (options.config ? json : json.at("layers")).dump(1) << '\n';
  return nas::kDone;
}

std::string digits(double value) {
  std::ostringstream text;
  text << std::setprecision(3) << value;
  return text.str();
}

int check(const std::string& path, const std::string& file) {
  if (file.empty()) refuse("check needs --expected FILE");
  auto folder = nas::read_model_folder(path);
  if (!fs::is_regular_file(file)) throw nas::InputError(file + ": no such file");
  nas::Agreement found;
  try {
    nas::SafetensorsFile expected(file, nas::kExpectedTypes);
    found = nas::agreement(folder.model, expected);
  } catch (const nas::InputError& error) {
    throw nas::InputError(file + ": " + error.what());
  }
  std::size_t width = 6;
  for (const auto& each : found.deviations) width = std::max(width, each.tensor.size());
  const auto row = [&](std::string name, const std::string& largest, const std::string& share) {
    name.resize(width + 2, ' ');
    std::cout << name << std::string(17 - std::min<std::size_t>(17, largest.size()), ' ') << largest
              << std::string(17 - std::min<std::size_t>(17, share.size()), ' ') << share << '\n';
  };
  row("tensor", "largest deviation", "of the largest");
  for (const auto& each : found.deviations) {
    row(each.tensor, digits(each.largest), digits(each.share));
  }
  const auto difference = found.difference();
  if (!found.greedy.empty() && found.greedy == found.expected_greedy)
    std::cout << "greedy  " << found.greedy.size() << " tokens, all equal\n";
  if (difference.empty()) return nas::kDone;
  std::cerr << "nas-model: " << path << ": " << difference << '\n';
  return nas::kDefect;
}

/// Windows that are text to their end: the last one may not be, and attention to what fills it up
/// is none.
std::int64_t num_whole(const nas::Windows& windows) {
  const auto end = static_cast<std::int64_t>(windows.tokens.size());
  const bool last = windows.starts.back() + windows.length <= end;
  return windows.size() - (last || windows.size() == 1 ? 0 : 1);
}

/// (N, L) ids as a list of lists.
nlohmann::json rows(const torch::Tensor& ids) {
  auto json = nlohmann::json::array();
  for (const auto& row : ids.unbind(0)) {
    const auto* first = row.data_ptr<std::int64_t>();
    json.push_back(std::vector<std::int64_t>(first, first + row.numel()));
  }
  return json;
}

/// Held-out sequences: windows of the test split, evenly spaced; of the validation split where there
/// is no test split.
nlohmann::json held_out(const nas::Corpus& corpus, std::int64_t sequences) {
  const bool has_test = corpus.test.size() > 0;
  const auto& windows = has_test ? corpus.test : corpus.valid;
  const auto chosen = nas::evenly_spaced(num_whole(windows), sequences);
  const auto batch = nas::read_batch(windows, chosen, 0);
  return {{"corpus", corpus.name},
          {"corpus_hash", corpus.hash},
          {"split", has_test ? "test" : "validation"},
          {"windows", chosen},
          {"input", rows(batch.input)},
          {"target", rows(batch.target)}};
}

constexpr std::int64_t kShortest = 16;  // context of which statistics can be taken

/// Weights that are trained again stay in the folder `keep`, and the training run can be continued.
int take(const std::vector<std::string>& words, const Options& options) {
  if (options.output.empty()) refuse("take needs --output FOLDER");
  if (options.sequences < 2) {
    refuse("--sequences = " + std::to_string(options.sequences) + ", must be at least 2");
  }
  if (options.replicate < Options::kNotGiven) {
    refuse("--replicate = " + std::to_string(options.replicate) + ", must be at least 0");
  }
  const auto run = nas::read_run(words[1]);
  const auto candidate = nas::find_mechanism(run, words[2]);
  const auto label = run.label(candidate);
  const fs::path keep = options.keep.empty()
                            ? nas::folder_of_run(words[1]) / "attention" / nas::folder_name(label)
                            : fs::path(options.keep);
  nas::TrainedModel trained(
      run, {.run = words[1],
            .candidate = candidate,
            .folder = keep,
            .replicate = options.replicate < 0 ? std::nullopt : std::optional(options.replicate),
            .overrides = {words.begin() + 3, words.end()}});
  if (const auto context = trained.architecture().context; context < kShortest) {
    throw nas::InputError("model.context = " + std::to_string(context) + ", must be at least " +
                          std::to_string(kShortest) + " to look into its attention");
  }
  const auto model = trained.load();
  const auto corpus = trained.corpus();
  nas::make_folder(options.output);
  nas::write_model_folder(
      options.output, nas::model_config(trained.architecture(), corpus, trained.experiment().data),
      corpus, model);
  auto json = held_out(corpus, options.sequences);
  json.update({{"folder", keep.string()},
               {"run", trained.experiment().name},
               {"mechanism", label},
               {"candidate", candidate},
               {"evaluation", trained.evaluation().id},
               {"replicate", trained.evaluation().replicate},
               {"weights", trained.origin()}});
  nas::write_durably(fs::path(options.output) / "held_out.json", json.dump());
  return nas::kDone;
}

po::options_description options_of(Options& options) {
  po::options_description all("Options");
  all.add_options()  //
      ("text", po::value(&options.text), "evaluate: a file of text")(
          "split", po::value(&options.split), "evaluate: valid or test (default: test)")    //
      ("width", po::value(&options.width), "genes: width D of the residual stream")         //
      ("heads", po::value(&options.heads), "genes: heads of a layer that names no number")  //
      ("context", po::value(&options.context),
       "genes: L tokens, beside which a window has an effect or none (default: more than any)")(
          "config", po::bool_switch(&options.config), "genes: all of the architecture")      //
      ("layers", po::value(&options.layers), "genes: how many the name has, or is to have")  //
      ("vocabulary", po::value(&options.vocabulary), "genes: V tokens")                      //
      ("hidden", po::value(&options.hidden),
       "genes: width F of feed-forward layers (default: by their ratio)")  //
      ("semantics", po::value(&options.semantics),
       "genes: corrected or published (default: corrected)")                                 //
      ("expected", po::value(&options.expected), "check: a file of safetensors")             //
      ("original", po::value(&options.original), "place: folder, or file of GGUF")           //
      ("trained", po::value(&options.trained), "place: folder of blocks that have learned")  //
      ("output,o", po::value(&options.output), "take, place: folder of what is written")     //
      ("sequences", po::value(&options.sequences), "take: how many (default: 64)")           //
      ("replicate", po::value(&options.replicate),
       "take: number of the training run (default: one whose weights are kept, else the first)")(
          "keep", po::value(&options.keep),
          "take: folder of weights that are trained again (default: RUN/attention/MECHANISM)")  //
      ("plugin", po::value(&options.plugins), nas::kPluginHelp)                                 //
      ("help,h", po::bool_switch(&options.help), "print this text")                             //
      ("version", po::bool_switch(&options.version), "print versions");
  return all;
}

/// Refuses options that another command has.
void require_own(const std::string& command, const po::variables_map& given) {
  static const std::map<std::string, std::string> kCommands{
      {"text", "evaluate"},  {"split", "evaluate"},   {"width", "genes"},    {"heads", "genes"},
      {"context", "genes"},  {"semantics", "genes"},  {"config", "genes"},   {"layers", "genes"},
      {"hidden", "genes"},   {"vocabulary", "genes"}, {"sequences", "take"}, {"output", "take"},
      {"replicate", "take"}, {"keep", "take"},        {"expected", "check"}, {"original", "place"},
      {"trained", "place"}};
  for (const auto& [option, of] : kCommands) {
    if (command == "place" && option == "output") continue;
    if (of != command && given.count(option) > 0 && !given[option].defaulted()) {
      refuse("--" + option + " belongs to nas-model " + of);
    }
  }
}

/// @param kept  receives the folder that keeps what is finished.
int run(int argc, char** argv, std::string& kept) {
  if (const std::vector<std::string> python{"generate", "attention", "import"};
      argc > 1 && std::find(python.begin(), python.end(), argv[1]) != python.end()) {
    become_python({argv + 1, argv + argc});
  }
  Options options;
  const auto visible = options_of(options);
  std::vector<std::string> words;
  const auto given = nas::parse_command_line(argc, argv, "nas-model", visible, words);
  if (nas::answers(options.help, options.version, kUsage, visible)) return nas::kDone;
  const std::vector<std::string> known{"evaluate", "generate", "attention", "genes",
                                       "import",   "check",    "place",     "take"};
  if (!words.empty() && std::find(known.begin(), known.end(), words.front()) == known.end()) {
    refuse("unknown command '" + words.front() + "'" + nas::known_text(words.front(), known));
  }
  const bool takes = !words.empty() && words.front() == "take";
  if (!words.empty() && words.front() == "place" && (words.size() != 3 || options.output.empty()))
    refuse("place needs a model, a placement and --output FOLDER");
  const bool several = takes || (!words.empty() && words.front() == "place");
  if (several ? words.size() < 3 : words.size() != 2) {
    refuse(takes ? "take needs a run and a mechanism"
                 : "give a command and a folder, or a name; nas-model --help lists them");
  }
  require_own(words.front(), given);
  nas::load_plugins(options.plugins);
  nas::install_stop_handlers();
  if (words.front() == "evaluate") return evaluate(words.back(), options);
  if (words.front() == "genes") return genes(words.back(), options);
  if (words.front() == "check") return check(words.back(), options.expected);
  if (words.front() == "place") {
    if (fs::exists(options.output)) refuse("--output " + options.output + " is there already");
    if (!options.original.empty() && !options.trained.empty())
      refuse("give --original or --trained, not both");
    if (!options.original.empty())
      become_python({"place", words[1], words[2], options.original, options.output});
    nas::write_placed(words[1], words[2], options.output, options.trained);
    return nas::kDone;
  }
  kept = words[1];
  return take(words, options);
}

}  // namespace

int nas::nas_model(int argc, char** argv) {
  std::string kept;
  return nas::run_main(
      "nas-model", [&] { return run(argc, argv, kept); }, kept);
}
