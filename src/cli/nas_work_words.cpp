// nas-work: its command line.

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>

#include "cli/program.hpp"
#include "cli/with_torch.hpp"
#include "cli/words.hpp"
#include "core/error.hpp"
#include "core/terminal.hpp"
#include "report/text.hpp"

namespace {

constexpr const char* kLeftHelp =
    "  143  stopped by a signal or the end of its input: checkpoints are written, another worker\n"
    "       goes on\n";

constexpr const char* kUsage =
    "nas-work: measures candidates for a study that runs in another process\n"
    "\n"
    "Usage: nas-work [--folder DIR | --scratch DIR] [--device auto|cpu|cuda|cuda:N] [--slot N]\n"
    "                [KEY.PATH=VALUE ...] [--plugin FILE.so ...]\n"
    "\n"
    "--folder is the study's folder as this machine sees it: a training run that moves to another\n"
    "worker goes on from its checkpoint there. --scratch is a folder of this machine alone, where\n"
    "checkpoints serve this worker only. --device auto takes GPUs in turn, by --slot, the number "
    "of\n"
    "this process among those of the machine (default: $SLURM_LOCALID, else 0). KEY.PATH=VALUE is\n"
    "what else is different on this machine; --plugin is a shared library of plug-ins in place of\n"
    "one of this name in the run's configuration.\n"
    "\n"
    "Reads JSON documents, one per line, and measures one order after the other meanwhile:\n"
    "  {\"kind\": \"run\", \"protocol\": 1, \"config\": C, ...}   a run's configuration as it is\n"
    "                        recorded, comes first; where \"identity\" or \"revision\" are given,\n"
    "                        they must be those of this program\n"
    "  {\"kind\": \"order\", \"order\": N, \"priority\": P, \"tasks\": [T, ...]}   what is "
    "measured\n"
    "                        together, each {\"task\", \"evaluation\"}, see order_json() of\n"
    "                        study/ask_and_tell.hpp; the largest priority first. With \"measure\"\n"
    "                        one task, of which only that is measured: an objective that needs no\n"
    "                        training, or array_width\n"
    "  {\"kind\": \"withdraw\", \"order\": N}   no result is wanted\n"
    "  {\"kind\": \"end\", \"save\": B}   true: writes checkpoints and leaves, as at the end of "
    "the\n"
    "                        input or SIGTERM, with exit code 143; false: first does what is left\n"
    "and writes such lines:\n"
    "  {\"kind\": \"workers\", \"count\": 1, \"slots\": 1, \"devices\": [D]}   it is ready\n"
    "  {\"kind\": \"progress\", \"order\": N, \"step\": S, \"steps\": S, \"loss\": L, \"worker\": "
    "W}\n"
    "  {\"kind\": \"finished\", \"order\": N, \"evaluations\": [E, ...], \"device\": D, "
    "\"worker\": W}\n"
    "  {\"kind\": \"refused\", \"order\": N, \"reason\": R}    it would be measured otherwise "
    "here\n"
    "\n"
    "Examples:\n"
    "  $ nas-work --folder runs/x --device auto <orders.jsonl >answers.jsonl\n"
    "\n"
    "Options:\n"
    "  -h [ --help ]         print this text\n"
    "  --version             print versions\n";

namespace fs = std::filesystem;

nas::Place place_of(std::vector<std::string> words) {
  const auto folder = nas::take_option(words, "--folder");
  const auto scratch = nas::take_option(words, "--scratch");
  const auto device = nas::take_option(words, "--device");
  const auto slot = nas::take_option(words, "--slot");
  for (const auto& word : words) {
    if (!word.starts_with('-') && word.find('=') != word.npos) continue;
    throw nas::InputError("command line: '" + word +
                          "', must be key.path=value; nas-work --help lists the options");
  }
  if (folder && scratch)
    throw nas::InputError("command line: --folder and --scratch, one is enough");
  if (folder && !fs::is_directory(*folder)) {
    throw nas::InputError("command line: --folder " + *folder + ": there is no such folder");
  }
  nas::Place place{.folder = folder.value_or(scratch.value_or("")),
                   .scratch = scratch.has_value(),
                   .overrides = std::move(words)};
  if (device && *device != "auto") place.overrides.push_back("evaluation.device=" + *device);
  if (device == "auto") {
    const char* rank = std::getenv("SLURM_LOCALID");
    const auto text = slot.value_or(rank != nullptr ? rank : "0");
    if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != text.npos) {
      throw nas::InputError("command line: --slot " + text + ", must be a number from 0 on");
    }
    place.number = std::stoll(text);
  }
  return place;
}

}  // namespace

int nas::nas_work(const WithTorch& torch, int argc, char** argv) {
  return nas::run_main("nas-work", [&] {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (has_word(words, {"--help", "-h"})) {
      std::cout << nas::wrapped(kUsage + nas::help_end(kLeftHelp), nas::line_width(),
                                /*paragraphs=*/true);
      return static_cast<int>(nas::kDone);
    }
    if (has_word(words, {"--version"})) {
      std::cout << torch.version_text();
      return static_cast<int>(nas::kDone);
    }
    load_plugins(take_options(words, "--plugin"));
    return torch.work(place_of(std::move(words)));
  });
}
