// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "weft/base/config.hpp"

namespace weft {

// Bytes of this process that are in memory now: program, libraries and data. 0 where the system does not tell.
inline Index resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file) return 0;
  long total = 0, resident = 0;
  const int read = std::fscanf(file, "%ld %ld", &total, &resident);
  std::fclose(file);
  return read == 2 ? Index(resident) * Index(sysconf(_SC_PAGESIZE)) : 0;
}

// The most that was in memory at any time.
inline Index peak_resident_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? Index(usage.ru_maxrss) * 1024 : 0;
}

}  // namespace weft
