#pragma once

#include <functional>
#include <string>

#include <boost/program_options.hpp>

#include "cli/nas_model.hpp"
#include "cli/nas_work.hpp"
#include "cli/study_program.hpp"
#include "models/analyse.hpp"
#include "study/comparison_study.hpp"
#include "study/reproduction.hpp"

namespace nas {

/// What the programs have from the library with LibTorch. Their command lines, help, lists and checks
/// stand on attnas_base, so that a process without LibTorch gives the same answers (cli/start.hpp).
struct WithTorch {
  std::string (*version_text)();
  int (*run_study)(const Study&, const StudyArguments&, char** argv, std::string& kept);
  int (*run_pilot)(const Study&, const StudyArguments&, char** argv, const Pilot&,
                   std::string& kept);
  Reproduction (*reproduce)(const std::filesystem::path&, const ReproductionSettings&,
                            const std::function<void(const Reproduction&)>&);
  ComparisonResult (*run_comparison)(const Comparison&, const ComparisonSettings&);
  AnalysisResult (*analyse_run)(const AnalysisRequest&);
  std::string (*analysis_table)(const AnalysisResult&);
  int (*use_model)(const std::string& command, const std::string& of, const ModelOptions&,
                   const boost::program_options::variables_map& given);
  int (*work)(Place place);
};

/// The programs (cli/programs.hpp), given that. Before they call or print anything else they call
/// require_more_than_words() (core/words_only.hpp).
int nas_analyse(const WithTorch& torch, int argc, char** argv);
int nas_compare(const WithTorch& torch, int argc, char** argv);
int nas_model(const WithTorch& torch, int argc, char** argv);
int nas_run(const WithTorch& torch, int argc, char** argv);
int nas_train(const WithTorch& torch, int argc, char** argv);
int nas_work(const WithTorch& torch, int argc, char** argv);

/// Runs any of them, or a program that needs no LibTorch. @param name  "nas_run".
int run_program(const WithTorch& torch, const std::string& name, int argc, char** argv);

}  // namespace nas
