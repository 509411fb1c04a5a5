#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "report/summary.hpp"

namespace nas {

// Runs in the formats of other programs. Text that is one file, or the files of a folder.

/// CSV (RFC 4180), one line per ask: its number from 1, batch, candidate, label, the genes as
/// asked, the number of evaluations that answered, status, each objective in its own sense (empty
/// where nothing was measured), each in minimisation form as the algorithm saw it, evaluations and
/// seconds of training that the asks so far have caused, and whether it was answered by what
/// earlier asks had caused.
std::string asks_csv(const RunSummary& run);

/// Point sets as moocore and R's eaf read them: one point per line, its objectives in minimisation
/// form, an empty line between runs; lines that begin with '#' name runs, objectives and units.
/// @param all  every usable candidate of a run, else the non-dominated ones.
/// @throws InputError if a run has no usable candidate: an empty set cannot be written.
std::string point_sets(std::span<const RunSummary> runs, bool all);

/// IOHprofiler's folder, as IOHexperimenter 0.3.17 writes it and IOHanalyzer (from 0.1.6 on) and
/// iohinspector read it: ALGORITHM/IOHprofiler_f1_FUNCTION.json says what the file
/// ALGORITHM/data_f1_FUNCTION/IOHprofiler_f1_DIMd.dat holds; runs of one algorithm with equal
/// settings share a file. An evaluation is an ask; failed ones have the penalty that the algorithm
/// saw, and those that constraints rejected have no line: the format knows no infeasible ones.
/// Columns: evaluations, raw_y, trained and seconds (evaluations and seconds of training that
/// the asks so far have caused), and
///   one objective: raw_y_best; values in the objective's own sense;
///   several: F2, F3, ...; values in minimisation form, since the format has one sense only.
/// All runs are of instance 1, since nothing but the seed differs, which is an attribute of a run.
/// @return texts by path in the folder.
/// @throws InputError if a run has no asks, or constraints rejected all of them.
std::map<std::filesystem::path, std::string> ioh_files(std::span<const RunSummary> runs);

/// The file of an Optuna journal (JournalFileStorage, from 3.1 on): one study per run, one trial
/// per ask, with its genes as parameters, objectives in their own sense, validation perplexities of
/// the curve as intermediate values, and candidate, label, status, reason, batch, replicates and
/// reused as user attributes. Failed asks are failed trials. With constraints, each other trial has
/// Optuna's own attribute `constraints`: [0] if it is feasible, [1] if it breaks one, by formula or
/// by what training found; its value is then the penalty that the algorithm saw. Times are in UTC;
/// an ask that earlier evaluations answered took none.
std::string optuna_journal(std::span<const RunSummary> runs);

}  // namespace nas
