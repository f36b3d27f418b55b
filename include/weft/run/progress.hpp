// SPDX-License-Identifier: Apache-2.0
// What a person sees of a long training, and the file that a script reads.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "weft/base/config.hpp"
#include "weft/base/error.hpp"

namespace weft {

// Seconds since a point in time.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// "1:02:03", "2:03"
inline std::string duration_text(double seconds) {
  const long whole = seconds > 0 ? long(seconds + 0.5) : 0;
  char text[64];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  return text;
}

struct ProgressLine {
  Index step = 0, steps = 0;
  double loss = 0, rows_per_second = 0, peak_fraction = 0, remaining_seconds = 0;
  const char* unit = "tokens";
};

// Prints to stderr. On a terminal one line is rewritten a few times a second; elsewhere nothing but what is said by note().
class Progress {
 public:
  explicit Progress(bool wanted) : wanted_(wanted), terminal_(wanted && isatty(STDERR_FILENO) != 0) {}

  void show(const ProgressLine& line) {
    if (!terminal_ || (line.step < line.steps && since_.seconds() < 0.25)) return;
    since_ = Stopwatch();
    std::fprintf(stderr, "\r\033[Kstep %lld/%lld  loss %.4f  %.0f %s/s  %.0f %% of peak  %s left", static_cast<long long>(line.step),
                 static_cast<long long>(line.steps), line.loss, line.rows_per_second, line.unit, 100 * line.peak_fraction,
                 duration_text(line.remaining_seconds).c_str());
    shown_ = true;
    std::fflush(stderr);
  }
  // A line that stays. On a terminal it takes the place of the moving one.
  void note(const std::string& text) {
    if (!wanted_) return;
    std::fprintf(stderr, "%s%s\n", shown_ ? "\r\033[K" : "", text.c_str());
    shown_ = false;
  }
  void end() {
    if (shown_) std::fprintf(stderr, "\n");
    shown_ = false;
  }

 private:
  bool wanted_, terminal_, shown_ = false;
  Stopwatch since_;
};

// Rows of numbers as text, flushed line by line, so that a run that is cut off leaves what it did.
class CsvLog {
 public:
  CsvLog() = default;
  // Errors: weft[log.open].
  explicit CsvLog(const std::string& path) : path_(path) {
    if (path.empty()) return;
    file_ = std::fopen(path.c_str(), "w");
    if (!file_) throw Error("log.open", "the log file cannot be written; give a path in an existing, writable folder (" + path + ")");
    std::fprintf(file_, "step,loss,validation_loss,rate,gradient_norm,applied,rows_per_second,seconds\n");
  }
  CsvLog(CsvLog&& other) noexcept : path_(std::move(other.path_)), file_(std::exchange(other.file_, nullptr)) {}
  CsvLog& operator=(CsvLog&& other) noexcept {
    std::swap(path_, other.path_), std::swap(file_, other.file_);
    return *this;
  }
  ~CsvLog() {
    if (file_) std::fclose(file_);
  }

  // validation < 0: none at this step. Errors: weft[log.write] (a full disk).
  void row(Index step, double loss, double validation, double rate, double norm, bool applied, double rows_per_second, double seconds) {
    if (!file_) return;
    std::fprintf(file_, "%lld,%.9g,", static_cast<long long>(step), loss);
    if (validation >= 0) std::fprintf(file_, "%.9g", validation);
    std::fprintf(file_, ",%.9g,%.9g,%d,%.1f,%.3f\n", rate, norm, int(applied), rows_per_second, seconds);
    if (std::fflush(file_) != 0) throw Error("log.write", "the log file cannot be written any more; is the disk full? (" + path_ + ")");
  }

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace weft
