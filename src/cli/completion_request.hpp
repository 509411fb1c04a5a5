#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace nas {

/// A request that cannot be answered, as OpenAI's API says so.
struct RefusedRequest : std::runtime_error {
  RefusedRequest(int http_status, const std::string& message, std::string field = {},
                 std::string reason = {})
      : std::runtime_error(message),
        status(http_status),
        param(std::move(field)),
        code(std::move(reason)) {}
  int status;         ///< of HTTP
  std::string param;  ///< the field at fault; empty: none
  std::string code;   ///< "model_not_found"; empty: none
};

/// {"error": {"message", "type", "param", "code"}}.
nlohmann::ordered_json error_json(const RefusedRequest& refused);

/// The body of POST /v1/completions, in the form of OpenAI's API; `top_k` is an addition that
/// other servers have as well.
struct CompletionRequest {
  std::string model;
  std::vector<std::string> prompts;
  std::int64_t max_tokens = 16;  ///< [0, 4096]
  double temperature = 1.0;      ///< [0, 2]; 0: the likeliest tokens
  double top_p = 1.0;            ///< (0, 1]
  std::int64_t top_k = 0;        ///< 0: all tokens
  std::int64_t n = 1;            ///< completions of each prompt, [1, 16]
  /// Of what is drawn; completion i of a prompt draws by seed + i. Without one the same request has
  /// the same answer, too.
  std::uint64_t seed = 1;
  std::vector<std::string> stop{};         ///< at most 4; what ends a text, and is left out
  std::optional<std::int64_t> logprobs{};  ///< [0, 5], likeliest tokens beside each chosen one
  bool echo = false;                       ///< the prompt before its completion
  bool stream = false;
  bool stream_usage = false;  ///< a last part that says how many tokens there were
};

/// @throws RefusedRequest (400) naming the field, what it is and what is allowed: also for fields
/// that this server does not know, and for those whose value would change the answer
/// (best_of, suffix, logit_bias, presence_penalty, frequency_penalty).
CompletionRequest parse_completion_request(const std::string& body);

/// The text of one completion as its tokens come: what may be sent of it, and where it ends.
class CompletionText {
 public:
  explicit CompletionText(std::vector<std::string> stop) : stop_(std::move(stop)) {}

  /// @param text  of all tokens so far.
  /// @return what may be sent now: nothing of a character or of a stop text that may be incomplete.
  std::string grow(const std::string& text);
  /// What is left at the end.
  std::string rest();
  /// Whether a stop text has come.
  [[nodiscard]] bool stopped() const { return stopped_; }
  /// All that was sent, and what rest() would return.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::vector<std::string> stop_;
  std::string text_;
  std::size_t sent_ = 0;
  bool stopped_ = false;
};

}  // namespace nas
