#include <csignal>
#include <map>
#include <set>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

#include "core/hash.hpp"
#include "integration/program.hpp"

namespace nas::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

struct Answer {
  int status = 0;
  std::map<std::string, std::string> headers{};
  std::string body{};
};

/// One request on a connection of its own; status 0: nobody answers.
Answer fetch(int port, const std::string& method, const std::string& target,
             const std::string& headers = "") {
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string text;
  if (connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const auto request = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers +
                         "Connection: close\r\n\r\n";
    (void)!write(file, request.data(), request.size());
    std::array<char, 4096> part{};
    for (ssize_t size = 0; (size = read(file, part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<std::size_t>(size));
    }
  }
  close(file);
  Answer answer;
  const auto end = text.find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  std::istringstream lines(text.substr(0, end));
  std::string line;
  std::getline(lines, line);
  answer.status = std::stoi(line.substr(9));
  while (std::getline(lines, line)) {
    if (line.ends_with('\r')) line.pop_back();
    const auto colon = line.find(": ");
    answer.headers[line.substr(0, colon)] = line.substr(colon + 2);
  }
  answer.body = text.substr(end + 4);
  return answer;
}

class WatchTest : public ProgramTest {
 protected:
  /// nas-watch of a folder, whose address is known.
  struct Watch {
    Watch(const std::string& folder, const fs::path& output,
          const std::function<void()>& prepare = {}, const std::string& host = "127.0.0.1")
        : program("nas-watch", {folder, "--host", host}, output, prepare) {
      const std::string before = "http://127.0.0.1:";
      for (int i = 0; i < 1000 && token.empty(); ++i) {
        std::this_thread::sleep_for(10ms);
        const auto text = read_file(output);
        const auto at = text.find(before);
        const auto query = text.find("?token=");
        if (query == std::string::npos || text.back() != '\n') continue;
        port = std::stoi(text.substr(at + before.size()));
        token = text.substr(query, text.find('\n', query) - query);
      }
      EXPECT_NE(token, "") << read_file(output);
    }
    [[nodiscard]] Answer get(const std::string& path, const std::string& headers = "") const {
      return fetch(port, "GET", path + token, headers);
    }
    [[nodiscard]] nlohmann::json state() const {
      return nlohmann::json::parse(get("/state.json").body);
    }
    Program program;
    int port = 0;
    std::string token{};  ///< "?token=..."
  };

  /// Hashes of all files of a run, by name.
  static std::map<std::string, std::string> files_of(const fs::path& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) files[entry.path()] = sha256_file(entry.path());
    }
    return files;
  }

  static void copy_run(const fs::path& from, const fs::path& to) {
    fs::create_directories(to.parent_path());
    fs::copy(from, to, fs::copy_options::recursive);
  }

  /// The rows of a list by their runs, once these are as they should be, or after a while.
  static std::map<std::string, nlohmann::json> rows_of(const Watch& watch,
                                                       const std::set<std::string>& runs) {
    std::map<std::string, nlohmann::json> rows;
    std::set<std::string> names;
    for (int i = 0; i < 200 && names != runs; ++i) {
      std::this_thread::sleep_for(50ms);
      rows.clear();
      names.clear();
      const auto state = nlohmann::json::parse(watch.get("/runs.json").body);
      for (const auto& row : state.at("runs")) {
        names.insert(row.at("run"));
        rows[row.at("run")] = row;
      }
    }
    EXPECT_EQ(names, runs);
    return rows;
  }

  /// Waits until a state is as it should be. @return the last one.
  static nlohmann::json wait_for(const Watch& watch,
                                 const std::function<bool(const nlohmann::json&)>& right) {
    nlohmann::json state;
    for (int i = 0; i < 600; ++i) {
      state = watch.state();
      if (right(state)) return state;
      std::this_thread::sleep_for(100ms);
    }
    ADD_FAILURE() << state.dump(1);
    return state;
  }
};

TEST_F(WatchTest, AFinishedRunHasTheNumbersOfItsResults) {
  const auto folder = small_run();
  const auto results = results_of(folder);
  const auto before = files_of(folder);
  Watch watch(folder, folder_ / "watch.txt");
  const auto state = watch.state();
  EXPECT_EQ(state.at("phase"), "finished");
  EXPECT_EQ(state.at("name"), results.at("config").at("name"));
  EXPECT_EQ(state.at("ended_by"), results.at("ended_by"));
  EXPECT_EQ(state.at("progress").at("done"), results.at("asks").size());
  for (const auto* count : {"asked", "evaluated", "reused", "rejected", "stopped_early"}) {
    EXPECT_EQ(state.at("counts").at(count), results.at("counts").at(count)) << count;
  }
  std::map<std::string, nlohmann::json> evaluations;
  for (const auto& one : state.at("evaluations")) evaluations[one.at("id")] = one;
  ASSERT_EQ(evaluations.size(), results.at("evaluations").size());
  const auto objective = results.at("objectives")[0].at("name").get<std::string>();
  for (const auto& one : results.at("evaluations")) {
    const auto& own = evaluations.at(one.at("id"));
    EXPECT_EQ(own.at("status"), one.at("status"));
    EXPECT_EQ(own.at("values")[0], one.at("objectives").at(objective));
    EXPECT_EQ(own.at("seconds"), one.at("measured").at("train_seconds"));
    EXPECT_EQ(own.at("curve").size(), one.at("curve").size());
  }
  EXPECT_EQ(state.at("best")[0].at("value"), results.at("front")[0].at("values").at(objective));
  EXPECT_EQ(state.at("baseline").at("values")[0],
            results.at("baseline").at("values").at(objective));
  EXPECT_TRUE(state.at("at_work").is_null());

  watch.program.kill(SIGINT);
  EXPECT_EQ(watch.program.wait(), 0);
  EXPECT_EQ(files_of(folder), before) << "nothing of the run is touched";
}

TEST_F(WatchTest, ALostConnectionEndsItUnlessNohupHasStartedIt) {
  const auto folder = small_run();
  Watch watch(folder, folder_ / "watch.txt", [] { signal(SIGHUP, SIG_DFL); });
  watch.program.kill(SIGHUP);
  EXPECT_EQ(watch.program.wait(), 0);
  Watch lasting(folder, folder_ / "nohup.txt", [] { signal(SIGHUP, SIG_IGN); });
  lasting.program.kill(SIGHUP);
  int code = -1;
  ASSERT_FALSE(lasting.program.wait_for(500ms, code)) << code;
  EXPECT_EQ(lasting.get("/").status, 200);
  lasting.program.kill(SIGTERM);
  EXPECT_EQ(lasting.program.wait(), 0);
}

TEST_F(WatchTest, AnswersWhoKnowsTheTokenAndNobodyElse) {
  Watch watch(small_run(), folder_ / "watch.txt");
  const auto page = watch.get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.at("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.headers.at("Content-Security-Policy"), HasSubstr("default-src 'none'"));
  EXPECT_THAT(page.body, HasSubstr("</html>"));
  EXPECT_THAT(page.body, Not(HasSubstr("{{")));
  EXPECT_THAT(page.body, Not(HasSubstr("smoke"))) << "what the run says comes as data alone";
  EXPECT_THAT(page.body, Not(HasSubstr("innerHTML")));
  for (const auto* target : {"/", "/state.json", "/?token=", "/?token=0", "/elsewhere",
                             "/?other=1&token=00000000000000000000000000000000"}) {
    const auto answer = fetch(watch.port, "GET", target);
    EXPECT_EQ(answer.status, 403) << target;
    EXPECT_THAT(answer.body, Not(HasSubstr("{")));
  }
  EXPECT_EQ(watch.get("/elsewhere").status, 404);
  const auto head = fetch(watch.port, "HEAD", "/" + watch.token);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.headers.at("Content-Length"), std::to_string(page.body.size()));
  const auto post = fetch(watch.port, "POST", "/" + watch.token, "Content-Length: 0\r\n");
  EXPECT_EQ(post.status, 405);
  EXPECT_EQ(post.headers.at("Allow"), "GET, HEAD");

  const auto state = watch.get("/state.json");
  const auto again =
      watch.get("/state.json", "If-None-Match: " + state.headers.at("ETag") + "\r\n");
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  const auto version = nlohmann::json::parse(state.body).at("version").get<int>();
  const auto since = nlohmann::json::parse(
      fetch(watch.port, "GET", "/state.json" + watch.token + "&since=" + std::to_string(version))
          .body);
  EXPECT_EQ(since.at("whole"), false);
  EXPECT_EQ(since.at("evaluations").size(), 0U);
  watch.program.kill(SIGTERM);
  EXPECT_EQ(watch.program.wait(), 0);
}

TEST_F(WatchTest, ARunIsSeenFromItsFirstMinuteToItsEnd) {
  const auto folder = (folder_ / "run").string();
  const auto search = [&](int steps) {
    return std::vector<std::string>{config("smoke.yaml"),
                                    "--output",
                                    folder,
                                    "--no-report",
                                    "algorithm.population=6",
                                    "algorithm.generations=1",
                                    "evaluation.workers=1",
                                    "evaluation.array=1",
                                    "training.steps=" + std::to_string(steps)};
  };
  Program run_program("nas-run", search(20000), folder_ / "run.txt");
  while (!fs::exists(folder + "/store.sqlite")) std::this_thread::sleep_for(10ms);
  Watch watch(folder, folder_ / "watch.txt");
  const auto first = wait_for(watch, [](const auto& state) {
    return state.at("at_work").is_object() && !state.at("at_work").at("arrays").empty() &&
           state.at("at_work").at("arrays")[0].at("step") > 0;
  });
  EXPECT_EQ(first.at("phase"), "running");
  EXPECT_EQ(first.at("evaluations").size(), 0U) << "nothing has finished";
  EXPECT_EQ(first.at("at_work").at("arrays")[0].at("steps"), 20000);
  EXPECT_EQ(first.at("candidates").size(), 1U) << "the baseline";

  ASSERT_EQ(run("nas-export", {folder, "--format", "json"}), 0);
  const auto digest = nlohmann::json::parse(text());
  EXPECT_TRUE(digest.at("ended_by").is_null());
  EXPECT_EQ(digest.at("at_work").at("stage"), "search");

  run_program.kill(SIGKILL);
  run_program.wait();
  wait_for(watch, [](const auto& state) { return state.at("phase") == "stopped"; });
  ASSERT_EQ(run("nas-export", {folder, "--format", "json"}), 0);
  EXPECT_FALSE(nlohmann::json::parse(text()).contains("at_work")) << "nobody is at it";
}

TEST_F(WatchTest, RunsOfAFolderAreListedWithTheNumbersOfTheirResults) {
  const auto run_folder = small_run();
  const auto folder = folder_ / "runs";
  const std::string hostile = "<img src=x onerror=alert(1)>";
  copy_run(run_folder, folder / "plain");
  copy_run(run_folder, folder / "deep" / hostile);
  const auto before = files_of(folder);
  Watch watch(folder, folder_ / "watch.txt");
  const auto rows = rows_of(watch, {"plain", "deep/" + hostile});
  ASSERT_TRUE(rows.contains("plain"));
  const auto& plain = rows.at("plain");
  const auto results = results_of(run_folder);
  EXPECT_EQ(plain.at("phase"), "finished");
  EXPECT_EQ(plain.at("progress").at("done"), results.at("asks").size());
  const auto objective = results.at("objectives")[0].at("name").get<std::string>();
  const auto best = results.at("front")[0].at("values").at(objective);
  EXPECT_EQ(plain.at("best").at("value"), best);
  EXPECT_EQ(plain.at("baseline"), results.at("baseline").at("values").at(objective));
  EXPECT_EQ(plain.at("so_far").at("points").back()[1], best);
  EXPECT_EQ(plain.at("so_far").at("last"), results.at("asks").size());

  const auto page = watch.get("/").body;
  EXPECT_THAT(page, HasSubstr("</html>"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  EXPECT_THAT(page, Not(HasSubstr("innerHTML")));
  EXPECT_THAT(page, Not(HasSubstr("onerror"))) << "names come as data alone";
  const auto own = "/run/" + plain.at("number").dump();
  EXPECT_THAT(watch.get(own + "/").body, HasSubstr("Learning curves"));
  EXPECT_EQ(nlohmann::json::parse(watch.get(own + "/state.json").body).at("best")[0].at("value"),
            best);
  EXPECT_EQ(files_of(folder), before) << "nothing of the runs is touched";

  copy_run(run_folder, folder / "later");
  fs::remove_all(folder / "plain");
  EXPECT_EQ(rows_of(watch, {"later", "deep/" + hostile}).size(), 2U);
  EXPECT_EQ(watch.get(own + "/").status, 404);
}

TEST_F(WatchTest, RunsOfAListAreKnownByTheirNumbersAlone) {
  const auto run_folder = small_run();
  copy_run(run_folder, folder_ / "runs" / "a");
  copy_run(run_folder, folder_ / "runs" / "b");
  Watch watch(folder_ / "runs", folder_ / "watch.txt");
  ASSERT_EQ(rows_of(watch, {"a", "b"}).size(), 2U);
  for (const auto* target : {"/", "/runs.json", "/run/0/", "/run/0/state.json", "/run/9/"}) {
    EXPECT_EQ(fetch(watch.port, "GET", target).status, 403) << target;
  }
  for (const auto* target :
       {"/state.json", "/run/9/", "/run/", "/run/0", "/run/x/", "/run/-1/", "/run/0/store.sqlite",
        "/run/a/", "/run/0/../1/", "/run//", "/run/18446744073709551616/", "/a/"}) {
    EXPECT_EQ(watch.get(target).status, 404) << target;
  }
  for (const auto* target : {"/", "/run/1/", "/runs.json", "/run/1/state.json"}) {
    EXPECT_EQ(watch.get(target).status, 200) << target;
  }
  const auto tag = watch.get("/runs.json").headers.at("ETag");
  EXPECT_EQ(watch.get("/runs.json", "If-None-Match: " + tag + "\r\n").status, 304);
  watch.program.kill(SIGTERM);
  EXPECT_EQ(watch.program.wait(), 0);
}

TEST_F(WatchTest, WhatItCannotShowIsBadInput) {
  EXPECT_EQ(run("nas-watch", {(folder_ / "none").string()}), 2);
  EXPECT_THAT(text(), HasSubstr("no such store"));
  EXPECT_EQ(run("nas-watch", {}), 2);
  EXPECT_THAT(text(), HasSubstr("give a run, or a folder of runs"));
  fs::create_directories(folder_ / "empty" / "deep");
  EXPECT_EQ(run("nas-watch", {(folder_ / "empty").string()}), 2);
  EXPECT_THAT(text(), HasSubstr("holds no run; give a run's folder, or one that holds runs"));
  const auto folder = small_run();
  EXPECT_EQ(run("nas-watch", {folder, "--port", "70000"}), 2);
  EXPECT_THAT(text(), HasSubstr("--port = 70000, must be in [0, 65535]"));
  EXPECT_EQ(run("nas-watch", {folder, "--host", "nowhere"}), 2);
  EXPECT_THAT(text(), HasSubstr("--host nowhere, must be an address"));
  EXPECT_EQ(fetch(Watch(folder, folder_ / "named.txt", {}, "localhost").port, "GET", "/").status,
            403);
  Watch watch(folder, folder_ / "watch.txt");
  EXPECT_EQ(run("nas-watch", {folder, "--port", std::to_string(watch.port)}), 2);
  EXPECT_THAT(text(), HasSubstr("port " + std::to_string(watch.port) + ": Address already in use"));
  EXPECT_EQ(run("nas-watch", {"--help"}), 0);
  EXPECT_THAT(text(), HasSubstr("--port"));
  EXPECT_THAT(text(), Not(HasSubstr("130"))) << "a signal ends it with 0";
  EXPECT_EQ(run("nas-watch", {folder, "--port", "x"}), 2);
  EXPECT_THAT(text(), HasSubstr("option '--port' is invalid, must be an integer"));
}

}  // namespace
}  // namespace nas::testing
