#include "training/checkpoint.hpp"

#include <exception>
#include <new>
#include <sstream>

#include <torch/serialize.h>

#include "core/durable_file.hpp"
#include "core/hash.hpp"

namespace nas {

namespace {

constexpr const char* kMagic = "attnas-checkpoint-1";

std::string checksum(const std::string& training, std::string_view payload) {
  Sha256 hash;
  hash.update(training);
  hash.update("\n");
  hash.update(payload);
  return hash.hex();
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
  return bytes;
}

void write_checkpoint(const std::filesystem::path& file, const std::string& training,
                      torch::serialize::OutputArchive& archive) {
  const auto payload = bytes_of(archive);
  write_durably(file, std::string(kMagic) + " " + training + " " + checksum(training, payload) +
                          "\n" + payload);
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
  torch::serialize::InputArchive archive;
  archive.load_from(payload.data(), payload.size(), torch::kCPU);
  return archive;
}

}  // namespace nas
