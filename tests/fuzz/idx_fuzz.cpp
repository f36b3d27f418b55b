// SPDX-License-Identifier: Apache-2.0
// IDX files, plain and gzipped: whatever the bytes are, they are read or refused with a weft::Error.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude tests/fuzz/idx_fuzz.cpp -lz -o idx_fuzz
//   ./idx_fuzz -max_total_time=60 -max_len=4096 -rss_limit_mb=512
#include <weft/data/gzip/read_idx.hpp>

namespace {
template <class Read>
void read_all(Read&& read) {
  try {
    const weft::data::IdxArray array = read();
    unsigned sum = 0;
    for (weft::Index i = 0; i < array.num_items(); ++i)
      for (std::uint8_t byte : array.item(i)) sum += byte;
    if (sum > 255u * unsigned(array.header().payload_bytes())) __builtin_trap();
  } catch (const weft::Error&) {}
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::data;
  const FileBytes file = bytes_in_memory({reinterpret_cast<const char*>(data), size}, "fuzz");
  read_all([&] { return IdxArray(file); });
  if (gzip::is_gzip(file.bytes)) read_all([&] { return gzip::unpack_idx(file, {.most_bytes = 1 << 20}); });
  return 0;
}
