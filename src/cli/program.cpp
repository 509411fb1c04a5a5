#include "cli/program.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <system_error>

#include <poll.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/format.hpp"
#include "core/installed.hpp"
#include "core/plugin.hpp"
#include "core/registry.hpp"
#include "core/terminal.hpp"
#include "core/version.hpp"
#include "report/text.hpp"

namespace nas {

std::string help_end(const std::string& stopped) {
  return "\n"
         "Exit codes:\n"
         "  0    done\n"
         "  1    an error that should not happen\n"
         "  2    bad input; nothing was changed\n"
         "  3    done, but a search found nothing to re-test, or a task's gates are not passed\n"
         "  75   the machine failed (full disk, input or output, memory): everything finished is\n"
         "       kept, the same command continues\n" +
         stopped +
         "\n"
         "Environment:\n"
         "  NAS_DATA_DIR      folder of the corpora; else data/ of the current folder, if there "
         "is\n"
         "                    one; else attnas/ of the user's cache, $XDG_CACHE_HOME or ~/.cache\n"
         "  NAS_PYTHON        the Python that prepares texts and makes pages; else that of the\n"
         "                    build, and of pages the first with numpy and scipy\n"
         "  OMP_WAIT_POLICY, GOMP_SPINCOUNT\n"
         "                    how threads wait; PASSIVE unless one of them is set\n"
         "  COLUMNS           characters of a line on a terminal, where that has more\n"
         "  CUDA_VISIBLE_DEVICES, CUBLAS_WORKSPACE_CONFIG, NVIDIA_TF32_OVERRIDE\n"
         "                    of CUDA, where models are trained on a GPU\n";
}

std::string version_line() { return std::string("attnas ") + kVersion + " (" + kRevision + ")\n"; }

void load_plugins(const std::vector<std::string>& files) {
  for (const auto& file : files) {
    try {
      (void)load_plugin(located_plugin(file, {}), PluginSource::command_line);
    } catch (const InputError& error) {
      throw InputError(std::string("command line: --plugin ") + error.what());
    }
  }
}

void load_plugins_of_names(const std::vector<std::string>& mechanisms) {
  for (const auto& name : mechanisms) {
    std::istringstream words(name);
    for (std::string word; std::getline(words, word, '+');) {
      if (const auto at = word.find(".so@"); at != std::string::npos) word.resize(at + 3);
      if (!word.ends_with(".so")) continue;
      try {
        (void)load_plugin(located_plugin(word, {}), PluginSource::command_line);
      } catch (const InputError& error) {
        throw InputError(std::string("command line: ") + error.what());
      }
    }
  }
}

bool has_store(const std::filesystem::path& folder) {
  std::error_code unknown;
  return !folder.empty() && (std::filesystem::exists(folder / "store.sqlite", unknown) ||
                             std::filesystem::exists(folder / "comparison.sqlite", unknown));
}

bool flush_output() {
  errno = 0;
  if (std::cout.flush()) return true;
  const int error = errno;  // 0: an earlier write has failed
  // Polled for nothing, it answers only where there is no reader, or no output at all.
  pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  if (poll(&output, 1, 0) > 0) return false;
  throw MachineError("standard output: cannot be written" +
                     (error == 0 ? "" : ": " + std::generic_category().message(error)));
}

namespace {

std::string words_of(const std::filesystem::filesystem_error& error) {
  return io_failure(error.path2().empty() ? error.path1() : error.path2(), error.code().value());
}

}  // namespace

int run_main(const std::string& program, const std::function<int()>& body,
             const std::string& kept) {
  const auto tell = [&](const std::string& what, ExitCode code) {
    const bool shown = isatty(STDERR_FILENO) == 1;
    const auto width = static_cast<std::size_t>(std::max(20, terminal_width()));
    std::cerr << wrapped(program + ": " + printable(what) + '\n', shown ? width : kAnyWidth);
    if (code != kBadInput && has_store(kept)) {
      std::cerr << "Everything finished is kept in " << kept
                << (code == kDefect ? ".\n" : "; the same command continues.\n");
    }
    return code;
  };
  (void)std::signal(SIGXFSZ, SIG_IGN);  // the write fails, as on a full disk
  try {
    require_sound_registrations();
    const int code = body();
    if (code == kDone) (void)flush_output();
    return code;
  } catch (const InputError& error) {
    return tell(error.what(), kBadInput);
  } catch (const StopRequested&) {
    return tell("stopped", kStopped);
  } catch (const MachineError& error) {
    return tell(error.what(), kMachineFailed);
  } catch (const std::filesystem::filesystem_error& error) {
    const bool given = kept.empty() && is_bad_path(error.code());
    return tell(words_of(error), given ? kBadInput : kMachineFailed);
  } catch (const std::system_error& error) {
    return tell(error.what(), kMachineFailed);
  } catch (const std::bad_alloc&) {
    return tell("no memory left", kMachineFailed);
  } catch (const std::exception& error) {
    return tell(error.what(), kDefect);
  }
}

}  // namespace nas
