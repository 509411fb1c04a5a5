#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "study/reader/experiment.hpp"

namespace nas {

/// A program that places orders on workers: a file of python/attnas/engines/, by its name.
struct Engine {
  std::string key;
  std::string summary;  ///< first line of the file's docstring
  std::string text;     ///< the rest of it, for people
  std::filesystem::path file;
};

/// Those that come with the programs, by name in order.
std::vector<Engine> engines();
/// @throws InputError with those that there are, and the nearest.
Engine find_engine(const std::string& key);

/// Whether processes elsewhere measure.
bool has_cluster(const Experiment& experiment);
/// In words, how workers of a run are started; empty where that is its engine's affair.
std::string how_to_start_workers(const Experiment& experiment, const std::filesystem::path& folder);
/// The words that start the engine of an experiment that has one.
std::vector<std::string> engine_command(const Experiment& experiment);

}  // namespace nas
