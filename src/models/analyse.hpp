#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace nas {

/// What nas-analyse is asked for.
struct AnalysisRequest {
  std::filesystem::path run;                ///< a run's folder, or its store.sqlite
  std::string mechanism;                    ///< a name, a label, "best" or "baseline"
  std::filesystem::path folder{};           ///< of the analysis; empty: RUN/attention/MECHANISM
  std::optional<std::int64_t> replicate{};  ///< empty: one whose weights are kept, else the first
  std::int64_t sequences = 64;              ///< held out, at least 2
  std::vector<std::string> overrides{};     ///< what is different here: "evaluation.device=cpu"
};

/// What nas-analyse has found.
struct AnalysisResult {
  std::filesystem::path folder;
  nlohmann::json json;  ///< see attention_json(); written to attention.json in the folder
};

/// Version of attention.json.
inline constexpr int kAnalysisSchema = 1;

/// A mechanism's name as a folder's: letters, digits, points and dashes, at most 100.
std::string folder_name(const std::string& mechanism);

/// Looks into a model that a run trained: with its weights where the run has kept them, or an
/// earlier analysis in the folder; else the training run is made again, which gives the same model
/// bitwise, and its weights are kept in the folder. It can be stopped and continued.
///
/// Held-out sequences are windows of the test split, evenly spaced; of the validation split where
/// there is no test split.
///
/// @throws InputError where the run trains nothing, has no such mechanism or no usable training run
/// of it, where this program would train it otherwise, or where its context is too short;
/// StopRequested.
AnalysisResult analyse_run(const AnalysisRequest& request);

/// The analysis for people: a row for each layer.
std::string analysis_table(const AnalysisResult& result);

}  // namespace nas
