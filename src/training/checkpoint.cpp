#include "training/checkpoint.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <new>
#include <regex>
#include <sstream>

#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/istream_adapter.h>
#include <torch/serialize.h>

#include "core/durable_file.hpp"
#include "core/fault.hpp"
#include "core/hash.hpp"
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

/// @throws UnreadableCheckpoint where it has functions, and what LibTorch throws where it is none.
torch::serialize::InputArchive archive_of_tensors(std::string_view bytes) {
  static const std::regex function(R"(\bdef\b)");
  std::istringstream stream{std::string(bytes)};
  caffe2::serialize::PyTorchStreamReader records(
      std::make_unique<caffe2::serialize::IStreamAdapter>(&stream));
  for (const auto& name : records.getAllRecords()) {
    if (!name.starts_with("code/") || !name.ends_with(".py")) continue;
    const auto [text, size] = records.getRecord(name);
    const auto* const begin = static_cast<const char*>(text.get());
    if (std::regex_search(begin, begin + size, function)) {
      throw UnreadableCheckpoint("it holds functions beside its tensors, which are not run");
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
  if (too_little_memory) throw std::bad_alloc();
  if (!is_whole(bytes)) throw std::bad_alloc();
  return bytes;
}

void write_checkpoint(const std::filesystem::path& file, const std::string& training,
                      torch::serialize::OutputArchive& archive) {
  const auto payload = bytes_of(archive);
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
  const auto bytes = read_bytes(file);
  const auto end = bytes.find('\n');
  std::istringstream line(bytes.substr(0, end));
  std::string magic;
  std::string name;
  std::string sum;
  line >> magic >> name >> sum;
  if (magic != kMagic) {
    throw UnreadableCheckpoint(
        "it has no checksum: its beginning is damaged, or an earlier "
        "version of this program wrote it");
  }
  if (name != training) throw UnreadableCheckpoint("it is of another training");
  const auto payload = std::string_view(bytes).substr(end + 1);
  if (sum != checksum(training, payload)) {
    throw UnreadableCheckpoint("its checksum does not fit: it is damaged");
  }
  return read_archive(payload);
}

}  // namespace nas
