#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// What became of an evaluation. Only `ok`, `paused` and `stopped_early` have a measured quality;
/// the others are failures with a reason, and the algorithm sees a finite dominated penalty for
/// them.
enum class Status {
  ok,
  paused,  ///< at a validation step; goes on from there whenever it is asked for more
  stopped_early,
  diverged,
  out_of_memory,
  rejected,
  failed,
  timed_out,  ///< it took longer than evaluation.time_limit
  crashed,    ///< it ended the process, twice
};
/// All of them.
inline constexpr std::array kStatuses{
    Status::ok,       Status::paused,        Status::stopped_early,
    Status::diverged, Status::out_of_memory, Status::rejected,
    Status::failed,   Status::timed_out,     Status::crashed};
std::string_view to_string(Status status);
/// @throws InputError for another text.
Status parse_status(std::string_view text);

/// The first replicate of a re-test: far beyond those of any search, so that its seeds are fresh.
inline constexpr std::int64_t kFirstHeldOutReplicate = 1'000'000;
/// A replicate for people, numbered from 1, those that no search asks for apart: "seed 1".
std::string seed_text(std::int64_t replicate);
/// The most replicates of each candidate that a configuration may ask for: beyond what anybody
/// trains, so that a typo is refused by name.
inline constexpr std::int64_t kMostReplicates = 10'000;

/// A count that was not recorded; a sum that was not is NaN.
inline constexpr std::int64_t kNotCounted = -1;

/// Sums over the scored targets of a split, so that any definition of perplexity can be computed
/// later. nll in nats. What follows from a sum that was not recorded is NaN.
struct Scores {
  double nll = 0.0;
  std::int64_t tokens = 0;
  std::int64_t correct = 0;  ///< targets that the model ranks first
  double pad_nll = 0.0;      ///< the part on <PAD> targets (published pipeline)
  std::int64_t pad_tokens = 0;
  double unknown_nll = 0.0;  ///< the part on <UNK> targets
  std::int64_t unknown_tokens = 0;
  double batch_mean_nll = 0.0;  ///< sum over batches of the batch's mean nll
  std::int64_t batches = 0;

  [[nodiscard]] double perplexity() const;            ///< exp(nll / tokens): token-weighted
  [[nodiscard]] double published_perplexity() const;  ///< exp(mean of batch means)
  [[nodiscard]] double accuracy() const;              ///< correct / tokens
};

/// One point of a training curve.
struct CurvePoint {
  std::int64_t step = 0;
  double train_nll = 0.0;  ///< mean training loss in nats since the previous point
  Scores valid;
  double seconds = 0.0;  ///< training time so far; measured, not part of the comparable record
};

/// One candidate measured once: everything needed to know what was done and what came out.
struct Evaluation {
  std::string id;         ///< SHA-256 of `identity`, 64 hex digits
  std::string candidate;  ///< canonical name (component keys): what was evaluated
  std::int64_t replicate = 0;
  nlohmann::json identity;  ///< all that determines the result: candidate, settings, data hash,
                            ///< seeds, versions, ...

  Status status = Status::failed;
  std::string reason;  ///< why it is not ok; empty if ok
  std::vector<CurvePoint> curve;
  std::map<std::string, double>
      values;  ///< deterministic quantities by name: parameters, flops, perplexity, ...

  /// Measured or incidental, hence left out of comparisons: train_seconds, peak_bytes, started
  /// (UTC), pid, host, device, threads, library versions, ...
  nlohmann::json measured;
};

/// Whether it means a measured quality.
bool is_usable(Status status);
/// Whether another version, machine or limit may come to something else: all that `--retry failed`
/// forgets.
bool may_be_retried(Status status);
/// Whether an evaluation has a measured quality.
bool is_usable(const Evaluation& evaluation);
/// Turns a usable evaluation with a value that is no number, or infinite, into Status::diverged: a
/// perplexity beyond the range of doubles, from 709 nats per token on, cannot be compared. What the
/// test split says decides nothing.
void require_finite_values(Evaluation& evaluation);
/// Whether it was rejected before anything was trained: it breaks a constraint, sees later tokens,
/// or is no model.
bool is_screened_out(const Evaluation& evaluation);
/// The values that scores determine: perplexity, published_perplexity, accuracy, and bits_per_byte
/// where tokens have bytes and none of the targets is unknown: of an unknown word a model predicts no
/// byte.
/// @param bytes_per_token  of the text that was scored, 0: it is no text.
std::map<std::string, double> quality_values(const Scores& scores, double bytes_per_token);
/// Sets those of the last point of the curve. Other evaluations have no bits_per_byte.
void set_quality_values(Evaluation& evaluation, double bytes_per_token);
/// One of them by its name: as recorded, which for an evaluation that stands for several training
/// runs is the mean of theirs; where none is recorded, from the last point of the curve.
/// @throws std::logic_error in words if the evaluation has no such value.
double quality(const Evaluation& evaluation, const std::string& name);

/// Whether an evaluation says what a training run has come to at a validation step: it is paused no
/// sooner, or it has ended. @param until  0: at its end.
bool answers(const Evaluation& evaluation, std::int64_t until);
/// In `measured`: the seconds that tries have trained which failed and were repeated.
inline constexpr const char* kFailedSeconds = "failed_seconds";
/// Seconds of training that an evaluation has cost, those of failed tries included; 0 where nothing
/// is known of them.
double spent_seconds(const Evaluation& evaluation);

/// Makes of an evaluation what it was when its training run had come to a validation step, and says
/// `paused` where it went on from there: curve, the values that its end determines, and seconds are
/// those of that step, and what the test split said is gone. One that ended before, or there, stays.
/// @param bytes_per_token  of the validation text, 0: it is no text.
void pause_at(Evaluation& evaluation, std::int64_t step, double bytes_per_token);
/// Takes from the curve of a failure the validation step that its training run was to pause at, and
/// what is behind it: what failed there, as for its time, would otherwise have come to it by
/// pause_at(). @param step  0: none.
void fail_before(Evaluation& evaluation, std::int64_t step);

/// Records the scores of the test split in `values`: test_nll per token, test_perplexity, and each
/// of the other sums under its name, test_tokens, test_correct, ...
void set_test_values(Evaluation& evaluation, const Scores& test);
/// Those scores again; what was not recorded is NaN or kNotCounted: before all sums were recorded,
/// everything but nll and tokens.
Scores test_scores(const Evaluation& evaluation);

/// A number as JSON, which has no infinities and no NaN: these are the texts nan, inf and -inf.
nlohmann::json number_json(double value);
/// The number again; null is infinity: so lists of doubles write what is not finite.
/// @throws InputError for another text, nlohmann::json::exception for what is no number.
double read_number(const nlohmann::json& json);

/// The store's JSON forms of parts of an evaluation.
nlohmann::json values_json(const Evaluation& evaluation);
void to_json(nlohmann::json& json, const Scores& scores);
void from_json(const nlohmann::json& json, Scores& scores);
void to_json(nlohmann::json& json, const CurvePoint& point);
void from_json(const nlohmann::json& json, CurvePoint& point);
/// All of an evaluation, which reads back equal: what passes between processes.
void to_json(nlohmann::json& json, const Evaluation& evaluation);
void from_json(const nlohmann::json& json, Evaluation& evaluation);
/// Puts null in place of the candidate in an evaluation's identity: for holders of very many,
/// whose names may be long.
void shorten_identity(Evaluation& evaluation);
/// The identity as it was before.
nlohmann::json whole_identity(const Evaluation& evaluation);
/// The comparable part of an evaluation (no measured fields, no seconds): equal for a resumed and
/// an uninterrupted run.
nlohmann::json canonical_json(const Evaluation& evaluation);

}  // namespace nas
