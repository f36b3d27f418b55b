// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <thread>

#include <weft/base/config.hpp>

weft::Index from_static();
weft::Index from_shared();

int main() {
  const std::string expected = WEFT_EXPECTED_VERSION;  // of the package; not known to who adds a subdirectory
  if (!expected.empty() && expected != WEFT_VERSION_STRING)
    return std::printf("the package is %s, the header %s\n", expected.c_str(), WEFT_VERSION_STRING), 1;
  weft::Index sum = 0;
  std::thread([&] { sum = from_static() + from_shared(); }).join();
  std::printf("weft %s: %d\n", WEFT_VERSION_STRING, int(sum));
  return sum == 88 ? 0 : 1;
}
