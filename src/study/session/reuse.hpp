#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "evaluation/recording_evaluator.hpp"
#include "study/reader/experiment.hpp"

namespace nas {

/// What another run, or a table, has made of an evaluation, failures apart. Warns, naming the
/// settings, where nothing there is of this experiment's identity.
/// @param place         folder of the run, or the table's file; empty: nothing is recalled.
/// @param identity      Measurement::identity() of the experiment's problem.
/// @param environment   this process's; see Store::begin_session.
/// @param force_device  take also what another kind of device has trained.
/// @throws InputError if what is no part of an evaluation's identity differs: the objectives that
/// are recorded with it, the kind of device, the bytes of plug-ins.
Recall recall_from(const std::filesystem::path& place, const Experiment& experiment,
                   const nlohmann::json& identity, const nlohmann::json& environment,
                   bool force_device);

}  // namespace nas
