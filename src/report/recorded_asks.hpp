#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "genotype/search_space.hpp"
#include "report/summary.hpp"

namespace nas {

/// An ask of a run and what answered it.
struct RecordedAsk {
  const Ask* ask = nullptr;
  /// The first usable evaluation of those that answered; the first of all where none is.
  const Evaluation* evaluation = nullptr;
  std::vector<std::string> genes;  ///< values as asked, one for each of recorded_genes()
  std::vector<double> fitness;     ///< as the algorithm saw it, each objective in its own sense
  Status status = Status::failed;  ///< of the candidate, see Judgement
  std::string reason;              ///< why it is not ok
  bool usable = false;             ///< whether the fitness was measured: else it is a penalty
  std::int64_t trained = 0;        ///< evaluations that the asks so far have caused, without those
                                   ///< that constraints rejected before training
  double seconds = 0.0;            ///< of training, of these evaluations
};

/// The asks of a run, in their order.
std::vector<RecordedAsk> recorded_asks(const RunSummary& run);

/// The genes of a run's search space, as far as the run recorded them: those of an attention
/// mechanism with the options and bounds of its configuration, else "x1", "x2", ... A bound or an
/// option that the configuration does not give is taken from the values that were asked for.
/// @return none where the genotypes of a run have no common number of genes.
std::vector<Gene> recorded_genes(const RunSummary& run);

/// The value of a gene as a number: an option's position among the options, a real as it is.
double gene_number(const Gene& gene, const std::string& value);

/// A run for people: "quickstart, seed 42".
std::string run_title(const RunSummary& run);

/// What was searched on, for people: "ZDT1", or the problem and its corpus,
/// "attention_search brown".
std::string function_title(const RunSummary& run);

}  // namespace nas
