// Requests of OpenAI's completions: what is read, what is refused, and how a text is sent in parts.

#include "cli/completion_request.hpp"

#include <gmock/gmock.h>

namespace nas {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

Json smallest() { return {{"model", "m"}, {"prompt", "The jury"}}; }

CompletionRequest parsed(const Json& more) {
  auto body = smallest();
  body.update(more);
  return parse_completion_request(body.dump());
}

/// The field at fault and the message.
std::string refusal(const Json& more) {
  try {
    (void)parsed(more);
  } catch (const RefusedRequest& refused) {
    EXPECT_EQ(refused.status, 400);
    return refused.param + ": " + refused.what();
  }
  return "accepted";
}

TEST(CompletionRequest, HasTheDefaultsOfTheApi) {
  const auto request = parsed(Json::object());
  EXPECT_EQ(request.model, "m");
  EXPECT_THAT(request.prompts, ElementsAre("The jury"));
  EXPECT_EQ(request.max_tokens, 16);
  EXPECT_EQ(request.temperature, 1.0);
  EXPECT_EQ(request.top_p, 1.0);
  EXPECT_EQ(request.top_k, 0);
  EXPECT_EQ(request.n, 1);
  EXPECT_FALSE(request.logprobs);
  EXPECT_FALSE(request.stream);
  EXPECT_TRUE(request.stop.empty());
}

TEST(CompletionRequest, ReadsEveryField) {
  const auto request = parsed({{"prompt", {"a", "b"}},
                               {"max_tokens", 0},
                               {"temperature", 0},
                               {"top_p", 0.9},
                               {"top_k", 40},
                               {"n", 2},
                               {"best_of", 2},
                               {"seed", 7},
                               {"stop", {"\n", "."}},
                               {"logprobs", 0},
                               {"suffix", nullptr},
                               {"presence_penalty", 0.0},
                               {"user", "me"}});
  EXPECT_THAT(request.prompts, ElementsAre("a", "b"));
  EXPECT_EQ(request.max_tokens, 0);
  EXPECT_EQ(request.temperature, 0.0);
  EXPECT_EQ(request.top_p, 0.9);
  EXPECT_EQ(request.top_k, 40);
  EXPECT_EQ(request.n, 2);
  EXPECT_EQ(request.seed, 7U);
  EXPECT_THAT(request.stop, ElementsAre("\n", "."));
  EXPECT_EQ(request.logprobs, 0);
  EXPECT_THAT(parsed({{"stop", "."}}).stop, ElementsAre("."));
  EXPECT_TRUE(parsed({{"stop", nlohmann::json::array()}}).stop.empty());
  EXPECT_EQ(parsed({{"top_k", -1}}).top_k, 0) << "all, as elsewhere";
  EXPECT_TRUE(
      parsed({{"stream", true}, {"stream_options", {{"include_usage", true}}}}).stream_usage);
}

TEST(CompletionRequest, SaysWhatIsWrong) {
  EXPECT_EQ(refusal({{"max_tokens", "many"}}),
            "max_tokens: max_tokens = \"many\", must be an integer in [0, 4096]");
  EXPECT_EQ(refusal({{"max_tokens", 5000}}),
            "max_tokens: max_tokens = 5000, must be an integer in [0, 4096]");
  EXPECT_EQ(refusal({{"n", 18446744073709551615U}}),
            "n: n = 18446744073709551615, must be an integer in [1, 16]");
  EXPECT_EQ(refusal({{"temperature", 2.5}}),
            "temperature: temperature = 2.5, must be a number in [0, 2]");
  EXPECT_THAT(refusal({{"top_p", 0}}), HasSubstr("top_p = 0, must be a number in "));
  EXPECT_EQ(refusal({{"stream", 1}}), "stream: stream = 1, must be true or false");
  EXPECT_EQ(refusal({{"prompt", {1, 2}}}),
            "prompt: prompt = [1,2], must be a text, or a list of at most 16 texts");
  EXPECT_EQ(refusal({{"stop", {"a", "b", "c", "d", "e"}}}),
            "stop: stop = [\"a\",\"b\",\"c\",\"d\",\"e\"], must be a text, or a list of at most 4 "
            "texts");
  EXPECT_EQ(refusal({{"stop", ""}}), "stop: stop = \"\", must be no empty text");
  EXPECT_EQ(refusal({{"best_of", 3}}),
            "best_of: best_of = 3, must be 1 or left out: this server does not offer it");
  EXPECT_THAT(refusal({{"max_token", 5}}),
              HasSubstr("max_token: unknown field 'max_token', known: "));
  EXPECT_THAT(refusal({{"prompt", nullptr}}), HasSubstr("prompt is missing, must be given"));
  EXPECT_THAT(refusal({{"echo", true}, {"stream", true}}), HasSubstr("echo = true, must be false"));
  for (const auto* body : {"", "[]", "{", "\"a\"", "\xff"}) {
    EXPECT_THROW((void)parse_completion_request(body), RefusedRequest) << body;
  }
}

TEST(CompletionRequest, ErrorsHaveTheFormOfTheApi) {
  EXPECT_EQ(error_json({404, "model = x, must be m", "model", "model_not_found"}),
            nlohmann::ordered_json::parse(R"({"error": {"message": "model = x, must be m",
                "type": "invalid_request_error", "param": "model", "code": "model_not_found"}})"));
  EXPECT_EQ(error_json({500, "broken"}).at("error").at("type"), "server_error");
  EXPECT_TRUE(error_json({400, "broken"}).at("error").at("param").is_null());
}

/// What is sent for texts that grow, the rest last.
std::vector<std::string> sent(CompletionText text, const std::vector<std::string>& grown) {
  std::vector<std::string> parts;
  for (const auto& whole : grown) parts.push_back(text.grow(whole));
  parts.push_back(text.rest());
  return parts;
}

TEST(CompletionText, SendsWhatIsNew) {
  EXPECT_THAT(sent(CompletionText({}), {" a", " a b", " a b"}), ElementsAre(" a", " b", "", ""));
}

TEST(CompletionText, EndsBeforeAStopText) {
  CompletionText text({"\n\n", "END"});
  EXPECT_EQ(text.grow("ab\n"), "ab");
  EXPECT_FALSE(text.stopped());
  EXPECT_EQ(text.grow("ab\nc E"), "\nc ");
  EXPECT_EQ(text.grow("ab\nc EN"), "");
  EXPECT_EQ(text.grow("ab\nc ENDING"), "");
  EXPECT_TRUE(text.stopped());
  EXPECT_EQ(text.rest(), "");
  EXPECT_EQ(text.text(), "ab\nc ");
  EXPECT_EQ(text.grow("ab\nc ENDING more"), "") << "nothing comes after it";
  EXPECT_THAT(sent(CompletionText({"END"}), {"a EN", "a ENT"}), ElementsAre("a ", "ENT", ""));
  EXPECT_THAT(sent(CompletionText({"END"}), {"a EN"}), ElementsAre("a ", "EN")) << "no stop came";
}

TEST(CompletionText, SendsWholeCharacters) {
  EXPECT_THAT(sent(CompletionText({}), {"a\xc3", "a\xc3\xa9", "a\xc3\xa9\xf0\x9f\x98"}),
              ElementsAre("a", "\xc3\xa9", "", "\xf0\x9f\x98"));
  EXPECT_THAT(sent(CompletionText({}), {"\xa9\xa9\xa9\xa9"}), ElementsAre("\xa9\xa9\xa9\xa9", ""))
      << "no UTF-8 is not held back for ever";
}

}  // namespace
}  // namespace nas
