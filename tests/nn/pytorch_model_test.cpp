// Models in plain PyTorch (python/attnas/model.py) against ours, for every registered component
// and every gene: logits in double, and initial values. Python compares, in pytorch_models.py.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
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
#include "genotype/costs.hpp"
#include "genotype/slots.hpp"
#include "models/model_folder.hpp"
#include "models/safetensors.hpp"
#include "nn/transformer.hpp"
#include "ops/torch_compat.hpp"
#include "places.hpp"
#include "training/validation.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kVocabulary = 13;

/// Two vanilla layers in which every option does something.
Architecture small_model(Semantics semantics) {
  Architecture frame{.semantics = semantics,
                     .width = 16,
                     .heads = 2,
                     .context = 12,
                     .vocabulary = kVocabulary,
                     .feed_forward = 2};
  return vanilla_architecture(frame);
}

/// What to try of a gene besides its default.
std::vector<std::string> values_of(const Slot& slot) {
  static const std::map<std::string, std::vector<std::string>> numbers{
      {"norm_eps", {"0.01"}},
      {"training.learning_rate", {"0.01"}},
      {"attention_dropout", {"0.2"}},
      {"heads", {"4"}},
      {"kv_heads", {"1"}},
      {"head_width", {"6"}},
      {"qk_eps", {"0.1"}},
      {"kv_rank", {"4"}},
      {"window", {"3"}},
      {"globals", {"2"}},
      {"full_groups", {"1"}},
      {"stride", {"3"}},
      {"pattern_block", {"3"}},
      {"random", {"2"}},
      {"buckets", {"2"}},
      {"rounds", {"2"}},
      {"chosen", {"1"}},
      {"rope_base", {"50"}},
      {"rope_fraction", {"0.5"}},
      {"rope_factor", {"3"}},
      {"rope_original", {"7"}},
      {"rope_low", {"0.5"}},
      {"rope_high", {"5"}},
      {"t5_buckets", {"8"}},
      {"t5_distance", {"9"}},
      {"cope_positions", {"4"}},
      {"decay_rank", {"3"}},
      {"decay_tau", {"4"}},
      {"conv", {"3"}},
      {"value_exclusion", {"1"}},
      {"soft_cap", {"2"}},
      {"smear", {"1"}},
      {"value_embedding", {"1"}},
      {"favor_features", {"6"}},
      {"key_width", {"4"}},
      {"near", {"3"}},
      {"neg_eigen", {"1"}},
      {"gate_rank", {"3"}},
      {"ratio", {"3"}}};
  if (slot.is_component()) {
    auto keys = components().keys(slot.name);
    if (slot.name == "mixer" || slot.name == "ffn") keys.emplace_back("none");
    return keys;
  }
  if (slot.is_word()) return slot.choices;
  const auto found = numbers.find(slot.name);
  if (found != numbers.end()) return found->second;
  ADD_FAILURE() << slot.name << ": no value of this gene is tried";
  return {};
}

/// Models by name: vanilla, and vanilla but for one gene. What no module computes is left out.
std::map<std::string, Architecture> models(Semantics semantics) {
  const auto vanilla = small_model(semantics);
  const std::string prefix = std::string(to_string(semantics)) + " ";
  std::map<std::string, Architecture> found;
  const auto add = [&](const std::string& name, Architecture architecture) {
    try {
      architecture = canonical(std::move(architecture));
      require_built(architecture);
      found.emplace(prefix + name, std::move(architecture));
    } catch (const InputError&) {  // no module computes it
    }
  };
  for (const auto& slot : slots()) {
    for (const auto& value : values_of(slot)) {
      auto changed = vanilla;
      auto& layer = changed.stack.front();
      choose(slot, value, semantics, slot.model ? changed.genes : layer);
      if (!slot.owner.empty()) {
        choose(nas::slot(slot.owner), slot.owner_options.front(), semantics, layer);
      }
      add(slot.name + "=" + value, std::move(changed));
    }
  }
  return found;
}

/// All cells of update x decay, all features, and what else a recurrent layer may have.
std::vector<std::string> recurrent_layers() {
  std::vector<std::string> layers;
  for (const auto& decay : options(slot("decay"))) {
    for (const auto& update : options(slot("update"))) {
      layers.push_back("recurrent{decay=" + decay + ",update=" + update + "}");
    }
    for (const auto& feature : components().keys("feature")) {
      layers.push_back("recurrent{decay=" + decay + ",feature=" + feature + ",key_width=4}");
    }
  }
  for (const auto* layer :
       {"retnet{rope_base=50}", "gla{decay_rank=3,decay_tau=4}", "gdn{neg_eigen=1}",
        "kda{key_width=4}", "gdn2{neg_eigen=1,gate_rank=3,decay_form=softplus}",
        "kda{decay_form=bounded,decay_rank=16}", "recurrent{conv=3,heads=4}",
        "recurrent{gating=sigmoid_gate,bias=none}",
        "recurrent{gating=elementwise_gate,bias=no_bias}",
        "recurrent{feature=favor,favor_features=6}",
        "recurrent{feature=taylor2,near=4,key_width=4,position=rope,conv=2}"}) {
    layers.emplace_back(layer);
  }
  return layers;
}

/// Those, models of layers that differ, and parts that meet in one layer.
std::map<std::string, Architecture> all_models() {
  auto all = models(Semantics::corrected);
  all.merge(models(Semantics::published));
  const auto frame = small_model(Semantics::corrected);
  for (const auto* name :
       {"model{norm=rms,norm_eps=0.1,block=parallel_norms}/"
        "attn{head_width=6,kv_heads=1,qk_norm=rms,qk_eps=0.1,head_norm=rms,bias=qkv,conv=2,gating="
        "elementwise_gate,position=rope,rope_base=50,rope_factor=8,rope_original=9,rope_low=0.2,"
        "rope_high=1}+swiglu_bias/recurrent{bias=qkv}+gelu_tanh",
        "attn{heads=3,head_width=4,pattern=lsh,gating=headwise_gate}/attn{head_width=5,similarity="
        "bilinear}",
        "model{norm=rms,norm_place=sandwich,bias=none}/attn{pattern=window,window=4,position=rope}"
        "+swiglu/attn{kv_heads=1,decay=scalar}+relu2/none+gelu/attn+none",
        "model{position_embedding=sinusoidal,block=parallel,tied=0}/"
        "2*attn{gating=highway,qk_norm=rms,"
        "head_norm=rms,conv=3}+swiglu/attn+none",
        "model{norm_place=post}/attn{heads=4,kv_heads=2,qk_norm=rms,normalization=sink,"
        "temperature=log_length,gating=headwise_gate,pattern=window,window=5,globals=1,position="
        "t5}",
        "2*attn{position=t5,t5_buckets=10,t5_distance=160}",
        "attn{heads=4,kv_heads=2,pattern=indexed,block=2,chosen=2,temperature=log_length}/"
        "attn{pattern=indexed,block=3,chosen=1,position=cope,cope_positions=4}",
        "attn{heads=4,kv_heads=2,position=path,similarity=l2,decay=scalar,pattern=window,window=5}/"
        "attn{heads=4,kv_heads=2,position=cope,cope_positions=4,pattern=window,window=6,globals=1}",
        "attn{decay=channel,decay_form=bounded,position=rope,qk_norm=rms,normalization=sink}/"
        "attn{decay=channel,decay_form=softplus,similarity=silu_dot,pattern=window,window=4}",
        "attn{pattern=bigbird,block=2,globals=1,random=2,temperature=log_length}/"
        "conv{conv=4,smear=1}"
        "/attn{heads=4,pattern=lsh,block=2,buckets=4,rounds=2,temperature=log_length}",
        "attn{kv_heads=1,value_exclusion=1,soft_cap=3,position=alibi,smear=1,value_embedding=1}/"
        "attn{value_embedding=1,normalization=stick_breaking,pattern=window,window=4,globals=1}",
        "attn{heads=4,kv_heads=2,pattern=window,window=4,globals=1,full_groups=2,position=alibi,"
        "normalization=sink,temperature=log_length}/"
        "attn{heads=4,kv_heads=2,keys=shared,qk_norm=rms,"
        "pattern=window,window=3,globals=1,full_groups=2,smear=1}",
        "model{position_embedding=none}/attn{position=rope}/conv/attn{keys=shared,position=rope}/"
        "attn{keys=shared,pattern=window,window=3,position=rope}",
        "attn{maps=difference,kv_heads=1,qk_norm=rms,qk_eps=0.1,position=rope,rope_base=50,conv=2,"
        "decay=scalar,value_exclusion=1}/attn{maps=difference,similarity=additive}",
        "attn{kv_rank=5,position=rope,rope_base=50,similarity=l2,temperature=log_length,"
        "pattern=window,window=4}/attn{kv_rank=5,decay=scalar,value_exclusion=1,head_norm=rms}",
        "pair(attn{kv_heads=1,pattern=window,window=4,position=rope,gating=headwise_gate,dropout=0."
        "2}|"
        "retnet){heads=4,smear=1}/"
        "pair(attn{decay=scalar,normalization=sink}|recurrent{feature=favor})"
        "+swiglu",
        "model{position_embedding=none,norm=rms,bias=none}/attn/pair(attn{maps=difference}|gla)/"
        "attn{keys=shared}",
        "model{norm=rms,norm_place=sandwich}/retnet+swiglu/attn/recurrent{feature=favor}+none"}) {
    all.emplace(name, canonical(parse_model(name, frame)));
  }
  for (const auto& layer : recurrent_layers()) {
    all.emplace("2*" + layer, canonical(parse_model("2*" + layer, frame)));
  }
  return all;
}

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::string weights_of(const nn::Transformer& model) {
  std::vector<std::pair<std::string, torch::Tensor>> weights;
  for (auto& [name, tensor] : model.parameters()) weights.emplace_back(name, tensor[0]);
  return safetensors(weights);
}

std::vector<double> numbers(const torch::Tensor& tensor) {
  const auto values = tensor.contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

/// The model as files CASE.*: its configuration, weights, some tokens and their logits, and two
/// draws of initial values.
void write_case(const fs::path& folder, const std::string& name, const Architecture& architecture,
                std::int64_t number) {
  const at::NoGradGuard no_grad;
  nn::Transformer model(architecture, NumericalMode::reference);
  const auto file = [&](const std::string& what) {
    return folder / (std::to_string(number) + what);
  };
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    model.initialise(seed, 0);
    write(file(".start" + std::to_string(seed)), weights_of(model));
  }
  const auto generator = nn::make_generator(at::kCPU, 7);
  for (auto& [parameter, tensor] : model.parameters()) tensor.normal_(0.0, 0.5, generator);
  write(file(".safetensors"), weights_of(model));
  model.to(at::kCPU, at::kDouble);
  const auto tokens = at::randint(kVocabulary, {2, 11}, generator, at::TensorOptions(at::kLong));
  const auto* ids = tokens.data_ptr<std::int64_t>();
  write(file(".json"),
        nlohmann::ordered_json{{"name", name},
                               {"config", model_config(architecture, Corpus{}, {})},
                               {"tokens", std::vector<std::int64_t>(ids, ids + tokens.numel())},
                               {"length", tokens.size(1)},
                               {"logits", numbers(model.logits(tokens, nn::Pass{}))}}
            .dump());
}

/// The command of a Python with torch; empty: there is none.
const std::string& python_with_torch() {
  static const std::string found = [] {
    const char* wanted = std::getenv("NAS_PYTHON");
    for (const std::string python :
         {wanted != nullptr ? wanted : "", "/usr/bin/python3", "python3"}) {
      if (!python.empty() &&
          std::system((python + " -c 'import torch' > /dev/null 2>&1").c_str()) == 0) {
        return python + " -B ";
      }
    }
    return std::string();
  }();
  return found;
}

#define SKIP_WITHOUT_TORCH()                                        \
  if (python_with_torch().empty()) {                                \
    GTEST_SKIP() << "no Python has torch; NAS_PYTHON may name one"; \
  }

TEST(PytorchModel, ComputesWhatEveryOptionComputesHere) {
  SKIP_WITHOUT_TORCH();
  const TemporaryFolder temporary;
  const auto cases = all_models();
  // 35 options of components alone, in both semantics.
  EXPECT_GE(cases.size(), 80U);
  std::int64_t number = 0;
  for (const auto& [name, architecture] : cases) {
    write_case(temporary.path(), name, architecture, number++);
  }
  const auto output = temporary.path() / "output";
  const auto command = python_with_torch() + source_folder() + "/tests/nn/pytorch_models.py " +
                       source_folder() + "/python/attnas " + temporary.path().string() + " " +
                       std::to_string(number) + " > " + output.string() + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_bytes(output);
}

/// A text corpus of words 0, 1, ..., read in windows of 12.
Corpus text_of_words() {
  Corpus corpus;
  corpus.unit = "word";
  corpus.tokenizer_file = "vocabulary.txt";
  corpus.tokenizer = "<unk>\n<eos>\na\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n";
  corpus.vocabulary = 13;
  corpus.special = {.pad = -1, .unknown = 0, .end_of_sentence = 1};
  return corpus;
}

TEST(PytorchModel, FolderHoldsAllThatItNeeds) {
  const TemporaryFolder temporary;
  const auto folder = temporary.path() / "model";
  auto architecture = canonical(small_model(Semantics::corrected));
  nn::Transformer model(architecture, NumericalMode::reference);
  model.initialise(1, 0);
  write_model_folder(folder, model_config(architecture, text_of_words(), {}), text_of_words(),
                     model);
  for (const auto* name : {"model.py", "model_attention.py", "model_heads.py", "model_positions.py",
                           "model_recurrent.py"}) {
    EXPECT_EQ(read_bytes(folder / name),
              read_bytes(fs::path(source_folder()) / "python/attnas" / name));
  }
  EXPECT_EQ(read_bytes(folder / "vocabulary.txt").substr(0, 14), "<unk>\n<eos>\na\n");
  const auto config = nlohmann::json::parse(read_bytes(folder / "config.json"));
  EXPECT_EQ(config.at("candidate"), "dot|softmax|none|fixed|bias|0.1");
  EXPECT_EQ(config.at("text").at("layout"), "standard");
  EXPECT_EQ(config.at("layers").size(), 2U);
  EXPECT_EQ(config.at("layers")[0],
            nlohmann::json::parse(R"({"mixer": "attn", "heads": 2, "similarity": "dot",
                "normalization": "softmax", "temperature": "fixed", "gating": "none",
                "bias": "bias", "attention_dropout": 0.1, "ffn": "gelu", "hidden": 32})"));
  const auto weights = read_bytes(folder / "model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, weights.data(), sizeof(length));
  EXPECT_EQ(length % 8, 0U);
  const auto header = nlohmann::json::parse(weights.substr(8, length));
  EXPECT_EQ(header.at("embedding.weight").at("shape"), nlohmann::json({13, 16}));
  EXPECT_EQ(weights.size(),
            8 + length + 4 * static_cast<std::uint64_t>(num_parameters(architecture)));
}

/// Scores a text of 27 words in 4 lines, <eos> included, as validation does.
double validation_nll(nn::Transformer& model, const std::vector<std::int64_t>& stream) {
  const std::int64_t length = 12;
  double sum = 0.0;
  for (std::int64_t start = 0; start + 1 < std::ssize(stream); start += length) {
    auto input = at::zeros({1, length}, at::TensorOptions(at::kLong));
    auto target = at::full({1, length}, kNotScored, at::TensorOptions(at::kLong));
    for (std::int64_t t = 0; t < length && start + t + 1 < std::ssize(stream); ++t) {
      input[0][t] = stream[static_cast<std::size_t>(start + t)];
      target[0][t] = stream[static_cast<std::size_t>(start + t + 1)];
    }
    sum += model.scores(input, target).nll.to(at::kDouble).sum().item<double>();
  }
  return sum / static_cast<double>(std::ssize(stream) - 1);
}

/// The command that runs the model.py of a folder. @param output  file of what it prints.
std::string command_of(const fs::path& folder, const std::string& arguments,
                       const fs::path& output) {
  return python_with_torch() + (folder / "model.py").string() + ' ' + arguments + " > " +
         output.string() + " 2>&1";
}

TEST(PytorchModel, ScoresAndContinuesText) {
  SKIP_WITHOUT_TORCH();
  const TemporaryFolder temporary;
  const auto folder = temporary.path() / "model";
  const auto architecture = canonical(small_model(Semantics::corrected));
  nn::Transformer model(architecture, NumericalMode::reference);
  const at::NoGradGuard no_grad;
  const auto generator = nn::make_generator(at::kCPU, 7);
  for (auto& [name, tensor] : model.parameters()) tensor.normal_(0.0, 0.5, generator);
  write_model_folder(folder, model_config(architecture, text_of_words(), {}), text_of_words(),
                     model);
  write(temporary.path() / "text",
        "a b c\td e  f g\n<eos> unknown <unk> h\n\ni j k a b c d e f g h");
  const std::vector<std::int64_t> stream{1, 2,  3,  4,  5, 6, 7, 8, 1, 0, 0, 0, 9, 1,
                                         1, 10, 11, 12, 2, 3, 4, 5, 6, 7, 8, 9, 1};
  const auto output = temporary.path() / "output";
  const auto command = command_of(
      folder, "--text " + (temporary.path() / "text").string() + " --generate 'a b' --tokens 14",
      output);
  const int status = std::system(command.c_str());
  const auto text = read_bytes(output);
  ASSERT_EQ(status, 0) << text;
  double nll = 0.0;
  int tokens = 0;
  ASSERT_EQ(
      std::sscanf(text.c_str(), "perplexity %*f, nll %lf nats per token, %d tokens", &nll, &tokens),
      2)
      << text;
  EXPECT_EQ(tokens, 26);
  EXPECT_NEAR(nll, validation_nll(model, stream), 2e-6 * nll);

  std::vector<std::int64_t> ids{1, 2, 3};
  const std::vector<std::string> words{"<unk>", "\n", "a", "b", "c", "d", "e",
                                       "f",     "g",  "h", "i", "j", "k"};
  std::string expected = "a b";
  for (int i = 0; i < 14; ++i) {  // learned positions see the last 12 tokens
    const std::vector<std::int64_t> seen(ids.end() - std::min<std::ptrdiff_t>(std::ssize(ids), 12),
                                         ids.end());
    const auto logits = model.logits(at::tensor(seen).unsqueeze(0), nn::Pass{});
    ids.push_back(logits[0].select(0, -1).argmax().item<std::int64_t>());
    expected += " " + words.at(static_cast<std::size_t>(ids.back()));
  }
  EXPECT_NE(text.find(expected), std::string::npos) << text << "must have " << expected;
}

TEST(PytorchModel, ScoresAndContinuesTextOfOtherTokens) {
  SKIP_WITHOUT_TORCH();
  const std::string text = "L'\u00E9t\u00E9, \u65E5\u672C 1234!\n\nisn't it  ACDX\n";
  const auto generator = nn::make_generator(at::kCPU, 7);
  for (const std::string unit : {"char", "residue", "bpe"}) {
    const TemporaryFolder temporary;
    const auto folder = temporary.path() / "model";
    Parameters settings(corpora().at("text_file").description.settings);
    settings.set("unit", unit);
    if (unit == "residue") settings.set("alphabet", std::string("isntACDXL'1234"));
    write(temporary.path() / "train", text + text);
    write(temporary.path() / "text", text);
    for (const auto& [split, file] :
         {std::pair("train", "train"), {"valid", "text"}, {"test", "text"}}) {
      settings.set(split, (temporary.path() / file).string());
    }
    const auto corpus = corpora().at("text_file").make(settings, 12, {.folder = temporary.path()});
    auto architecture = canonical(small_model(Semantics::corrected));
    architecture.vocabulary = corpus.vocabulary;
    nn::Transformer model(architecture, NumericalMode::reference);
    const at::NoGradGuard no_grad;
    for (auto& [name, tensor] : model.parameters()) tensor.normal_(0.0, 0.5, generator);
    write_model_folder(folder, model_config(architecture, corpus, settings), corpus, model);
    EXPECT_EQ(read_bytes(folder / "model_tokens.py"),
              read_bytes(fs::path(source_folder()) / "python/attnas/model_tokens.py"));
    const auto output = temporary.path() / "output";
    const auto command = command_of(
        folder, "--text " + (temporary.path() / "text").string() + " --generate AC --tokens 6",
        output);
    ASSERT_EQ(std::system(command.c_str()), 0) << read_bytes(output);
    const std::vector<std::int64_t> stream(corpus.valid.tokens.begin(), corpus.valid.tokens.end());
    double nll = 0.0;
    int tokens = 0;
    const auto said = read_bytes(output);
    ASSERT_EQ(std::sscanf(said.c_str(), "perplexity %*f, nll %lf nats per token, %d tokens", &nll,
                          &tokens),
              2)
        << said;
    EXPECT_EQ(tokens, std::ssize(stream) - 1) << unit;
    EXPECT_NEAR(nll, validation_nll(model, stream), 2e-6 * nll) << unit;

    write(folder / "tokenizer.json", read_bytes(folder / "tokenizer.json") + " ");
    EXPECT_NE(std::system(command.c_str()), 0);
    EXPECT_NE(read_bytes(output).find("tokenizer.json: its SHA-256 is "), std::string::npos)
        << read_bytes(output);
  }
}

TEST(PytorchModel, SaysWhatItLacksAndWhatCannotBeSeen) {
  SKIP_WITHOUT_TORCH();
  const TemporaryFolder temporary;
  const auto folder = temporary.path() / "model";
  const auto architecture = canonical(small_model(Semantics::corrected));
  nn::Transformer model(architecture, NumericalMode::reference);
  {
    const at::NoGradGuard no_grad;
    for (auto& [name, tensor] : model.parameters()) tensor.zero_();
  }
  write_model_folder(folder, model_config(architecture, text_of_words(), {}), text_of_words(),
                     model);
  const auto output = temporary.path() / "output";
  const auto command = command_of(folder, "--generate a --tokens 10", output);
  ASSERT_EQ(std::system(command.c_str()), 0) << read_bytes(output);
  // All words are equally likely; <unk>, the first, stands for none.
  EXPECT_NE(read_bytes(output).find("note: ends of a line that follow the text: 10\n"),
            std::string::npos)
      << read_bytes(output);

  auto config = nlohmann::json::parse(read_bytes(folder / "config.json"));
  config.erase("sha256");
  config["layers"][1]["normalization"] = "of_a_plugin";
  write(folder / "config.json", config.dump());
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_NE(read_bytes(output).find("config.json: normalization = of_a_plugin, must be one of "),
            std::string::npos)
      << read_bytes(output);
}

TEST(PytorchModel, RefusesInALineWhatItCannotRead) {
  SKIP_WITHOUT_TORCH();
  const TemporaryFolder temporary;
  const auto folder = temporary.path() / "model";
  const auto architecture = canonical(small_model(Semantics::corrected));
  nn::Transformer model(architecture, NumericalMode::reference);
  model.initialise(1, 0);
  write_model_folder(folder, model_config(architecture, text_of_words(), {}), text_of_words(),
                     model);
  const auto output = temporary.path() / "output";
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const int status = std::system(command_of(folder, arguments, output).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2) << why;
    const auto text = read_bytes(output);
    EXPECT_NE(text.find("model.py: " + why), std::string::npos) << text;
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(refused("--text nowhere", "[Errno 2] No such file or directory: 'nowhere'"), 1);
  EXPECT_EQ(refused("--text " + folder.string(), "[Errno 21] Is a directory: '"), 1);
  EXPECT_GE(refused("--generate a --tokens -5", "error: --tokens -5, must be >= 0"), 1);
  auto config = nlohmann::json::parse(read_bytes(folder / "config.json"));
  config.erase("sha256");  // what the digests do not see, too
  write(folder / "config.json", config.dump());
  const auto weights = read_bytes(folder / "model.safetensors");
  const auto damaged = (folder / "model.safetensors").string() + ": is damaged, ";
  for (const std::size_t bytes : {std::size_t{3}, std::size_t{100}}) {
    write(folder / "model.safetensors", weights.substr(0, bytes));
    EXPECT_EQ(refused("--generate a", damaged + "must be a file of safetensors"), 1);
  }
  write(folder / "model.safetensors", weights.substr(0, weights.size() - 4));
  EXPECT_EQ(refused("--generate a", damaged), 1);
  write(folder / "model.safetensors", weights);
  auto other = config;
  other.erase("text");
  write(folder / "config.json", other.dump());
  const auto as_written = folder.string() + ": must be as nas-export has written it: ";
  EXPECT_EQ(refused("--generate a", as_written + "KeyError('text')"), 1);
  other = config;
  other["model"]["width"] = 32;
  write(folder / "config.json", other.dump());
  EXPECT_EQ(refused("--generate a", (folder / "model.safetensors").string() + ": has "), 1);
  write(folder / "config.json", "{");
  EXPECT_EQ(refused("--generate a", (folder / "config.json").string() + ": "), 1);
}

}  // namespace
}  // namespace nas
