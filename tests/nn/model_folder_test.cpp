// Exported models read again: files of others and damaged ones.

#include "models/model_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "data/text.hpp"
#include "genotype/architecture_name.hpp"
#include "models/safetensors.hpp"
#include "ops/torch_compat.hpp"
#include "unit/message_of.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kVanilla = "dot|softmax|none|fixed|bias|0.1";
constexpr const char* kWide =
    "model{position_embedding=none,norm=rms}/"
    "attn{pattern=window,window=4,position=rope,decay=scalar,conv=3}+swiglu/"
    "attn{heads=4,kv_heads=2}";

Architecture model_of(const std::string& name) {
  Architecture frame{.width = 16, .heads = 2, .context = 12, .vocabulary = 13, .feed_forward = 2};
  return canonical(parse_model(name, frame));
}

Corpus text_of_words() {
  Corpus corpus;
  corpus.name = "text_file";
  corpus.unit = "word";
  corpus.tokenizer_file = "vocabulary.txt";
  corpus.tokenizer = "<unk>\n<eos>\na\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n";
  corpus.special = {.pad = -1, .unknown = 0, .end_of_sentence = 1};
  return corpus;
}

/// With weights so large that no two logits are alike.
nn::Transformer drawn(const Architecture& architecture) {
  const at::NoGradGuard no_grad;
  nn::Transformer model(architecture);
  const auto generator = nn::make_generator(at::kCPU, 7);
  for (auto& [name, tensor] : model.parameters()) tensor.normal_(0.0, 0.5, generator);
  return model;
}

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

/// JSON that is nested so deeply that what recurses through it ends the process.
std::string nested() {
  constexpr std::size_t kDeep = 200'000;
  return std::string(kDeep, '[') + std::string(kDeep, ']');
}

/// A file of safetensors with any header.
std::string file_of(const std::string& header, std::size_t bytes) {
  const auto length = static_cast<std::uint64_t>(header.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header +
         std::string(bytes, '\0');
}

TEST(Safetensors, ReadsWhatItWrites) {
  const std::vector<std::pair<std::string, torch::Tensor>> tensors{
      {"matrix", at::arange(6, at::kFloat).view({2, 3})},
      {"number", at::full({}, 7.5, at::kFloat)},
      {"nothing", at::empty({0, 4}, at::kFloat)}};
  const auto bytes = safetensors(tensors);
  const auto again = read_safetensors(bytes);
  ASSERT_EQ(again.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(at::equal(again.at(name), tensor)) << name;
  // As other programs may write: no blanks, any order, metadata; no place of a multiple of 4.
  const auto foreign = read_safetensors(
      file_of(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"__metadata__":{"x":"y"},)"
              R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
              12));
  EXPECT_EQ(foreign.at("a").numel(), 2);
  EXPECT_EQ(foreign.at("b").numel(), 1);
}

TEST(Safetensors, RefusesDamagedFiles) {
  const auto tensor = [](const std::string& shape, const std::string& offsets,
                         const std::string& name = "a") {
    return "\"" + name + R"(":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}";
  };
  const auto one = [&](const std::string& shape, const std::string& offsets, std::size_t bytes) {
    return file_of("{" + tensor(shape, offsets) + "}", bytes);
  };
  const auto two = [&](const std::string& offsets, std::size_t bytes) {
    return file_of("{" + tensor("[2]", "[0,8]") + "," + tensor("[2]", offsets, "b") + "}", bytes);
  };
  const auto whole = one("[2]", "[0,8]", 8);
  ASSERT_EQ(read_safetensors(whole).size(), 1U);
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "has 0 bytes, must have 8 before the header"},
      {whole.substr(0, 20), "a header of 54 bytes, must be at most 12"},
      {std::string(8, '\xff') + "{}", "must be at most 2"},
      {whole.substr(0, whole.size() - 1),
       "tensor a: shape [2] is larger than the file, must be at most 7 bytes"},
      {file_of("[1]", 0), "the header must be a JSON object"},
      {file_of(std::string("{}\0]", 4), 0), "it is no JSON: a byte of 0"},
      {file_of(R"({"a":)", 0), "the header must be a JSON object: it is no JSON: "},
      {file_of(R"({"a":{"dtype":)" + nested() + "}}", 0),
       "the header must be a JSON object: its JSON is nested more than 100 deep"},
      {file_of(R"({"a":3})", 0), "tensor a: has no dtype"},
      {file_of("{\"" + std::string(999, 'a') + "\":3}", 0), std::string(80, 'a') + "...: has no"},
      {file_of(R"({"a\u0000":3})", 0), R"(tensor "a\u0000": must have a name without)"},
      {file_of(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", 4),
       R"(tensor a: is of type "F16", must be "F32")"},
      {file_of(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4), "tensor a: has no shape"},
      {one("2", "[0,8]", 8), "tensor a: shape 2, must be a list"},
      {one("[-2]", "[0,8]", 8), "tensor a: size or offset -2, must be an integer in [0, 8]"},
      {one("[2.0]", "[0,8]", 8), "tensor a: size or offset 2.0, must be an integer"},
      {one("[8,8]", "[0,8]", 8),
       "tensor a: shape [8,8] is larger than the file, must be at most 8 bytes"},
      {one("[2]", "[0,80]", 8), "tensor a: size or offset 80, must be an integer in [0, 8]"},
      {one("[2]", "[0,4]", 8), "data_offsets [0,4], must be 8 bytes for shape [2]"},
      {one("[2]", "[8,0]", 8), "data_offsets [8,0], must be 8 bytes for shape [2]"},
      {one("[2]", "[0,8,8]", 8), "data_offsets [0,8,8], must be two"},
      {one("[2]", "[0,8]", 12), "has 12 bytes of data, must have 8, those of its tensors"},
      {one("[2]", "[4,12]", 12), "tensor a: begins at byte 4, must at 0"},
      {two("[4,12]", 12), "tensor b: begins at byte 4, must at 8"},
      {two("[0,8]", 8), "begins at byte 0, must at 8"},
      {two("[12,20]", 20), "tensor b: begins at byte 12, must at 8"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_THAT(message_of<InputError>([&, file = bytes] { read_safetensors(file); }),
                HasSubstr(text));
  }
}

class ModelFolderTest : public ::testing::Test {
 protected:
  /// @return the weights that it has written.
  nn::Transformer write_model(const std::string& name) {
    const auto architecture = model_of(name);
    const auto corpus = text_of_words();
    auto model = drawn(architecture);
    write_model_folder(folder_, model_config(architecture, corpus, {}), corpus, model);
    return model;
  }
  /// What is said of the folder once its configuration is changed.
  std::string with_config(const std::function<void(nlohmann::json&)>& change) {
    const auto before = read_bytes(folder_ / "config.json");
    auto config = nlohmann::json::parse(before);
    config.erase("sha256");
    change(config);
    write(folder_ / "config.json", config.dump());
    const auto error = message_of<InputError>([&] { read_model_folder(folder_); });
    write(folder_ / "config.json", before);
    return error;
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path() / "model";
};

TEST_F(ModelFolderTest, IsReadAsItWasWritten) {
  const at::NoGradGuard no_grad;
  for (const auto* name : {kVanilla, kWide}) {
    auto model = write_model(name);
    auto again = read_model_folder(folder_);
    EXPECT_EQ(again.model.array().architectures(), model.array().architectures());
    const auto theirs = again.model.parameters();
    const auto ours = model.parameters();
    ASSERT_EQ(theirs.size(), ours.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_TRUE(at::equal(ours[i].second, theirs[i].second)) << ours[i].first;
    }
    fs::remove_all(folder_);
  }
}

TEST_F(ModelFolderTest, RefusesConfigurationsThatAreNone) {
  EXPECT_THAT(message_of<InputError>([&] { read_model_folder(folder_); }),
              HasSubstr("config.json: no such file; give a folder that nas-export"));
  write_model(kWide);
  using Json = nlohmann::json;
  const std::vector<std::pair<std::function<void(Json&)>, std::string>> cases{
      {[](Json& config) { config = 3; }, "config.json: model is missing"},
      {[](Json& config) { config.at("model").erase("heads"); }, "config.json: heads is missing"},
      {[](Json& config) { config["model"]["width"] = "16"; }, R"(width = "16", must be a number)"},
      {[](Json& config) { config["model"]["width"] = 16.5; }, "width = 16.5, must be an integer"},
      {[](Json& config) { config["model"]["width"] = 1e12; }, "width = 1"},
      {[](Json& config) { config["model"]["heads"] = 3; }, "config.json: "},
      {[](Json& config) { config["layers"] = Json::array(); }, "number of layers = 0, must be in"},
      {[](Json& config) { config["semantics"] = "other"; }, "other"},
      {[](Json& config) { config["candidate"] = 1; }, "candidate = 1, must be a text"},
      {[](Json& config) { config["candidate"] = "attn{pattern=wide}"; }, "wide"},
      {[](Json& config) { config["candidate"] = "attn{conv=3}"; }, "layers = "},
      {[](Json& config) { config["layers"][0]["window"] = 5; }, "layers = "},
      {[](Json& config) { config["model"]["vocabulary"] = 100'000'000; },
       "model.safetensors: has "},
      {[](Json& config) { config["model"]["vocabulary"] = 14; },
       "model.safetensors: tensor embedding.weight has shape [13,16], must have [14,16]"}};
  for (const auto& [change, text] : cases) EXPECT_THAT(with_config(change), HasSubstr(text));
  const std::vector<std::pair<std::string, std::string>> texts{
      {"{", "config.json: it is no JSON: "},
      {R"({"model": {"width": )" + nested() + R"(}, "semantics": "corrected", "layers": [1]})",
       "config.json: its JSON is nested more than 100 deep"}};
  for (const auto& [config, text] : texts) {
    write(folder_ / "config.json", config);
    EXPECT_THAT(message_of<InputError>([&] { read_model_folder(folder_); }), HasSubstr(text));
  }
}

TEST_F(ModelFolderTest, RefusesOtherWeights) {
  auto model = write_model(kWide);
  auto config = nlohmann::json::parse(read_bytes(folder_ / "config.json"));
  config.erase("sha256");
  write(folder_ / "config.json", config.dump());
  const auto with_weights = [&](const std::string& bytes) {
    write(folder_ / "model.safetensors", bytes);
    return message_of<InputError>([&] { read_model_folder(folder_); });
  };
  auto weights = read_safetensors(read_bytes(folder_ / "model.safetensors"));
  const auto bytes_of = [](const std::map<std::string, torch::Tensor>& tensors) {
    return safetensors({tensors.begin(), tensors.end()});
  };
  const std::string name = "layers.0.attention.q_proj.weight";
  auto others = weights;
  others[name] = others[name].view({8, 32});
  EXPECT_THAT(with_weights(bytes_of(others)), HasSubstr("model.safetensors: tensor " + name +
                                                        " has shape [8,32], must have [16,16]"));
  others.erase(name);
  EXPECT_THAT(with_weights(bytes_of(others)), HasSubstr("tensor " + name + " is missing"));
  others = weights;
  others["more"] = at::zeros({1}, at::kFloat);
  EXPECT_THAT(with_weights(bytes_of(others)),
              HasSubstr("tensor more is none of the model of config.json"));
  EXPECT_THAT(with_weights("torn"), HasSubstr("model.safetensors: is no safetensors file"));
  EXPECT_EQ(with_weights(bytes_of(weights)), "nothing was thrown");
}

}  // namespace
}  // namespace nas
