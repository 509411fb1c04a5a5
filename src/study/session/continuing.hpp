#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "evaluation/measurement.hpp"
#include "store/store.hpp"
#include "study/reader/experiment.hpp"

namespace nas {

/// How asks are answered and charged, by a number that is recorded under the key "answering". Where
/// it is another one, a search is not continued.
inline constexpr int kAnswering = 4;

/// The plug-ins that this process has loaded, for the environment of a record: a list of maps of
/// file, sha256 and registers; see PluginFile.
nlohmann::json plugins_record();

/// @param environments  of a record, with plug-ins under the key "plugins" if there were any.
/// @param folder        of the record.
/// @return what to do where plug-ins are recorded and nothing here registers the same; else empty.
std::string missing_plugins(const std::vector<nlohmann::json>& environments,
                            const std::filesystem::path& folder);

/// @throws InputError where these are missing, or where the bytes of one have changed and the command line does not give it.
void check_plugins(const std::vector<nlohmann::json>& environments,
                   const std::filesystem::path& folder);

/// In what an evaluation's identity is not as this program would make it, "key: old -> new" each; what
/// it has beyond that is its own.
/// @param now  Measurement::identity(), or a part of it.
std::vector<std::string> identity_differences(const Evaluation& evaluation,
                                              const nlohmann::json& now);

/// Whether evaluations of a record are those that this process would make, as far as their identity does not say it.
/// @param environment   this process's; see Store::begin_session.
/// @param force_device  allow another kind of device than the recorded one.
/// @throws InputError naming the folder: another kind of device, other bytes of a plug-in that the command line does not give.
void check_same_results(const Store& store, const std::filesystem::path& folder,
                        const nlohmann::json& environment, bool force_device);

/// Whether a run can be continued: nothing is written.
/// @param experiment    the one that is given now, in the folder of `store`.
/// @param environment   this process's; see Store::begin_session.
/// @param force_device  allow another kind of device than the recorded one.
/// @throws InputError naming the folder and what differs: plug-ins (see check_plugins), the configuration, the kind of device,
/// or what else determines a result (results version, corpus), or how asks were answered, so that recorded evaluations would
/// not answer and the search would take another course.
void check_continuation(const Store& store, const Experiment& experiment,
                        const Measurement& measurement, const std::filesystem::path& folder,
                        const nlohmann::json& environment, bool force_device);

/// What differs between two recorded environments and may change last digits: libraries, the
/// instructions that they compute with, the environment's variables that they read; as
/// "LibTorch 1.13.1 -> 2.6.0". What one of them does not tell is not compared.
std::vector<std::string> environment_changes(const nlohmann::json& before,
                                             const nlohmann::json& now);
/// Whether a recorded environment tells all of that; those of older programs do not.
bool tells_environment(const nlohmann::json& environment);

/// @return a warning, without an end of line, where earlier sessions had another environment
/// (environment_changes), or another build of a plug-in; empty: they had not.
std::string environment_warning(const Store& store, const nlohmann::json& environment);

}  // namespace nas
