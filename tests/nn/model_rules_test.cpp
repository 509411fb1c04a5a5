// The rules of an exported model's files (docs/files.md): one table of folders, each of which both
// readers refuse, nas-model's and model.py, or both read.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "data/text.hpp"
#include "genotype/architecture_name.hpp"
#include "models/model_folder.hpp"
#include "models/safetensors.hpp"
#include "ops/torch_compat.hpp"
#include "places.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Change = std::function<void(const fs::path&)>;
using Tensors = std::map<std::string, torch::Tensor>;

struct Case {
  std::string name;
  Change change;  ///< of a folder
  bool is_read = false;
};

constexpr const char* kQueries = "layers.0.attention.q_proj.weight";

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

/// Of a folder without digests, as earlier versions wrote it, on which the rules alone say no.
void drop_digests(const fs::path& folder) {
  auto config = Json::parse(read_bytes(folder / "config.json"));
  config.erase("sha256");
  write(folder / "config.json", config.dump(1));
}

Case config(const std::string& name, const std::function<void(Json&)>& change,
            bool is_read = false) {
  return {"config.json: " + name,
          [change](const fs::path& folder) {
            auto config = Json::parse(read_bytes(folder / "config.json"));
            config.erase("sha256");
            change(config);
            write(folder / "config.json", config.dump());
          },
          is_read};
}

/// @param pointer  of a value that becomes another.
Case value(const std::string& pointer, const Json& other, bool is_read = false) {
  return config(
      pointer + " = " + other.dump(),
      [pointer, other](Json& config) { config[Json::json_pointer(pointer)] = other; }, is_read);
}

Case bytes(const std::string& file, const std::string& name,
           const std::function<void(std::string&)>& change, bool with_digests = false) {
  return {file + ": " + name, [=](const fs::path& folder) {
            if (!with_digests) drop_digests(folder);
            auto text = read_bytes(folder / file);
            change(text);
            write(folder / file, text);
          }};
}

Case words(const std::string& name, const std::function<void(std::string&)>& change) {
  return bytes("vocabulary.txt", name, change);
}

Case tensors(const std::string& name, const std::function<void(Tensors&)>& change) {
  return {"model.safetensors: " + name, [change](const fs::path& folder) {
            drop_digests(folder);
            auto all = read_safetensors(read_bytes(folder / "model.safetensors"));
            change(all);
            write(folder / "model.safetensors", safetensors({all.begin(), all.end()}));
          }};
}

Case number(double other) {
  return tensors("a weight of " + std::to_string(other),
                 [other](Tensors& all) { all.at(kQueries).view({-1})[7] = other; });
}

/// The header of safetensors with other JSON, the data as they are.
Case header(const std::string& name, const std::function<void(Json&)>& change) {
  return bytes("model.safetensors", name, [change](std::string& file) {
    std::uint64_t length = 0;
    std::copy_n(file.data(), sizeof(length), reinterpret_cast<char*>(&length));
    auto json = Json::parse(file.substr(sizeof(length), length));
    change(json);
    const auto text = json.dump();
    const auto other = static_cast<std::uint64_t>(text.size());
    file = std::string(reinterpret_cast<const char*>(&other), sizeof(other)) + text +
           file.substr(sizeof(length) + length);
  });
}

std::vector<Case> of_configurations() {
  std::vector<Case> cases{
      value("/model/width", 16.0, /*is_read=*/true),
      value("/layers/0/heads", 2.0, true),
      value("/semantics", "other"),
      value("/text", 3),
      value("/text/unit", "letter"),
      value("/text/unit", "byte"),
      value("/text/layout", "published"),
      value("/text/end_of_sentence", 2),
      value("/text/end_of_sentence", -1),
      value("/text/unknown", 1),
      value("/text/pad", 0),
      value("/text/end_of_sentence", true),
      value("/text/end_of_sentence", 1.0, true),
      value("/layers", Json::array()),
      value("/layers/0/hidden", 31),
      value("/layers/0/mixer", "other"),
      value("/layers/0/ffn", "other"),
      value("/layers/0/similarity", "other"),
      value("/layers/0/pattern", "other"),
      value("/layers/0/window", 0),
      value("/layers/0/kv_heads", 3),
      value("/layers/0/conv", 12),
      value("/layers/0/rope_fraction", 2.0),
      value("/layers/0/attention_dropout", -1.0),
      value("/model/dropout", 2.0),
      value("/model/tied", 1),
      value("/model/norm", "other"),
      value("/model/vocabulary", 14),
      value("/model/vocabulary", 100'000'000),
      config("another gene", [](Json& config) { config["layers"][0]["gene"] = 1; }),
      config("no text", [](Json& config) { config.erase("text"); }),
      config("no candidate", [](Json& config) { config.erase("candidate"); })};
  for (const auto* size : {"/layers/0/heads", "/model/width", "/model/context", "/model/heads"}) {
    for (const auto& other : {Json(0), Json(-2), Json(2.5), Json("2"), Json(true), Json()}) {
      cases.push_back(value(size, other));
    }
  }
  for (const std::string text :
       {"", "{", "3", "[]", R"({"model": NaN})", R"({"model": {"width": 1e999}})"}) {
    cases.push_back(bytes("config.json", "'" + text + "'", [text](auto& file) { file = text; }));
  }
  constexpr std::size_t kDeep = 200'000;
  cases.push_back(
      bytes("config.json", "nested deeply", [](auto& file) { file = std::string(kDeep, '['); }));
  return cases;
}

std::vector<Case> of_words() {
  return {
      words("a word less", [](auto& text) { text.resize(text.size() - 2); }),
      words("cut within its last word", [](auto& text) { text.resize(text.size() - 1); }),
      words("a word more", [](auto& text) { text += "l\n"; }),
      words("empty", [](auto& text) { text.clear(); }),
      words("a word twice", [](auto& text) { text.replace(text.rfind("k\n"), 1, "a"); }),
      words("<unk> twice", [](auto& text) { text.replace(text.rfind("k\n"), 1, "<unk>"); }),
      words("an empty word", [](auto& text) { text.erase(text.rfind("k\n"), 1); }),
      words("a word with a blank", [](auto& text) { text.replace(text.rfind("k\n"), 1, "k k"); }),
      words("another special token", [](auto& text) { text.replace(0, 5, "<UNK>"); }),
      {"vocabulary.txt: missing", [](const fs::path& folder) {
         drop_digests(folder);
         fs::remove(folder / "vocabulary.txt");
       }}};
}

std::vector<Case> of_weights() {
  const auto offsets = [](Json& json, const char* tensor) -> Json& {
    return json.at(tensor).at("data_offsets");
  };
  std::vector<Case> cases{
      header("two tensors over the same bytes",
             [=](Json& json) {
               offsets(json, kQueries) = offsets(json, "layers.1.attention.q_proj.weight");
             }),
      header("two tensors exchanged by their sizes",
             [=](Json& json) {
               std::swap(offsets(json, kQueries), offsets(json, "embedding.weight"));
             }),
      header("another type", [](Json& json) { json.at(kQueries)["dtype"] = "F16"; }),
      header("no type", [](Json& json) { json.at(kQueries).erase("dtype"); }),
      header("another shape",
             [](Json& json) {
               json.at(kQueries)["shape"] = {8, 32};
             }),
      header("a shape that is none",
             [](Json& json) {
               json.at(kQueries)["shape"] = {-16, -16};
             }),
      header("half a number",
             [](Json& json) {
               json.at(kQueries)["shape"] = {16.5, 16};
             }),
      header("a list", [](Json& json) { json = Json::array(); }),
      bytes("model.safetensors", "more bytes", [](auto& file) { file += "more"; }),
      bytes("model.safetensors", "fewer bytes", [](auto& file) { file.resize(file.size() - 4); }),
      bytes("model.safetensors", "cut in its header", [](auto& file) { file.resize(100); }),
      bytes("model.safetensors", "empty", [](auto& file) { file.clear(); }),
      tensors("a tensor less", [](Tensors& all) { all.erase(kQueries); }),
      tensors("a tensor more", [](Tensors& all) { all["more"] = at::zeros({1}, at::kFloat); })};
  for (const double other : {1e38, -1e30, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    cases.push_back(number(other));
  }
  // Each is allowed; what they come to is not finite.
  cases.push_back(tensors("all weights of 1e14", [](Tensors& all) {
    for (auto& [name, tensor] : all) tensor.fill_(1e14).view({-1})[0] = -1e14;
  }));
  return cases;
}

std::vector<Case> of_digests() {
  const auto flip = [](std::string& file) { file[file.size() - 100] ^= 1; };
  return {bytes("model.safetensors", "one bit", flip, /*with_digests=*/true),
          bytes(
              "vocabulary.txt", "another word",
              [](auto& text) { text.replace(text.rfind("k\n"), 1, "l"); }, true),
          bytes(
              "config.json", "another window",
              [](auto& text) {
                const std::string window = "\"window\": 4";
                text.replace(text.find(window), window.size(), "\"window\": 5");
              },
              true),
          bytes(
              "config.json", "a digest renamed",
              [](auto& text) {
                const std::string name = "\"vocabulary.txt\"";
                text.replace(text.find(name), name.size(), "\"vocabulary.tex\"");
              },
              true)};
}

std::vector<Case> cases() {
  std::vector<Case> all{{"as it was written", [](const fs::path&) {}, true},
                        {"without digests, as of an earlier version", drop_digests, true}};
  for (auto& some : {of_configurations(), of_words(), of_weights(), of_digests()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void write_model(const fs::path& folder) {
  const at::NoGradGuard no_grad;
  Architecture frame{.width = 16, .heads = 2, .context = 12, .vocabulary = 13, .feed_forward = 2};
  const auto architecture =
      canonical(parse_model("attn{pattern=window,window=4,position=rope,conv=3}+gelu/attn", frame));
  nn::Transformer model(architecture);
  const auto generator = nn::make_generator(at::kCPU, 7);
  for (auto& [name, tensor] : model.parameters()) tensor.normal_(0.0, 0.5, generator);
  Corpus corpus;
  corpus.name = "text_file";
  corpus.unit = "word";
  corpus.tokenizer_file = "vocabulary.txt";
  corpus.tokenizer = "<unk>\n<eos>\na\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n";
  corpus.special = {.pad = -1, .unknown = 0, .end_of_sentence = 1};
  write_model_folder(folder, model_config(architecture, corpus, {}), corpus, model);
}

/// Whether a case is of tokens, or of what weights come to, which nas-model leaves to Python.
bool is_pythons(const std::string& name) {
  return name.find(" /text") != std::string::npos || name.starts_with("vocabulary.txt") ||
         name.ends_with("all weights of 1e14");
}

/// Why nas-model refuses a folder; empty: it does not.
std::string refusal(const fs::path& folder) {
  try {
    (void)read_model_folder(folder);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

/// What model.py says of folders: its exit code, the number of lines of its errors, and these.
struct Said {
  int code = -1;
  int lines = -1;
  std::string all{};
};

std::vector<Said> said_by_python(const std::string& python, const fs::path& text,
                                 const std::vector<fs::path>& folders) {
  const auto output = text.parent_path() / "said";
  auto command = python + " -B " + source_folder() + "/tests/nn/pytorch_folders.py " +
                 source_folder() + "/python/attnas " + text.string();
  for (const auto& folder : folders) command += " " + folder.string();
  EXPECT_EQ(std::system((command + " > " + output.string()).c_str()), 0);
  std::vector<Said> said;
  std::istringstream all(read_bytes(output));
  for (std::string one; std::getline(all, one, '\0');) {
    Said each{.all = one};
    std::istringstream(one) >> each.code >> each.lines;
    said.push_back(each);
  }
  return said;
}

std::string python_with_torch() {
  const char* wanted = std::getenv("NAS_PYTHON");
  for (const std::string python : {wanted != nullptr ? wanted : "", "/usr/bin/python3"}) {
    if (!python.empty() &&
        std::system((python + " -c 'import torch' > /dev/null 2>&1").c_str()) == 0)
      return python;
  }
  return {};
}

TEST(ModelRules, BothReadersHoldThem) {
  const TemporaryFolder temporary;
  const auto all = cases();
  write_model(temporary.path() / "model");
  const auto text = temporary.path() / "text";
  write(text, "a b c d e f g h i j k\nb a\n");
  std::vector<fs::path> folders;
  for (std::size_t i = 0; i < all.size(); ++i) {
    folders.push_back(temporary.path() / std::to_string(i));
    fs::copy(temporary.path() / "model", folders.back());
    all[i].change(folders.back());
    const auto why = refusal(folders.back());
    EXPECT_EQ(why.empty(), all[i].is_read || is_pythons(all[i].name)) << all[i].name << ": " << why;
  }
  const auto python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python has torch; NAS_PYTHON may name one";
  const auto said = said_by_python(python, text, folders);
  ASSERT_EQ(said.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].name + ": " + said[i].all);
    EXPECT_EQ(said[i].code, all[i].is_read ? 0 : 2);
    if (all[i].is_read) {
      EXPECT_EQ(said[i].all, said[0].all) << "as the whole folder";
    } else {
      EXPECT_EQ(said[i].lines, 1);
    }
  }
}

}  // namespace
}  // namespace nas
