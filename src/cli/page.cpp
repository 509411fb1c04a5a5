#include "cli/page.hpp"

#include <cstdlib>
#include <iostream>

#include "core/format.hpp"
#include "core/installed.hpp"
#include "core/run_program.hpp"
#include "core/warning.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

/// For people who copy it into a shell.
std::string quoted(const std::string& word) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::optional<std::string> find_python(const std::string& code, const std::string& lacks) {
  std::vector<std::string> candidates{"python3", "/usr/bin/python3"};
  const char* variable = std::getenv("NAS_PYTHON");
  const std::string wanted = variable != nullptr ? variable : "";
  if (!wanted.empty()) candidates.insert(candidates.begin(), wanted);
  for (const auto& python : candidates) {
    if (run_program({python, "-c", code}).status != 0) continue;
    if (!wanted.empty() && python != wanted) {
      warn("NAS_PYTHON = " + wanted + " does not run or lacks " + lacks + ": " + python +
           " is taken");
    }
    return python;
  }
  return std::nullopt;
}

std::vector<std::string> module_command(const std::string& python, const std::string& module) {
  std::error_code unknown;
  const auto bin = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  setenv("NAS_BIN", bin.c_str(), 0);
  setenv("PYTHONSAFEPATH", "1", 1);                               // not the current folder
  std::vector<fs::path> places{bin.parent_path().parent_path()};  // of a wheel
  for (const auto& folder : shared_folders()) places.push_back(folder / "python");
  for (const auto& place : places) {
    if (!fs::exists(place / "attnas" / "__init__.py", unknown)) continue;
    const char* before = std::getenv("PYTHONPATH");
    const auto others = before != nullptr ? ":" + std::string(before) : "";
    setenv("PYTHONPATH", (place.string() + others).c_str(), 1);
    break;
  }
  return {python, "-B", "-m", module};
}

Page page_of_run(const fs::path& folder) {
  return {.script = "report.py", .arguments = {folder.string()}, .file = folder / "report.html"};
}

Page page_of_comparison(const fs::path& folder) {
  return {.script = "compare.py",
          .arguments = {(folder / "comparison.sqlite").string(), "--output", folder.string()},
          .file = folder / "compare.html"};
}

std::optional<fs::path> find_analysis_script(const std::string& name) {
  std::error_code unknown;
  for (const auto& folder : shared_folders()) {
    const auto script = folder / "analysis" / name;
    if (fs::is_regular_file(script, unknown)) return script;
  }
  return std::nullopt;
}

void write_page(const Page& page, const std::optional<std::string>& python,
                const std::optional<fs::path>& script, std::ostream& out, std::ostream& err) {
  if (!script || !python) {
    out << "for a page about it: " << python.value_or("python3") << ' '
        << (script ? quoted(script->string()) : "analysis/" + page.script);
    for (const auto& argument : page.arguments) out << ' ' << quoted(argument);
    out << (python ? "" : "  (needs Python with numpy and scipy)") << '\n';
    return;
  }
  // -B: nothing is left beside the script.
  std::vector<std::string> words{*python, "-B", script->string()};
  words.insert(words.end(), page.arguments.begin(), page.arguments.end());
  const auto result = run_program(words);
  if (result.status == 0) {
    out << "and " << page.file.string() << ", to be opened in a browser\n";
    return;
  }
  const auto why = last_line(result.output);
  err << "warning: " << page.file.string() << " was not written: "
      << (why.empty() ? "exit code " + std::to_string(result.status) : printable(why)) << '\n';
}

void write_page(const Page& page) {
  write_page(page, find_python(), find_analysis_script(page.script), std::cout, std::cerr);
}

}  // namespace nas
