#pragma once

#include <filesystem>
#include <string>

#include "cli/experiment.hpp"
#include "evaluation/measurement.hpp"
#include "store/store.hpp"

namespace nas {

/// Whether a run can be continued: nothing is written.
/// @param experiment    the one that is given now, in the folder of `store`.
/// @param environment   this process's; see Store::begin_session.
/// @param force_device  allow another kind of device than the recorded one.
/// @throws InputError naming the folder and what differs: the configuration, the kind of device, or
/// what else determines a result (results version, corpus), so that recorded evaluations would not
/// answer and the search would take another course.
void check_continuation(const Store& store, const Experiment& experiment,
                        const Measurement& measurement, const std::filesystem::path& folder,
                        const nlohmann::json& environment, bool force_device);

/// @return a warning, without an end of line, where earlier sessions had another LibTorch, BLAS or
/// instruction set, with which the last digits of a result may differ; empty: they had not.
std::string environment_warning(const Store& store, const nlohmann::json& environment);

}  // namespace nas
