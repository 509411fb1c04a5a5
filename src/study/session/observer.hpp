#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "evaluation/workforce.hpp"
#include "search/problem.hpp"
#include "search/search.hpp"
#include "study/reader/experiment.hpp"
#include "study/session/rehearsal.hpp"

namespace NAS_PUBLIC nas {

/// Hears what happens while a study runs, to show it. A function that is not overridden hears nothing. Calls come from any
/// thread, but never two at a time; none may take long, since workers wait for it, and none may throw. What begins also ends,
/// however it ends: what a beginning refers to lives until then.
class Observer {
 public:
  /// A search that begins.
  struct Search {
    const Experiment& experiment;
    const ObjectiveSet& objectives;  ///< with their ranges, once the baseline is measured
    const Problem& problem;
    const Rehearsal& rehearsal;  ///< what it is expected to ask for
  };
  /// Training runs beside the search: rates and the re-test; or in its place, those of listed mechanisms.
  struct Stage {
    std::string name;        ///< "re-test"
    std::int64_t total = 0;  ///< training runs, known ones included
    const Problem& problem;
    std::string baseline{};  ///< the experiment's; empty: none
    bool at_most = false;    ///< whether the total may become less: group_ended()
  };
  /// What a group of seeds says, where seeds are added until every mechanism is decided.
  struct Group {
    std::vector<std::string> lines;  ///< one a mechanism: progress_text()
    std::int64_t total = 0;          ///< training runs of the whole from now on: at most so many
  };

  Observer() = default;
  virtual ~Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// Something that a user should know, a line without its end.
  virtual void warned(const std::string& /*text*/) {}

  /// The workers elsewhere have changed (Experiment::cluster).
  virtual void workforce_changed(const Workforce& /*workforce*/) {}

  virtual void search_begins(const Search& /*search*/) {}
  /// So many failed evaluations are forgotten, to be tried again.
  virtual void retried(std::int64_t /*evaluations*/) {}
  /// An evaluation that an earlier process of the run has recorded.
  virtual void recalled(const Evaluation& /*evaluation*/) {}
  virtual void progressed(const Progress& /*progress*/) {}
  virtual void indicated(const Indicator& /*indicator*/) {}
  virtual void search_ended() {}

  virtual void stage_begins(const Stage& /*stage*/) {}
  virtual void stage_progressed(const Progress& /*progress*/) {}
  virtual void stage_ended() {}

  /// Seeds were added to mechanisms that are not decided yet, in a stage whose total is at most.
  virtual void group_ended(const Group& /*group*/) {}

  /// Observers of a Study hear one stage in place of this, its end, and all stages between.
  virtual void sequence_begins(const Stage& /*whole*/) {}
  virtual void sequence_ended() {}
};

/// Tells an observer of an end when it goes, however that happens.
class ToldEnd {
 public:
  ToldEnd(Observer& observer, void (Observer::*ended)()) : observer_(observer), ended_(ended) {}
  ~ToldEnd() { (observer_.*ended_)(); }
  ToldEnd(const ToldEnd&) = delete;
  ToldEnd& operator=(const ToldEnd&) = delete;

 private:
  Observer& observer_;
  void (Observer::*ended_)();
};

}  // namespace nas
