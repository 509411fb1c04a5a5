#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <limits>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "report/summary.hpp"

namespace NAS_PUBLIC nas {

/// The closing table for a terminal: the best ten mechanisms (several objectives: at most 20 of the
/// non-dominated front) beside the baseline, failures, and what the numbers can and cannot say.
/// @param width  characters of a line: what does not fit is left out, as accuracies are, or folded.
std::string closing_table(const RunSummary& run,
                          std::size_t width = std::numeric_limits<std::size_t>::max());

/// One line per evaluation, RFC 4180. At its end the candidate's means over all its evaluations
/// with their standard errors (empty for n = 1), and n; empty where none was usable.
std::string evaluations_csv(const RunSummary& run);
/// The same, line by line.
void write_evaluations(const RunSummary& run, std::ostream& out);

/// Sections of a configuration, and settings as "section.key", on which no training run depends: a
/// run may be continued with others, and they are no part of its comparable form.
const std::set<std::string>& settings_without_effect();

/// A configuration without the places of its texts and its table. They depend on where a command
/// was given; the contents count, and their checksums are part of every evaluation's identity.
nlohmann::json without_places(nlohmann::json config);

/// The comparable form of a run, JSON Lines: configuration, asks, evaluations; nothing measured, no
/// process, no path.
std::string canonical_export(const RunSummary& run);
/// The same, line by line.
void write_canonical(const RunSummary& run, std::ostream& out);

/// @param whose  what the message begins with.
/// @throws InputError where a file at PATH may not be replaced: a folder, a pipe, a socket, a
/// device, or a database, for a run's store and a table cost what was trained for them.
void require_replaceable(const std::filesystem::path& file, const std::string& whose = "");

/// Writes a file whole or not at all, and through no link: by way of FILE.HOST.PROCESS.tmp,
/// which is made anew, synced to disk and then renamed.
/// @param write  what writes its content.
/// @throws InputError as require_replaceable, but for a folder; std::filesystem::filesystem_error
/// naming it if it cannot be written. Whether the user's path or the machine is to blame depends on
/// whether work was done before: run_main() decides.
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write);

/// Writes a run's result for programs into its folder: results.json and evaluations.csv.
/// @throws as write_file.
void write_results(const std::filesystem::path& folder, const RunSummary& run);
/// The same of a run that was stopped, from what is there of it; nothing where there is no store.
void write_results(const std::filesystem::path& folder);

}  // namespace nas
