// SPDX-License-Identifier: Apache-2.0
// Attention on shapes of real models. GFLOP/s = flops / time with flops = 4 · B · H · queries · keys · D forward, half of it for causal
// sequences, and 2.5 times that backward; exponentials, maxima and packing are not counted. The limit is a multiply-add loop that touches
// no memory, timed in the same rounds; naive is the reference of weft/kernel/attention.hpp, a plain
// loop over rows. One query against a cache is held against reading as many bytes as its keys and values have, in one stretch.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include <weft/kernel/cpu/attention.hpp>
#include <weft/kernel/cpu/rotary.hpp>

namespace {

using namespace weft;
using namespace weft::kernel;
using Isa = simd::Native;
struct NoProducts {};  // attention multiplies by itself

struct Shape {
  const char* name;
  AttentionSizes sizes;
};
constexpr Shape shapes[] = {
    {"nanogpt_cpu/S64_D32", {12, 64, 64, 4, 4, 32, true}}, {"gpt/S256_D64", {2, 256, 256, 6, 6, 64, true}},
    {"long/S1024_D64", {1, 1024, 1024, 2, 2, 64, true}},   {"grouped/S256_D64", {1, 256, 256, 8, 2, 64, true}},
    {"wide/S256_D128", {1, 256, 256, 4, 4, 128, true}},    {"full/S197_D64", {1, 197, 197, 6, 6, 64, false}},
};
constexpr Shape generation[] = {
    {"decode/keys256_D32", {1, 1, 256, 4, 4, 32, true}},
    {"decode/keys4096_D64", {1, 1, 4096, 6, 6, 64, true}},
    {"decode/keys4096_D64_grouped4", {1, 1, 4096, 8, 2, 64, true}},
    {"decode/keys4096_D64_grouped8", {1, 1, 4096, 8, 1, 64, true}},
};

alignas(64) std::byte scratch_bytes[cpu_scratch_bytes];
constexpr Scratch scratch() { return {scratch_bytes, cpu_scratch_bytes}; }

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Seconds of the fastest of a few calls: other work on the machine can only lengthen one.
template <class Call>
double fastest(Index calls, Call&& call) {
  double best = 1e30;
  for (Index i = 0; i < calls; ++i) {
    const double start = seconds();
    call();
    best = std::min(best, seconds() - start);
  }
  return best;
}

// Independent chains, opaque to the compiler, so that it cannot merge equal ones.
template <class Real>
double peak_gflops() {
  constexpr Index chains = Isa::num_registers >= 32 ? 16 : 12, turns = 20000;
  simd::Vector<Isa, Real> sums[chains] = {}, x = simd::broadcast<Isa>(Real(0.5));
  asm volatile("" : "+v"(x));
  const double start = seconds();
  for (Index turn = 0; turn < turns; ++turn) {
    cpu::unrolled<chains>([&](auto i) WEFT_ALWAYS_INLINE {
      sums[i] += x * x;
      asm volatile("" : "+v"(sums[i]));
    });
  }
  return 2.0 * double(turns * chains * simd::lanes<Isa, Real>) / (seconds() - start) * 1e-9;
}

// Tensors start on a cache line, as in an arena.
template <class Real>
struct LineAllocator {
  using value_type = Real;
  Real* allocate(std::size_t count) { return static_cast<Real*>(::operator new(count * sizeof(Real), std::align_val_t(alignment_bytes))); }
  void deallocate(Real* data, std::size_t) { ::operator delete(data, std::align_val_t(alignment_bytes)); }
  bool operator==(const LineAllocator&) const { return true; }
};

// GB/s of reading the same bytes as one stretch.
template <class Real>
double read_gbytes(const std::vector<Real, LineAllocator<Real>>& from, double bytes) {
  constexpr Index lanes = simd::lanes<Isa, Real>;
  simd::Vector<Isa, Real> sums[4] = {};
  const Index count = std::min(Index(from.size()), Index(bytes / sizeof(Real))) / (4 * lanes) * (4 * lanes);
  const double start = seconds();
  for (Index i = 0; i < count; i += 4 * lanes) {
    for (Index v = 0; v < 4; ++v) sums[v] += simd::load<Isa>(from.data() + i + v * lanes);
  }
  for (auto& sum : sums) asm volatile("" : "+v"(sum));
  return double(count * Index(sizeof(Real))) / (seconds() - start) * 1e-9;
}

// q | k | v in one row, as the projection leaves them.
template <class Real>
struct Data {
  AttentionSizes sizes;
  Index width, kv_offset, v_offset, y_stride, kv_batch;
  Real scale;
  std::vector<Real, LineAllocator<Real>> x, y, lse, dy, dx;

  explicit Data(AttentionSizes s) : sizes(s) {
    kv_offset = s.heads * s.head_size, v_offset = kv_offset + s.key_value_heads * s.head_size, width = v_offset + v_offset - kv_offset;
    y_stride = kv_offset, kv_batch = s.keys * width, scale = Real(1 / std::sqrt(double(s.head_size)));
    x.resize(std::size_t(s.batch * s.keys * width + 16)), y.resize(std::size_t(s.batch * s.queries * y_stride + 16));
    lse.resize(std::size_t(s.batch * s.queries * s.heads)), dy = y, dx = x;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = Real(int(i * 7 % 17) - 8) / 8;
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = Real(int(i * 5 % 13) - 6) / 8;
  }
  void naive_forward() {
    kernel::attention_forward(sizes, scale, x.data(), width, x.data() + kv_offset, x.data() + v_offset, width, kv_batch, y.data(), y_stride,
                              lse.data());
  }
  void forward() {
    cpu::attention_forward<NoProducts, Isa>(sizes, scale, x.data(), width, x.data() + kv_offset, x.data() + v_offset, width, kv_batch,
                                            y.data(), y_stride, lse.data(), scratch());
  }
  void naive_backward() {
    kernel::attention_backward(sizes, scale, x.data(), width, x.data() + kv_offset, x.data() + v_offset, width, kv_batch, y.data(),
                               y_stride, lse.data(), dy.data(), y_stride, dx.data(), width, dx.data() + kv_offset, dx.data() + v_offset,
                               width, kv_batch);
  }
  void backward() {
    cpu::attention_backward<NoProducts, Isa>(sizes, scale, x.data(), width, x.data() + kv_offset, x.data() + v_offset, width, kv_batch,
                                             y.data(), y_stride, lse.data(), dy.data(), y_stride, dx.data(), width, dx.data() + kv_offset,
                                             dx.data() + v_offset, width, kv_batch, scratch());
  }
};

double flops_of(const AttentionSizes& s, bool halved) {
  return (halved ? 2.0 : 4.0) * double(s.batch * s.heads * s.queries * s.keys * s.head_size);
}

template <class Real>
void attention(benchmark::State& state, const Shape& shape, bool backward) {
  Data<Real> data(shape.sizes);
  data.forward();
  const double flops = flops_of(shape.sizes, shape.sizes.causal) * (backward ? 2.5 : 1.0);
  const Index repeats = std::max<Index>(8, Index(0.4e9 / flops));
  std::vector<double> times, naive_times, peaks, shares, ratios;
  for (auto round : state) {
    static_cast<void>(round);
    peaks.push_back(peak_gflops<Real>());
    times.push_back(fastest(repeats, [&] { backward ? data.backward() : data.forward(); }));
    naive_times.push_back(fastest(2, [&] { backward ? data.naive_backward() : data.naive_forward(); }));
    shares.push_back(100 * flops / times.back() * 1e-9 / peaks.back()), ratios.push_back(naive_times.back() / times.back());
    state.SetIterationTime(times.back());
  }
  state.counters["GFLOP/s"] = flops / median(times) * 1e-9;
  state.counters["peak_GFLOP/s"] = median(peaks);
  state.counters["%peak"] = median(shares);
  state.counters["naive/tiled"] = median(ratios);
}

template <class Real>
void generate(benchmark::State& state, const Shape& shape) {
  Data<Real> data(shape.sizes);
  const AttentionSizes& s = shape.sizes;
  const double bytes = 2.0 * double(s.batch * s.keys * s.key_value_heads * s.head_size) * double(sizeof(Real));
  std::vector<double> ratios, limits, shares;
  for (auto round : state) {
    static_cast<void>(round);
    limits.push_back(read_gbytes(data.x, bytes));
    const double time = fastest(20, [&] { data.forward(); });
    ratios.push_back(fastest(2, [&] { data.naive_forward(); }) / time);
    shares.push_back(100 * bytes * 1e-9 / time / limits.back());
    state.SetIterationTime(time);
  }
  state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9 * double(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["read_GB/s"] = median(limits);
  state.counters["%read"] = median(shares);
  state.counters["naive/tiled"] = median(ratios);
}

// Bytes: the turned features are read and written once.
template <class Real>
void rotary(benchmark::State& state, Index batch, Index sequence, Index heads, Index head_size) {
  std::vector<Real> x(std::size_t(batch * sequence * heads * head_size), Real(0.5)), other = x;
  std::vector<double> ratios;
  for (auto round : state) {
    static_cast<void>(round);
    const Index stride = heads * head_size;
    const double time = fastest(5, [&] { cpu::rotary_forward<Isa>(batch, sequence, 0, heads, head_size, stride, 10000.0, x.data()); });
    const auto naive = [&] { kernel::rotary_forward(batch, sequence, 0, heads, head_size, stride, 10000.0, other.data()); };
    ratios.push_back(fastest(2, naive) / time);
    state.SetIterationTime(time);
  }
  state.counters["GB/s"] =
      benchmark::Counter(2e-9 * double(x.size() * sizeof(Real)) * double(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["naive/vectorised"] = median(ratios);
}

}  // namespace

int main(int argc, char** argv) {
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(9);
  };
  for (const Shape& shape : shapes) {
    for (const bool backward : {false, true}) {
      const std::string name = std::string(shape.name) + (backward ? "/backward" : "/forward");
      add("float/" + name, [=](benchmark::State& state) { attention<float>(state, shape, backward); });
      add("double/" + name, [=](benchmark::State& state) { attention<double>(state, shape, backward); });
    }
  }
  for (const Shape& shape : generation) {
    add(std::string("float/") + shape.name, [=](benchmark::State& state) { generate<float>(state, shape); });
  }
  add("float/rotary/B12_S64_H8_D32", [](benchmark::State& state) { rotary<float>(state, 12, 64, 8, 32); });
  add("float/rotary/B1_S1024_H12_D64", [](benchmark::State& state) { rotary<float>(state, 1, 1024, 12, 64); });
  benchmark::Initialize(&argc, argv);
  std::printf("isa %s\n", Isa::name);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
