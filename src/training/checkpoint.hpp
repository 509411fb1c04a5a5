#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

namespace nas {

/// A checkpoint that cannot be continued from, with the reason: damaged, of another training run, or of an earlier version.
class UnreadableCheckpoint : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Writes the state of a training run: a line with its name and the SHA-256 of both, then
/// LibTorch's archive. Whole and durable when it returns (write_durably).
/// @param training  what the state is of; holds no white space.
/// @throws MachineError that names the file, or its folder where no space is left.
void write_checkpoint(const std::filesystem::path& file, const std::string& training,
                      torch::serialize::OutputArchive& archive);

/// @return an archive of tensors, on the CPU.
/// @throws UnreadableCheckpoint where it has functions, which LibTorch would run while it reads, or
/// records that archives of tensors do not have, or is none; std::bad_alloc.
torch::serialize::InputArchive read_archive(std::string_view bytes);

/// @return the archive, on the CPU; every byte of it is as it was written.
/// @throws UnreadableCheckpoint, and MachineError if the file cannot be read.
torch::serialize::InputArchive read_checkpoint(const std::filesystem::path& file,
                                               const std::string& training);

/// The bytes that LibTorch makes of an archive, which read_archive() takes.
/// Tensors come last in an archive: a cut one is told by what it lacks of these.
/// @throws std::bad_alloc, also where LibTorch dropped a part for which it had no memory.
std::string bytes_of(torch::serialize::OutputArchive& archive);

}  // namespace nas
