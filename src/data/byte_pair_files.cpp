#include <iterator>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "data/byte_pairs.hpp"
#include "data/data_set.hpp"
#include "data/unicode.hpp"
#include "data/vocabulary.hpp"

namespace nas {

namespace {

using Json = nlohmann::ordered_json;

/// The regular expression of cl100k where it is written, which is what is read, too.
constexpr const char* kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";

std::string spelled(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += utf8(character_of_byte(static_cast<unsigned char>(c)));
  return text;
}

/// The bytes that a token's characters stand for; nothing where one stands for none.
std::optional<std::string> bytes_of(std::string_view token) {
  static const auto kBytes = [] {
    std::unordered_map<char32_t, char> bytes;
    for (const auto byte : bytes_in_order()) {
      bytes.emplace(character_of_byte(byte), static_cast<char>(byte));
    }
    return bytes;
  }();
  std::string text;
  for (std::size_t at = 0; at < token.size();) {
    const auto character = character_at(token, at);
    const auto found = kBytes.find(character.code);
    if (character.foreign || found == kBytes.end()) return std::nullopt;
    text += found->second;
    at = character.end;
  }
  return text;
}

/// A value for messages, however deeply it is nested.
std::string shown(const nlohmann::json& value) {
  return value.is_structured() ? std::string("an ") + value.type_name() : value.dump();
}

/// Tokens by id, from pairs of text and id that have each of 0 .. n - 1 once.
class TokenTable {
 public:
  void add(const std::string& token, const nlohmann::json& id) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0) {
      throw InputError("id " + shown(id) + " of token '" + token + "', must be an integer >= 0");
    }
    const auto place = id.get<std::size_t>();
    if (place > (std::size_t{1} << 26U)) throw InputError("id " + id.dump() + ", must be <= 2^26");
    if (place >= tokens_.size()) tokens_.resize(place + 1);
    // One with characters that stand for no byte is special, written as it is.
    auto bytes = bytes_of(token).value_or(token);
    if (tokens_[place] && *tokens_[place] != bytes) {
      throw InputError("id " + id.dump() + " is of two tokens, '" + token + "' the second");
    }
    ids_.emplace(bytes, static_cast<std::int32_t>(place));
    tokens_[place] = std::move(bytes);
  }

  [[nodiscard]] std::int32_t id(const std::string& token) const {
    const auto found = ids_.find(bytes_of(token).value_or(token));
    if (found == ids_.end()) throw InputError("merge of '" + token + "', which is no token");
    return found->second;
  }

  [[nodiscard]] std::vector<std::string> tokens() const {
    std::vector<std::string> tokens;
    for (const auto& token : tokens_) {
      if (!token) throw InputError("has no token of id " + std::to_string(tokens.size()));
      tokens.push_back(*token);
    }
    return tokens;
  }

 private:
  std::vector<std::optional<std::string>> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
};

/// "left right", as files of merges have it.
BytePairs::Merge merge_of(const std::string& line, std::int32_t rank,
                          const TokenTable& vocabulary) {
  const auto blank = line.find(' ');
  if (blank == std::string::npos || line.find(' ', blank + 1) != std::string::npos) {
    throw InputError("merge '" + line + "', must be two tokens with a blank between them");
  }
  return {{vocabulary.id(line.substr(0, blank)), vocabulary.id(line.substr(blank + 1))}, rank};
}

void require_null(const nlohmann::json& json, const std::string& name) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null() || *found == false || *found == "") return;
  throw InputError(name + " = " + shown(*found) + ", must be null: nothing else is understood");
}

/// Which rule a pre-tokenizer is.
PretokenRule rule_of(const nlohmann::json& json) {
  const auto is_byte_level = [](const nlohmann::json& part, bool cuts) {
    return part.value("type", "") == "ByteLevel" && !part.value("add_prefix_space", true) &&
           part.value("use_regex", true) == cuts;
  };
  if (json.is_object() && is_byte_level(json, true)) return PretokenRule::gpt2;
  if (json.is_object() && json.value("type", "") == "Sequence") {
    const auto& parts = json.at("pretokenizers");
    if (parts.size() == 2 && is_byte_level(parts[1], false) &&
        parts[0].value("type", "") == "Split" && parts[0].value("behavior", "") == "Isolated" &&
        parts[0].at("pattern").value("Regex", "") == kCl100k) {
      return PretokenRule::cl100k;
    }
  }
  throw InputError("pre_tokenizer = " +
                   (json.is_object() ? shown(json.value("type", nlohmann::json())) : shown(json)) +
                   ", must be ByteLevel with use_regex and without add_prefix_space, or Split by "
                   "the pattern of cl100k before ByteLevel without use_regex");
}

std::shared_ptr<const BytePairs> read_json(const nlohmann::json& json) {
  require_null(json, "normalizer");
  const auto& model = json.at("model");
  if (model.value("type", "") != "BPE") {
    throw InputError("model.type = " + model.value("type", "") + ", must be BPE");
  }
  for (const auto* name : {"dropout", "unk_token", "continuing_subword_prefix",
                           "end_of_word_suffix", "byte_fallback", "ignore_merges"}) {
    require_null(model, name);
  }
  TokenTable vocabulary;
  for (const auto& [token, id] : model.at("vocab").items()) vocabulary.add(token, id);
  for (const auto& token : json.value("added_tokens", nlohmann::json::array())) {
    vocabulary.add(token.at("content"), token.at("id"));
  }
  std::vector<BytePairs::Merge> merges;
  for (const auto& merge : model.at("merges")) {
    const auto rank = static_cast<std::int32_t>(merges.size());
    if (merge.is_string()) {
      merges.push_back(merge_of(merge.get<std::string>(), rank, vocabulary));
    } else {
      merges.push_back({{vocabulary.id(merge.at(0)), vocabulary.id(merge.at(1))}, rank});
    }
  }
  return std::make_shared<const BytePairs>(vocabulary.tokens(), std::move(merges),
                                           rule_of(json.at("pre_tokenizer")));
}

std::shared_ptr<const BytePairs> read_gpt2(const std::string& vocab, const std::string& lines) {
  TokenTable vocabulary;
  const auto ids = nlohmann::json::parse(vocab);
  for (const auto& [token, id] : ids.items()) vocabulary.add(token, id);
  std::vector<BytePairs::Merge> merges;
  for_each_line(lines, [&](std::string_view line) {
    if (line.starts_with("#version") || line.empty()) return;
    merges.push_back(
        merge_of(std::string(line), static_cast<std::int32_t>(merges.size()), vocabulary));
  });
  return std::make_shared<const BytePairs>(vocabulary.tokens(), std::move(merges),
                                           PretokenRule::gpt2);
}

std::string decoded_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  unsigned number = 0;
  for (const char c : text) {
    if (c == '=') break;
    const auto digit = kDigits.find(c);
    if (digit == std::string_view::npos)
      throw InputError("'" + std::string(text) + "' is no base64");
    bits = bits << 6U | static_cast<unsigned>(digit);
    number += 6;
    if (number < 8) continue;
    number -= 8;
    bytes += static_cast<char>(bits >> number & 0xFFU);
  }
  return bytes;
}

/// Ranks alone: any two tokens whose joined bytes are a token are a pair, by its rank.
std::shared_ptr<const BytePairs> read_tiktoken(const std::string& lines) {
  std::vector<std::string> tokens;
  std::unordered_map<std::string, std::int32_t> ids;
  for_each_line(lines, [&](std::string_view line) {
    if (line.empty()) return;
    const auto blank = std::min(line.find(' '), line.size());
    const auto rank = std::to_string(tokens.size());
    if (line.substr(std::min(blank + 1, line.size())) != rank) {
      throw InputError("line '" + std::string(line.substr(0, 80)) +
                       "', must be a token in base64, a blank and " + rank);
    }
    tokens.push_back(decoded_base64(line.substr(0, blank)));
    ids.emplace(tokens.back(), static_cast<std::int32_t>(ids.size()));
  });
  std::vector<BytePairs::Merge> merges;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    for (std::size_t cut = 1; cut < tokens[id].size(); ++cut) {
      const auto left = ids.find(tokens[id].substr(0, cut));
      const auto right = ids.find(tokens[id].substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      merges.push_back({{left->second, right->second}, static_cast<std::int32_t>(id)});
    }
  }
  return std::make_shared<const BytePairs>(std::move(tokens), std::move(merges),
                                           PretokenRule::cl100k);
}

/// What `read` makes of the bytes of a file, which its errors begin with.
template <class Read>
std::shared_ptr<const BytePairs> parsed(const std::filesystem::path& file, Read read) {
  const auto bytes = read_text_file(file);
  try {
    return read(bytes);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(file.string() + ": is no JSON of a tokenizer: " + error.what());
  } catch (const InputError& error) {
    throw InputError(file.string() + ": " + error.what());
  }
}

}  // namespace

std::string BytePairs::file() const {
  auto vocabulary = Json::object();
  // Ids are in order, so that no key is looked for.
  auto& entries = vocabulary.get_ref<Json::object_t&>();
  for (std::size_t id = 0; id < tokens_.size(); ++id) {
    entries.push_back({spelled(tokens_[id]), id});
  }
  auto merges = Json::array();
  for (const auto& [left, right] : merges_) {
    merges.push_back(Json::array({spelled(tokens_[static_cast<std::size_t>(left)]),
                                  spelled(tokens_[static_cast<std::size_t>(right)])}));
  }
  const auto byte_level = [](bool cuts) {
    return Json{{"type", "ByteLevel"},
                {"add_prefix_space", false},
                {"trim_offsets", true},
                {"use_regex", cuts}};
  };
  auto rule = byte_level(true);
  if (rule_ == PretokenRule::cl100k) {
    const Json split{{"type", "Split"},
                     {"pattern", {{"Regex", kCl100k}}},
                     {"behavior", "Isolated"},
                     {"invert", false}};
    rule = {{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level(false)})}};
  }
  const Json json{{"version", "1.0"},
                  {"truncation", nullptr},
                  {"padding", nullptr},
                  {"added_tokens", Json::array()},
                  {"normalizer", nullptr},
                  {"pre_tokenizer", rule},
                  {"post_processor", nullptr},
                  {"decoder", byte_level(true)},
                  {"model",
                   {{"type", "BPE"},
                    {"dropout", nullptr},
                    {"unk_token", nullptr},
                    {"continuing_subword_prefix", nullptr},
                    {"end_of_word_suffix", nullptr},
                    {"fuse_unk", false},
                    {"byte_fallback", false},
                    {"ignore_merges", false},
                    {"vocab", vocabulary},
                    {"merges", merges}}}};
  return json.dump() + "\n";
}

std::shared_ptr<const BytePairs> read_byte_pairs(const std::string& json) {
  try {
    return read_json(nlohmann::json::parse(json));
  } catch (const nlohmann::json::exception& error) {
    throw InputError(std::string("is no tokenizer.json: ") + error.what());
  }
}

std::shared_ptr<const BytePairs> read_byte_pairs_file(const std::filesystem::path& file) {
  const auto name = file.filename().string();
  if (name.ends_with(".tiktoken")) return parsed(file, read_tiktoken);
  constexpr std::string_view kVocabulary = "vocab.json";
  if (name.ends_with(kVocabulary)) {
    const auto stem = name.substr(0, name.size() - kVocabulary.size());
    const auto merges = read_text_file(file.parent_path() / (stem + "merges.txt"));
    return parsed(file, [&](const std::string& ids) { return read_gpt2(ids, merges); });
  }
  return parsed(file,
                [](const std::string& json) { return read_json(nlohmann::json::parse(json)); });
}

}  // namespace nas
