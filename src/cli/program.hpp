#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace nas {

/// What a program's exit code says.
enum ExitCode : int {
  kDone = 0,
  kDefect = 1,          ///< an unexpected error
  kBadInput = 2,        ///< nothing was changed
  kNotPassed = 3,       ///< the gates of a task, or nothing found to re-test
  kMachineFailed = 75,  ///< EX_TEMPFAIL of sysexits.h: the same command continues
  kStopped = 130,       ///< by a signal: the same command continues
};

/// What --help says of a signal, for most programs.
inline constexpr const char* kStoppedHelp =
    "  130  stopped (SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU): everything finished is kept,\n"
    "       the same command continues\n";

/// The end of a program's --help: exit codes, and the environment that programs read.
/// @param stopped  what a signal ends it with, if not with 0.
std::string help_end(const std::string& stopped = kStoppedHelp);

/// "attnas 0.1.0 (f025d7af8ca6)" and the end of the line.
std::string version_line();

/// What --plugin says of itself in --help.
inline constexpr const char* kPluginHelp =
    "a shared library of plug-ins, in place of one of this name in the configuration; may be given "
    "several times";

/// Loads what --plugin names: FILE in the current folder, else among the installed ones.
/// @throws InputError as load_plugin() does.
void load_plugins(const std::vector<std::string>& files);
/// The same of files that shorthand names in place of an option: "mine.so", "rope+mine.so".
void load_plugins_of_names(const std::vector<std::string>& mechanisms);

/// Whether a folder has the store of a run or of a comparison. What else is left of one, or comes
/// back to its place, keeps nothing.
bool has_store(const std::filesystem::path& folder);

/// Writes what std::cout still holds. @return whether all that it was given is written; false where
/// nobody reads it any more: a closed pipe, a terminal that is gone.
/// @throws MachineError where something could not be written, now or before.
bool flush_output();

/// Runs a program's body. An exception becomes a sentence on standard error, headed by the
/// program's name, and an exit code: InputError is kBadInput, StopRequested kStopped; MachineError,
/// std::system_error (of files, say) and std::bad_alloc are kMachineFailed; everything else is
/// kDefect. A path that cannot be used is bad input as long as nothing has begun. Where the body
/// returns 0, but standard output could not be written (flush_output()), it is kMachineFailed.
/// SIGXFSZ is ignored: a file beyond the process's limit of size is an error of the write.
/// @param kept  the folder whose store keeps what is finished, which is promised as long as the
/// store is there; empty: nothing has begun. Read after the body, which may set it.
int run_main(const std::string& program, const std::function<int()>& body,
             const std::string& kept = {});

}  // namespace nas
