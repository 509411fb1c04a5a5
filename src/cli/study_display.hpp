#pragma once

#include <memory>
#include <optional>
#include <ostream>

#include "cli/progress_display.hpp"
#include "cli/stage_display.hpp"
#include "study/session/observer.hpp"

namespace nas {

/// Shows a study while it runs: its search, then what follows it. Warnings go to standard error.
class StudyDisplay final : public Observer {
 public:
  /// @param terminal  lines are rewritten; else each event has a line of its own.
  /// @param quiet     warnings only.
  StudyDisplay(std::ostream& out, bool terminal, bool quiet);

  void warned(const std::string& text) override;
  void workforce_changed(const Workforce& workforce) override;
  void search_begins(const Search& search) override;
  void retried(std::int64_t evaluations) override;
  void recalled(const Evaluation& evaluation) override;
  void progressed(const Progress& progress) override;
  void indicated(const Indicator& indicator) override;
  void search_ended() override { search_.reset(); }
  void stage_begins(const Stage& stage) override;
  void stage_progressed(const Progress& progress) override;
  void stage_ended() override { stage_.reset(); }
  void group_ended(const Group& group) override;

 private:
  std::ostream& out_;
  bool terminal_;
  bool quiet_;
  std::optional<Workforce> workforce_{};
  std::unique_ptr<ProgressDisplay> search_{};
  std::unique_ptr<StageDisplay> stage_{};
};

}  // namespace nas
