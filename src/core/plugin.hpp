#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace nas {

/// Where a library of plug-ins is named.
enum class PluginSource {
  configuration,  ///< a configuration, or the record of a run
  command_line,   ///< the user, for this very call: it stands for what a configuration names so
};

/// A shared library of plug-ins that was built outside and loaded by this process.
struct PluginFile {
  std::string file;                    ///< absolute path
  std::string sha256;                  ///< of its bytes
  std::vector<std::string> registers;  ///< "normalization relu4", sorted
  PluginSource source = PluginSource::configuration;
};

/// Loads a shared library, whose plug-ins register themselves, and keeps it as long as the process
/// lives. The same bytes are loaded once, wherever they lie, and a configuration's file not at all
/// where the command line has given one of the same name. Not while other threads read registries.
/// @throws InputError "FILE: why" where there is no such file, where its path is no UTF-8, which no
/// record can hold, where it is no plug-in of this very attnas (nothing of it is run then), where it
/// cannot be loaded, registers nothing, or registers a key that is taken.
PluginFile load_plugin(const std::filesystem::path& file, PluginSource source);

/// In the order in which they were loaded.
std::vector<PluginFile> loaded_plugins();

}  // namespace nas
