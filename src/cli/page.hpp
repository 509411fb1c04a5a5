#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace nas {

/// The first of $NAS_PYTHON, python3 on PATH and /usr/bin/python3 that imports numpy and scipy;
/// takes about a tenth of a second each.
/// @param code  what it must carry out in place of that.   @param lacks  what it lacks where it does not.
std::optional<std::string> find_python(const std::string& code = "import numpy, scipy",
                                       const std::string& lacks = "numpy or scipy");

/// The beginning of a command that carries out a module of the Python package, which from now on finds
/// it, and these programs, by the environment.
std::vector<std::string> module_command(const std::string& python, const std::string& module);

/// A page that a script of analysis/ writes.
struct Page {
  std::string script;                  ///< "report.py"
  std::vector<std::string> arguments;  ///< as a person would type them
  std::filesystem::path file;          ///< what it writes
};
/// Of the run, or of the comparison in a folder.
Page page_of_run(const std::filesystem::path& folder);
Page page_of_comparison(const std::filesystem::path& folder);

/// A script of analysis/: of the installed package or, for a program in its build folder, of the
/// source tree.
std::optional<std::filesystem::path> find_analysis_script(const std::string& name);

/// Has the script write a page and says so in a line on `out`. Where Python or the script is
/// missing, the line says what to run by hand; where it fails, a line on `err` says why. The store
/// that the script reads must be closed.
void write_page(const Page& page, const std::optional<std::string>& python,
                const std::optional<std::filesystem::path>& script, std::ostream& out,
                std::ostream& err);
/// The same with the Python and the script that are found, on the standard streams.
void write_page(const Page& page);

}  // namespace nas
