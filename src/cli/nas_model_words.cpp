// nas-model: its command line.

#include <algorithm>
#include <map>

#include "cli/command_line.hpp"
#include "cli/with_torch.hpp"
#include "core/error.hpp"
#include "core/stop.hpp"
#include "core/words_only.hpp"

namespace {

namespace po = boost::program_options;
using Options = nas::ModelOptions;

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

[[noreturn]] void refuse(const std::string& message) {
  throw nas::InputError("command line: " + message);
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

int run(int argc, char** argv, const nas::WithTorch& torch) {
  Options options;
  const auto visible = options_of(options);
  std::vector<std::string> words;
  const auto given = nas::parse_command_line(argc, argv, "nas-model", visible, words);
  if (nas::answers(options.help, options.version, kUsage, visible, torch.version_text)) {
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
  nas::require_more_than_words();
  nas::install_stop_handlers();
  return torch.use_model(command, of, options, given);
}

}  // namespace

int nas::nas_model(const WithTorch& torch, int argc, char** argv) {
  return nas::run_main("nas-model", [&] { return run(argc, argv, torch); });
}
