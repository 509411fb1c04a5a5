#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace nas {

/// Tells people of something that they should know and that changes no result. From any thread.
/// Without a listener it is a line of its own on standard error: "warning: TEXT".
void warn(std::string_view text);

/// That line: what a listener may write, too.
void write_warning(std::string_view text);

/// Hears the process's warnings while it lives, in place of standard error; of several the latest
/// hears. Calls come from any thread, also at the same time.
class WarningListener {
 public:
  using Function = std::function<void(const std::string&)>;

  explicit WarningListener(Function listener);
  ~WarningListener();
  WarningListener(const WarningListener&) = delete;
  WarningListener& operator=(const WarningListener&) = delete;

 private:
  std::shared_ptr<const Function> before_;
};

}  // namespace nas
