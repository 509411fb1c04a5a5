#include "training/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <future>
#include <memory>
#include <new>
#include <sstream>

#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/istream_adapter.h>
#include <torch/serialize.h>

#include "core/durable_file.hpp"
#include "core/fault.hpp"
#include "core/hash.hpp"
#include "core/in_flight.hpp"
#include "core/warning.hpp"
#include "ops/model_failure.hpp"

namespace nas {

namespace {

constexpr std::size_t kLongestReason = 200;  // characters
constexpr const char* kMagic = "attnas-checkpoint-1";

std::string checksum(const std::string& training, std::string_view payload) {
  Sha256 hash;
  hash.update(training);
  hash.update("\n");
  hash.update(payload);
  return hash.hex();
}

/// Whether a text is a number between two others.
bool is_numbered(std::string_view text, std::string_view before, std::string_view after = "") {
  if (text.size() <= before.size() + after.size()) return false;
  if (!text.starts_with(before) || !text.ends_with(after)) return false;
  text.remove_prefix(before.size());
  text.remove_suffix(after.size());
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Whether LibTorch gives this name to a record of an archive of tensors, and of those within it.
/// It finds records by names without regard to case, but writes them in this one alone.
bool is_of_tensors(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kNames{
      "version",       "byteorder",         ".data/serialization_id",     "data.pkl",
      "constants.pkl", "code/__torch__.py", "code/__torch__.py.debug_pkl"};
  constexpr std::string_view kWithin = "code/__torch__/___torch_mangle_";
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         is_numbered(name, "data/") || is_numbered(name, "constants/") ||
         is_numbered(name, kWithin, ".py") || is_numbered(name, kWithin, ".py.debug_pkl");
}

/// Whether the word `def` is in a text of TorchScript, where every function begins with it.
bool has_function(std::string_view code) {
  constexpr std::string_view kWord = "def";
  const auto is_of_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (auto at = code.find(kWord); at != std::string_view::npos; at = code.find(kWord, at + 1)) {
    const auto after = at + kWord.size();
    if ((at == 0 || !is_of_word(code[at - 1])) &&
        (after == code.size() || !is_of_word(code[after]))) {
      return true;
    }
  }
  return false;
}

/// Whether a line of TorchScript is one of those that describe tensors: what is read by
/// LibTorch beside them, a constant, say, or a damaged one of these, may end the process.
bool describes_tensors(std::string_view line) {
  const auto is_of = [](std::string_view text, std::string_view more) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [more](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || more.find(c) != more.npos;
    });
  };
  const auto is_name = [&](std::string_view text) { return is_of(text, "_"); };
  const auto is_type = [&](std::string_view text) { return is_of(text, "_.[], "); };
  if (line.empty() || (line.starts_with("class ") && line.ends_with("(Module):"))) return true;
  if (!line.starts_with("  ")) return false;
  line.remove_prefix(2);
  if (line.starts_with("__parameters__ = [") || line.starts_with("__buffers__ = ["))
    return line.ends_with("]");
  if (line == "__annotations__ = []") return true;
  if (line.starts_with("__annotations__[\"")) {
    constexpr std::string_view kType = "\"] = ";
    const auto at = line.rfind(kType);
    return at != std::string_view::npos && is_type(line.substr(at + kType.size()));
  }
  const auto colon = line.find(" : ");
  return colon != std::string_view::npos && is_name(line.substr(0, colon)) &&
         is_type(line.substr(colon + 3));
}

/// Whether all lines do.
bool describes_tensors_alone(std::string_view code) {
  while (!code.empty()) {
    const auto end = std::min(code.find('\n'), code.size());
    if (!describes_tensors(code.substr(0, end))) return false;
    code.remove_prefix(std::min(end + 1, code.size()));
  }
  return true;
}

/// @throws UnreadableCheckpoint where it holds what archives of tensors do not hold, or functions,
/// and what LibTorch throws where it is none.
torch::serialize::InputArchive archive_of_tensors(std::string_view bytes) {
  std::istringstream stream{std::string(bytes)};
  caffe2::serialize::PyTorchStreamReader records(
      std::make_unique<caffe2::serialize::IStreamAdapter>(&stream));
  for (const auto& name : records.getAllRecords()) {
    auto shown = "'" + name + "'";
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    if (!is_of_tensors(name)) {
      throw UnreadableCheckpoint(
          "beside data/N, constants/N, data.pkl, constants.pkl, version and code/__torch__.py, "
          "which archives of tensors have, it holds " +
          shown);
    }
    if (!name.starts_with("code/") || !name.ends_with(".py")) continue;
    const auto [text, size] = records.getRecord(name);
    if (has_function({static_cast<const char*>(text.get()), size}))
      throw UnreadableCheckpoint("it holds functions beside its tensors, which are not run");
    if (!describes_tensors_alone({static_cast<const char*>(text.get()), size})) {
      throw UnreadableCheckpoint("its record " + shown +
                                 " describes more than tensors, or is damaged");
    }
  }
  torch::serialize::InputArchive archive;
  archive.load_from(bytes.data(), bytes.size(), torch::kCPU);
  return archive;
}

/// Tensors that an archive and those within it name.
std::size_t num_named(torch::serialize::InputArchive& archive) {
  std::size_t count = 0;
  for (const auto& key : archive.keys()) {
    torch::Tensor tensor;
    torch::serialize::InputArchive within;
    if (archive.try_read(key, tensor)) {
      ++count;
    } else if (archive.try_read(key, within)) {
      count += num_named(within);
    }
  }
  return count;
}

/// Whether all tensors that an archive holds have their names. What LibTorch's streams of names have no
/// memory for is missing from their ends, without an error.
bool is_whole(const std::string& bytes) {
  // By a thread of its own: what it reads is not the model's memory (nn::MemoryScope).
  return std::async(std::launch::async,
                    [&bytes] {
                      std::istringstream stream(bytes);
                      caffe2::serialize::PyTorchStreamReader reader(
                          std::make_unique<caffe2::serialize::IStreamAdapter>(&stream));
                      const auto records = reader.getAllRecords();
                      const auto held =
                          std::count_if(records.begin(), records.end(),
                                        [](const auto& name) { return name.starts_with("data/"); });
                      try {
                        auto archive = read_archive(bytes);
                        return static_cast<std::size_t>(held) == num_named(archive);
                      } catch (const UnreadableCheckpoint& error) {
                        warn(std::string("a checkpoint came out unreadable, and is not kept: ") +
                             error.what());
                        return false;
                      }
                    })
      .get();
}

}  // namespace

std::string bytes_of(torch::serialize::OutputArchive& archive) {
  std::string bytes;
  bool too_little_memory = false;
  // LibTorch's writer fails in its destructor, which ends the process: so errors are kept from it.
  archive.save_to([&](const void* data, std::size_t size) {
    try {
      if (!too_little_memory) bytes.append(static_cast<const char*>(data), size);
    } catch (const std::bad_alloc&) {
      too_little_memory = true;
    }
    return size;
  });
  if (too_little_memory || !is_whole(bytes)) throw std::bad_alloc();
  return bytes;
}

void write_checkpoint(const std::filesystem::path& file, const std::string& training,
                      torch::serialize::OutputArchive& archive) {
  const auto payload = bytes_of(archive);
  const InFlight::Pause disk;
  write_durably(file, std::string(kMagic) + " " + training + " " + checksum(training, payload) +
                          "\n" + payload);
}

torch::serialize::InputArchive read_archive(std::string_view bytes) {
  try {
    return nn::of_model([&] { return archive_of_tensors(bytes); });
  } catch (const CandidateFailure& error) {
    const std::string why = error.what();  // LibTorch may quote the whole text
    throw UnreadableCheckpoint(
        why.substr(0, std::min<std::size_t>(why.find('\n'), kLongestReason)));
  }
}

torch::serialize::InputArchive read_checkpoint(const std::filesystem::path& file,
                                               const std::string& training) {
  const auto bytes = [&file] {
    const InFlight::Pause disk;
    return read_bytes(file);
  }();
  const auto end = bytes.find('\n');
  std::istringstream line(bytes.substr(0, end));
  std::string magic, name, sum;
  line >> magic >> name >> sum;
  if (magic != kMagic) {
    throw UnreadableCheckpoint(
        "it has no checksum: its beginning is damaged, or an earlier "
        "version of this program wrote it");
  }
  if (name != training) throw UnreadableCheckpoint("it is of another training");
  const auto payload = std::string_view(bytes).substr(end + 1);
  if (sum != checksum(training, payload))
    throw UnreadableCheckpoint("its checksum does not fit: it is damaged");
  return read_archive(payload);
}

}  // namespace nas
