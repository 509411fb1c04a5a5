#include "training/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <future>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

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
// Bytes of a text of code, and of all records beyond the archive's own size.
constexpr std::uint64_t kMostUnpacked = std::uint64_t{16} << 20U;
constexpr const char* kMagic = "attnas-checkpoint-1";

std::string checksum(const std::string& training, std::string_view payload) {
  Sha256 hash;
  hash.update(training);
  hash.update("\n");
  hash.update(payload);
  return hash.hex();
}

/// A record as the list at an archive's end describes it. Sizes of 4 GiB and more read 4 GiB - 1.
struct ListedRecord {
  std::string name;         ///< within the archive's folder
  std::uint64_t size;       ///< of what it unpacks to, in bytes
  std::uint64_t size_kept;  ///< of what the archive holds of it, in bytes
  bool is_folder;           ///< LibTorch leaves the memory for its bytes as it finds it
};

/// @return the little-endian number of `width` bytes that begins at `place`.
std::uint64_t number_at(std::string_view bytes, std::size_t place, std::size_t width) {
  if (place > bytes.size() || width > bytes.size() - place) {
    throw UnreadableCheckpoint("its list of records is damaged");
  }
  std::uint64_t number = 0;
  for (std::size_t i = width; i-- > 0;) {
    number = number << 8U | static_cast<unsigned char>(bytes[place + i]);
  }
  return number;
}

/// @return the records of a zip archive that ends as LibTorch's do, in their order: the list of
/// records, its end in 64-bit numbers, the place of that, and its end in 32-bit ones.
/// LibTorch 1.13 tells no sizes, and unpacks whatever it is asked for, in part to open an archive.
/// @throws UnreadableCheckpoint where it ends otherwise, or the list is damaged.
std::vector<ListedRecord> listed_records(std::string_view bytes) {
  constexpr std::uint64_t kRecord = 0x02014b50;
  constexpr std::uint64_t kEnd64 = 0x06064b50;
  constexpr std::uint64_t kPlace = 0x07064b50;
  constexpr std::uint64_t kEnd = 0x06054b50;
  constexpr std::size_t kRecordBytes = 46;
  constexpr std::size_t kEnd64Bytes = 56;
  constexpr std::size_t kPlaceBytes = 20;
  constexpr std::size_t kEndBytes = 22;
  constexpr std::uint64_t kFolder = 0x10;  // of the attributes
  constexpr const char* kBroken = "it is no archive of LibTorch's, or is cut";
  if (bytes.size() < kEnd64Bytes + kPlaceBytes + kEndBytes) {
    throw UnreadableCheckpoint(kBroken);
  }
  const auto place = bytes.size() - kEndBytes - kPlaceBytes;
  const auto end = place - kEnd64Bytes;
  auto at = number_at(bytes, end + 48, 8);
  if (number_at(bytes, end, 4) != kEnd64 || number_at(bytes, place, 4) != kPlace ||
      number_at(bytes, place + 8, 8) != end || number_at(bytes, place + kPlaceBytes, 4) != kEnd ||
      at > end || number_at(bytes, end + 40, 8) != end - at) {
    throw UnreadableCheckpoint(kBroken);
  }
  const auto list = bytes.substr(0, end);
  std::vector<ListedRecord> records;
  std::string folder;  // the first record's, which all must be in
  while (at < end) {
    const auto length = number_at(list, at + 28, 2);
    const auto next =
        at + kRecordBytes + length + number_at(list, at + 30, 2) + number_at(list, at + 32, 2);
    if (number_at(list, at, 4) != kRecord || next > end) {
      throw UnreadableCheckpoint("its list of records is damaged");
    }
    std::string name(list.substr(at + kRecordBytes, length));
    if (records.empty()) folder = name.substr(0, name.find('/') + 1);
    if (name.starts_with(folder)) name.erase(0, folder.size());
    records.push_back({.name = std::move(name),
                       .size = number_at(list, at + 24, 4),
                       .size_kept = number_at(list, at + 20, 4),
                       .is_folder = (number_at(list, at + 38, 4) & kFolder) != 0});
    at = next;
  }
  return records;
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
  if (line.starts_with("__parameters__ = [") || line.starts_with("__buffers__ = [")) {
    return line.ends_with("]");
  }
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

/// @throws UnreadableCheckpoint where a list has what archives of tensors do not have, or what would
/// take much more memory than the archive's own `size_of_archive` bytes.
void expect_tensors(const std::vector<ListedRecord>& records, std::size_t size_of_archive) {
  std::set<std::string_view> names;
  std::uint64_t size = 0;
  for (const auto& record : records) {
    auto shown = "'" + record.name + "'";
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    if (!is_of_tensors(record.name)) {
      throw UnreadableCheckpoint(
          "beside data/N, constants/N, data.pkl, constants.pkl, version and code/__torch__.py, "
          "which "
          "archives of tensors have, it holds " +
          shown);
    }
    if (!names.insert(record.name).second) {
      throw UnreadableCheckpoint("it holds two records " + shown);
    }
    if (record.is_folder || record.size_kept > size_of_archive) {
      throw UnreadableCheckpoint("its record " + shown + " is damaged");
    }
    if (record.name.starts_with("code/") && record.size > kMostUnpacked) {
      throw UnreadableCheckpoint("its record " + shown + " unpacks to " +
                                 std::to_string(record.size) + " bytes, of at most " +
                                 std::to_string(kMostUnpacked));
    }
    size += record.size;
  }
  // LibTorch packs texts of code alone.
  if (size > size_of_archive + kMostUnpacked) {
    throw UnreadableCheckpoint("its " + std::to_string(size_of_archive) + " bytes unpack to " +
                               std::to_string(size) + ", of at most " +
                               std::to_string(kMostUnpacked) + " more");
  }
}

/// @throws UnreadableCheckpoint where it holds what archives of tensors do not hold, or functions,
/// and what LibTorch throws where it is none.
torch::serialize::InputArchive archive_of_tensors(std::string_view bytes) {
  const auto listed = listed_records(bytes);
  expect_tensors(listed, bytes.size());
  std::istringstream stream{std::string(bytes)};
  caffe2::serialize::PyTorchStreamReader records(
      std::make_unique<caffe2::serialize::IStreamAdapter>(&stream));
  // What was looked at is what LibTorch will load.
  if (!std::ranges::equal(records.getAllRecords(), listed, {}, {}, &ListedRecord::name)) {
    throw UnreadableCheckpoint("its list of records is damaged");
  }
  for (const auto& record : listed) {
    if (!record.name.starts_with("code/") || !record.name.ends_with(".py")) continue;
    const auto [text, size] = records.getRecord(record.name);
    if (has_function({static_cast<const char*>(text.get()), size})) {
      throw UnreadableCheckpoint("it holds functions beside its tensors, which are not run");
    }
    if (!describes_tensors_alone({static_cast<const char*>(text.get()), size})) {
      throw UnreadableCheckpoint("its record '" + record.name +
                                 "' describes more than tensors, or is damaged");
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
