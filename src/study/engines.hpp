#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/store.hpp"
#include "study/experiment.hpp"

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
/// The model of device that a cluster's results must come from: cluster.device, but for auto that of
/// the workers' results that the run has.
std::string device_of_workers(const Experiment& experiment, const Store& store);
/// The words that start the engine of an experiment that has one.
std::vector<std::string> engine_command(const Experiment& experiment);

}  // namespace nas
