#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "study/study.hpp"

namespace nas {

/// What every program that runs a study understands.
struct StudyArguments {
  bool dry_run = false;
  bool settings = false;
  bool quiet = false;
  bool help = false;
  bool version = false;
  bool force_device = false;
  bool no_report = false;
  std::string output;
  std::string retry;
  std::string reuse;
  std::vector<std::string> plugins;
};

/// The options of these, bound to them.
/// @param folder  that of a run without --output, for people: "runs/NAME".
boost::program_options::options_description study_options(StudyArguments& arguments,
                                                          const std::string& folder);

/// Loads the plug-ins. @throws InputError as load_plugins() does, and where options do not go
/// together.
void begin_study_program(const StudyArguments& arguments);

/// What is trained in place of a study's search or list (Study::RunSettings::pilot).
struct Pilot {
  std::string text;  ///< for its plan
  std::int64_t trainings = 0;
  Stage train;
};

/// Runs a study to its end and shows it, or prints its plan; what a pilot has trained is not shown.
/// @param argv  of the program, which may start itself again (see wait_passively).
/// @param kept  receives the folder that keeps what is finished.
/// @return exit code.
int run_study(const Study& study, const StudyArguments& arguments, char** argv, std::string& kept,
              const Pilot* pilot = nullptr);

}  // namespace nas
