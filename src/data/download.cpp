#include "data/download.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include <curl/curl.h>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/run_program.hpp"
#include "core/stop.hpp"
#include "data/file.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

struct CloseTransfer {
  void operator()(CURL* transfer) const { curl_easy_cleanup(transfer); }
};
struct Destination {
  std::FILE* out;
  std::int64_t left;    ///< bytes that may still come
  int write_error = 0;  ///< of errno
  bool too_long = false;
};

// Anything but the number of bytes ends the transfer.
std::size_t write_received(const char* bytes, std::size_t /*one*/, std::size_t size,
                           void* destination) {
  auto& to = *static_cast<Destination*>(destination);
  to.left -= static_cast<std::int64_t>(size);
  to.too_long = to.left < 0;
  if (to.too_long) return 0;
  const std::size_t written = std::fwrite(bytes, 1, size, to.out);
  if (written != size) to.write_error = errno;
  return written;
}

int report_progress(void* on_progress, curl_off_t total, curl_off_t received, curl_off_t /*up*/,
                    curl_off_t /*sent*/) {
  const auto& report = *static_cast<const TransferProgress*>(on_progress);
  if (report) report(received, total);
  return stop_requested() ? 1 : 0;  // anything but 0 ends the transfer
}

}  // namespace

void download(const std::string& url, const fs::path& file, const TransferProgress& on_progress,
              std::int64_t max_bytes) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, CloseTransfer> transfer(initialised == CURLE_OK ? curl_easy_init()
                                                                              : nullptr);
  if (transfer == nullptr) throw InputError(url + ": libcurl cannot be started");
  File out(std::fopen(file.c_str(), "wb"));
  if (out == nullptr) throw MachineError(io_failure(file, errno));

  Destination destination{.out = out.get(), .left = max_bytes};
  std::array<char, CURL_ERROR_SIZE> reason{};
  CURL* const curl = transfer.get();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write_received);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &destination);
  // Where the server says how much will come; what comes unannounced is counted.
  curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(max_bytes));
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason.data());
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 15L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 100L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 30L);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, report_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &on_progress);
  const CURLcode code = curl_easy_perform(curl);
  if (stop_requested()) throw StopRequested();
  if (destination.write_error != 0) throw MachineError(io_failure(file, destination.write_error));
  if (destination.too_long || code == CURLE_FILESIZE_EXCEEDED) {
    throw InputError(url + ": is longer than " + std::to_string(max_bytes) +
                     " bytes, the most that is downloaded");
  }
  if (code != CURLE_OK) {
    throw InputError(url + ": " + (reason[0] != '\0' ? reason.data() : curl_easy_strerror(code)));
  }
  if (std::fflush(out.get()) != 0) throw MachineError(io_failure(file, errno));
}

fs::path download_npm(const std::string& package, const fs::path& folder) {
  const std::string where = "npm:" + package + ": ";
  const auto npm = run_program({"npm", "pack", package, "--silent", "--fetch-retries=1",
                                "--pack-destination", folder.string()},
                               Output::all);
  if (!npm.started) throw InputError(where + "the program npm " + npm.output);
  if (stop_requested()) throw StopRequested();
  const auto said = last_line(npm.output);
  const fs::path archive = folder / said;
  if (npm.status != 0 || archive.extension() != ".tgz" || !fs::exists(archive)) {
    throw InputError(where + "npm pack ended with code " + std::to_string(npm.status) +
                     (said.empty() ? "" : ": " + said));
  }
  return archive;
}

}  // namespace nas
