#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/parameters.hpp"
#include "core/registry.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Target value of a position that is not scored (the convention of torch's cross-entropy).
inline constexpr std::int64_t kNotScored = -100;

/// Fixed-length windows over one stream of token ids: what a model is trained on or evaluated with.
///
/// Window i reads `length` inputs from tokens[starts[i]]; the target of position t is the token
/// after it. Where `last_target` is set, the last position's target is that id instead (the
/// published pipeline's <PAD>). Where `targets` is not empty it holds length targets for each
/// window, kNotScored where nothing is asked (MQAR).
struct Windows {
  std::int64_t length = 0;            ///< L, tokens per window
  std::vector<std::int32_t> tokens;   ///< the stream
  std::vector<std::int64_t> starts;   ///< first input of each window, as an index into tokens
  std::int32_t last_target = -1;      ///< id, or -1: the next token of the stream
  std::vector<std::int32_t> targets;  ///< explicit targets (starts.size() * length), or empty
  /// Contiguous windows may start an epoch at any offset in [0, shift): training draws one each
  /// epoch. 1 = always 0.
  std::int64_t shift = 1;

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(starts.size()); }
  /// Writes window i, shifted by `offset` in [0, shift), to input[0 .. length) and target[0 ..
  /// length). Positions beyond the stream's end (only the last window, when shifted or shorter) are
  /// input 0 and not scored.
  void read(std::int64_t i, std::int64_t offset, std::int64_t* input, std::int64_t* target) const;
  /// @return number of scored targets over all windows at offset 0.
  [[nodiscard]] std::int64_t num_scored() const;
};

/// Targets that ask for every next token of the stream within a window, and nothing behind its last
/// input: size() * length, as Windows::targets. For a training split whose validation and test
/// splits score answers alone: each split has targets of its own, and the training loss is the mean
/// over those of `train`.
std::vector<std::int32_t> next_token_targets(const Windows& windows);

/// Token ids with a meaning; -1 where the corpus has none.
struct SpecialTokens {
  std::int32_t pad = -1;
  std::int32_t unknown = -1;
  std::int32_t end_of_sentence = -1;
};

/// What a model reaches without solving the task: a mechanism that does no better has learned
/// nothing of it.
struct ChanceLevel {
  std::string by;         ///< how it answers, for people: "guessing among the values shown"
  double nll = 0.0;       ///< nats per scored target
  double accuracy = 0.0;  ///< share of the scored targets, in [0, 1]
};

/// What a network learns: three splits of windows over one vocabulary, and what it is asked.
struct Corpus {
  std::string name;         ///< key of the plug-in
  std::string description;  ///< for people: source, unit of a token, layout
  std::int64_t vocabulary = 0;
  std::string unit;              ///< of a text: what a token is, as data.unit says it; else empty
  std::string tokenizer_file{};  ///< name of what makes ids of a text; empty: it needs no file
  std::string tokenizer{};       ///< bytes of that file
  SpecialTokens special;
  Windows train, valid, test;
  /// Splits that trained models are scored on once, at the end, by names that begin with "test_"
  /// ("test_256"). Their windows may have another length than the context.
  std::map<std::string, Windows> further{};
  std::string task = "next_token";  ///< key of what models are asked (training/task.hpp)
  std::int64_t labels = 0;          ///< C of classification: ids 0 .. C-1; else 0
  std::string
      hash;  ///< SHA-256 of all that training can see: ids, starts, targets and vocabulary size
  /// Perplexity on the validation targets of the add-one unigram model of the training tokens; 0
  /// where it has no meaning.
  double unigram_perplexity = 0.0;
  double bytes_per_token =
      0.0;  ///< of the validation text, for bits per byte; 0 where it has no meaning
  double test_bytes_per_token = 0.0;  ///< the same of the test text
  std::optional<ChanceLevel> chance;  ///< where it is known
  double least_nll =
      0.0;  ///< of the best answers that there are, nats per scored target; 0: not known
};

/// Where corpora look for files.
struct DataLocation {
  std::filesystem::path folder = "data";
};
/// @return what NAS_DATA_DIR names; else data/ of the current folder, if there is such a folder;
/// else the folder attnas of the user's cache ($XDG_CACHE_HOME or ~/.cache).
DataLocation default_data_location();

/// Loads a corpus whose windows have `context` tokens. Never falls back to other data.
/// @throws InputError if files are missing (saying which command gets them) or settings do not fit.
using CorpusRegistry =
    Registry<Corpus(const Parameters&, std::int64_t context, const DataLocation&)>;
CorpusRegistry& corpora();

class LearningTask;
/// Makes the task of a corpus (training/task.hpp), what its models are asked.
/// @throws InputError if the corpus does not fit it.
using TaskRegistry = Registry<std::shared_ptr<const LearningTask>(const Corpus&)>;
TaskRegistry& tasks();

/// Registers a corpus from its own .cpp: `NAS_REGISTER_CORPUS(description, function);`
#define NAS_REGISTER_CORPUS(...) \
  [[maybe_unused]] static const bool nas_registered_corpus = ::nas::corpora().add(__VA_ARGS__)

}  // namespace nas
