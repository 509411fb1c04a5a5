// Reading weights runs nothing that is in them.

#include "training/checkpoint.hpp"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/serialize.h>

#include "core/durable_file.hpp"
#include "core/temporary_folder.hpp"
#include "genotype/mechanism.hpp"
#include "genotype/mechanism_name.hpp"
#include "nn/transformer.hpp"
#include "training/trainer.hpp"
#include "unit/message_of.hpp"

namespace {

constexpr std::size_t kLarge = 4096;  // bytes: of smaller ones none fails
std::atomic<long> failing{0};  // which of the large allocations fails, counted from 1; 0: none

}  // namespace

// Those of LibTorch come here, too.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (size >= kLarge && failing.load() > 0 && --failing == 0) throw std::bad_alloc();
  if (void* place = std::malloc(size)) return place;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* place) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void* place, std::size_t /*size*/) noexcept {
  std::free(place);
}

namespace nas::testing {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string of_tensors() {
  torch::serialize::OutputArchive archive;
  archive.write("weight", torch::arange(6, torch::kFloat));
  archive.write("default", torch::zeros(1));  // as a function begins
  return bytes_of(archive);
}

using Records = std::map<std::string, std::string>;  // by their names

/// Those that LibTorch's writer does not write by itself.
Records records_of(const std::string& bytes) {
  std::istringstream stream(bytes);
  caffe2::serialize::PyTorchStreamReader reader(&stream);
  Records records;
  for (const auto& name : reader.getAllRecords()) {
    if (name == "version" || name.starts_with(".data/")) continue;
    const auto [text, size] = reader.getRecord(name);
    records.emplace(name, std::string(static_cast<const char*>(text.get()), size));
  }
  return records;
}

std::string archive_of(const Records& records, bool packed = false) {
  std::string bytes;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });
  for (const auto& [name, text] : records) {
    writer.writeRecord(name, text.data(), text.size(), packed);
  }
  writer.writeEndOfFile();
  return bytes;
}

/// An archive of tensors that has another record, or another text in one of its own.
std::string of_tensors_and(const std::string& name, const std::string& text, bool packed = false) {
  auto records = records_of(of_tensors());
  records[name] = text;
  return archive_of(records, packed);
}

std::string refusal_of(const std::string& bytes) {
  return message_of<UnreadableCheckpoint>([&] { (void)read_archive(bytes); });
}

class ArchiveTest : public ::testing::Test {
 protected:
  /// An archive that writes to victim_ when LibTorch reads it.
  [[nodiscard]] std::string with_functions() const {
    torch::jit::Module module("__torch__.Module");
    module.define("def __getstate__(self) -> int:\n  return 1\n");
    module.define("def __setstate__(self, state: int) -> None:\n  torch.save(state, '" +
                  victim_.string() + "')\n");
    std::ostringstream stream;
    module.save(stream);
    return stream.str();
  }
  /// One whose pickle calls a function of the system.
  [[nodiscard]] std::string with_pickle() const {
    const auto pickle = "\x80\x02" + ("cposix\nsystem\n(S'touch " + victim_.string() + "'\ntR.");
    return archive_of({{"data.pkl", pickle}, {"constants.pkl", pickle}});
  }
  /// LibTorch alone runs what is in an archive.
  void expect_run(const std::string& bytes) const {
    std::istringstream stream(bytes);
    (void)torch::jit::load(stream);
    ASSERT_TRUE(fs::exists(victim_));
    fs::remove(victim_);
  }
  void expect_refused(const std::string& bytes, const char* what) const {
    EXPECT_THROW((void)read_archive(bytes), UnreadableCheckpoint) << what;
    EXPECT_FALSE(fs::exists(victim_)) << what;
  }

  torch::serialize::InputArchive within_;
  const TemporaryFolder temporary_;
  fs::path victim_ = temporary_.path() / "victim";
};

TEST_F(ArchiveTest, TensorsAreReadAsTheyWereWritten) {
  auto archive = read_archive(of_tensors());
  torch::Tensor weight;
  archive.read("weight", weight);
  EXPECT_TRUE(at::equal(weight, torch::arange(6, torch::kFloat)));
}

TEST_F(ArchiveTest, WithoutMemoryForAPartOfItNoneIsMade) {
  constexpr int kTensors = 100;
  const auto name = [](int i) { return "a_rather_long_name_of_a_parameter_" + std::to_string(i); };
  int refused = 0;
  for (long fails = 1;; ++fails) {
    torch::serialize::OutputArchive archive;
    torch::serialize::OutputArchive within;
    for (int i = 0; i < kTensors; ++i) {
      archive.write(name(i), torch::full({2}, i));
      within.write(name(i), torch::full({2}, -i));
    }
    archive.write("within", within);
    std::string bytes;
    failing = fails;
    try {
      bytes = bytes_of(archive);
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    const bool none_failed = failing.exchange(0) > 0;
    if (!bytes.empty()) {
      auto read = read_archive(bytes);
      EXPECT_EQ(read.keys().size(), kTensors + 1) << "allocation " << fails;
      read.read("within", within_);
      EXPECT_EQ(within_.keys().size(), kTensors) << "allocation " << fails;
    }
    if (none_failed) break;
  }
  EXPECT_GT(refused, 3);
}

TEST_F(ArchiveTest, WhatWouldBeRunIsRefused) {
  const auto bytes = with_functions();
  expect_run(bytes);
  EXPECT_THAT(refusal_of(bytes),
              HasSubstr("it holds functions beside its tensors, which are not run"));
  const auto weights = temporary_.path() / "weights.pt";
  write_durably(weights, bytes);
  Architecture architecture{
      .stack = {parse_mechanism("dot|softmax|none|fixed|bias|0.1", Semantics::corrected)},
      .layers = 1,
      .width = 16,
      .heads = 2,
      .context = 8,
      .vocabulary = 10};
  nn::Transformer model(architecture);
  EXPECT_THAT(message_of<UnreadableCheckpoint>([&] { load_weights(weights, model); }),
              HasSubstr("functions"));
  EXPECT_FALSE(fs::exists(victim_));
}

TEST_F(ArchiveTest, FunctionsUnderAnotherCaseOfTheirNameAreRefused) {
  Records records;
  for (auto& [name, text] : records_of(with_functions())) {
    records.emplace(name.starts_with("code/") ? "CODE/" + name.substr(5) : name, text);
  }
  const auto bytes = archive_of(records);
  expect_run(bytes);
  EXPECT_THAT(refusal_of(bytes), HasSubstr("it holds 'CODE/__torch__.py'"));
  EXPECT_FALSE(fs::exists(victim_));
}

TEST_F(ArchiveTest, RecordsThatArchivesOfTensorsDoNotHaveAreRefused) {
  for (const std::string name :
       {"DATA.PKL", "Code/__torch__.py", "code/__torch__.PY", "code/other.py",
        "code/__torch__/x.py", "code/__torch__/___torch_mangle_.py",
        "code/__torch__/___torch_mangle_1/x.py", "data/x", "data/0/1", "constants/x", "model.json",
        "attributes.pkl", "extra/text"}) {
    EXPECT_THAT(refusal_of(of_tensors_and(name, "x")), HasSubstr("it holds '" + name + "'"));
  }
  EXPECT_THAT(refusal_of(of_tensors_and("\x1b[2J", "x")), HasSubstr("it holds '?[2J'"));
}

TEST_F(ArchiveTest, RecordsOfOtherVersionsOfLibTorchAreRead) {
  auto records = records_of(of_tensors());
  records["byteorder"] = "little";
  records["constants/0"] = "x";
  for (const bool packed : {false, true}) {
    auto archive = read_archive(archive_of(records, packed));
    EXPECT_EQ(archive.keys().size(), 2) << packed;
  }
}

TEST_F(ArchiveTest, WhatIsNoneIsRefused) {
  expect_refused(with_pickle(), "a pickle that calls the system");
  const auto whole = of_tensors();
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    expect_refused(whole.substr(0, size), "cut");
  }
  expect_refused(
      std::string("\x80\x02") + "cposix\nsystem\n(S'touch " + victim_.string() + "'\ntR.",
      "a pickle alone");
  expect_refused("0123PTMF" + std::string(500, '\0'), "another format of LibTorch");
  for (std::size_t place = 0; place < whole.size(); place += 31) {
    auto damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x55);
    try {
      (void)read_archive(damaged);
    } catch (const UnreadableCheckpoint&) {  // NOLINT(bugprone-empty-catch): or other numbers
    }
  }
}

}  // namespace
}  // namespace nas::testing
