#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace nas {

/// The name of a file with the user's home folder in place of `~`, `$HOME` or `${HOME}` before its first
/// '/', as a shell would have it: for names that no shell has read. Another name as it is, and any
/// where there is no HOME.
std::string at_home(const std::string& name);

/// Folders of what comes with the programs (analysis/, configs/, problems/tables/): share/attnas
/// of the installation of the running program, of that of this library where it is another, then the
/// source tree that it was built from.
std::vector<std::filesystem::path> shared_folders();

/// The prefix of the installation that the running program, or else this library, belongs to; empty
/// where neither is installed.
std::filesystem::path installation();

/// The file that a configuration means by a name, which at_home() may apply to.
/// @param named_in  the configuration's file; empty: the name was given elsewhere.
/// @return the name itself if it is absolute, empty, of a file in the current folder or of none
/// that is there; else the absolute path of the file. Looked for in the folder of `named_in`, in
/// the current folder, in shared_folders().
std::string located_file(const std::string& name, const std::filesystem::path& named_in);
/// Where located_file looks for a name, to follow "there is none" in messages: " in /home/me,
/// /usr/share/attnas"; empty for an absolute name.
std::string places_of_file(const std::string& name, const std::filesystem::path& named_in);

/// The same of a shared library of plug-ins, which is looked for in the folder of `named_in`, in
/// the current folder, and in the folder of installed ones, lib/attnas/plugins.
std::string located_plugin(const std::string& name, const std::filesystem::path& named_in);

/// The configuration that is meant by a name, which may lack its ".yaml": looked for as files are,
/// and in the folder configs/ of each of shared_folders().
/// @return a path to it; beside `named_in`, as that is written; empty if there is none.
std::filesystem::path located_configuration(const std::string& name,
                                            const std::filesystem::path& named_in = {});
/// Where located_configuration looks, as places_of_file() says it.
std::string places_of_configuration(const std::string& name,
                                    const std::filesystem::path& named_in = {});

/// The configuration that a user means by a file, or by the name of one.
/// @throws InputError with the places that were searched, and the nearest of those that come with
/// the programs.
std::filesystem::path find_configuration(const std::filesystem::path& name);

/// @return the configurations that come with the programs, by name in order; of those with the same
/// name the one that is found.
std::vector<std::filesystem::path> installed_configurations();

}  // namespace nas
