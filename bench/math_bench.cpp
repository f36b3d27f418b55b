// SPDX-License-Identifier: Apache-2.0
// Elementary functions, activations, softmax, layer norm and dropout against plain loops over std:: functions, in Gelem/s = elements /
// time.
//
// Columns: weft and std in Gelem/s, ratio = weft / std, and copy_percent: the speed in percent of a memcpy of the same bytes (4 bytes read
// and 4 written an element), which no kernel of one input and one output can pass. The three take turns within each round, so that a busy
// machine slows all of them; the ratio is the median over rounds of ratios within a round. 16384 floats: in the second-level cache.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <weft/kernel/cpu/dropout.hpp>
#include <weft/kernel/cpu/gelu.hpp>
#include <weft/kernel/cpu/layer_norm.hpp>
#include <weft/kernel/cpu/silu.hpp>
#include <weft/kernel/cpu/softmax_cross_entropy.hpp>
#include <weft/kernel/gelu.hpp>
#include <weft/kernel/silu.hpp>

namespace {

using namespace weft;
using Isa = simd::Native;
constexpr Index n = 16384;

struct Arrays {
  std::vector<float> x = std::vector<float>(n), y = x, dy = x, gain = x, shift = x, mean = x, rstd = x;
  std::vector<std::int32_t> targets = std::vector<std::int32_t>(n, 3);

  Arrays() {
    for (Index i = 0; i < n; ++i) {
      x[std::size_t(i)] = 4 * std::sin(float(i) * 12.9898f), dy[std::size_t(i)] = std::cos(float(i));
      gain[std::size_t(i)] = 1, shift[std::size_t(i)] = 0, rstd[std::size_t(i)] = 1;
    }
  }
};

template <class Work>
double seconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  benchmark::ClobberMemory();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// ours(Arrays&) and plain(Arrays&) each handle n elements; a round is `repeats` of ours, one of the plain loop, `repeats` of the copy.
template <class Ours, class Plain>
void compare(benchmark::State& state, Ours ours, Plain plain) {
  Arrays arrays;
  constexpr int repeats = 8;
  std::vector<double> fast, slow, ratio, copy_percent;
  ours(arrays);
  plain(arrays);
  for (auto _ : state) {
    const double a = seconds_of([&] {
                       for (int i = 0; i < repeats; ++i) ours(arrays), benchmark::ClobberMemory();
                     }) /
                     repeats;
    const double b = seconds_of([&] { plain(arrays); });
    const double c = seconds_of([&] {
                       for (int i = 0; i < repeats; ++i)
                         std::memcpy(arrays.y.data(), arrays.x.data(), n * sizeof(float)), benchmark::ClobberMemory();
                     }) /
                     repeats;
    fast.push_back(a), slow.push_back(b), ratio.push_back(b / a), copy_percent.push_back(100 * c / a);
    state.SetIterationTime(a);
  }
  state.counters["weft"] = double(n) / median(fast) / 1e9;
  state.counters["std"] = double(n) / median(slow) / 1e9;
  state.counters["ratio"] = median(ratio);
  state.counters["copy_percent"] = median(copy_percent);
}

template <class Function>
auto flat(Function function) {
  return [function](Arrays& a) { kernel::cpu::map<Isa>(n, static_cast<const float*>(a.x.data()), a.y.data(), function); };
}
template <class Function>
auto loop(Function function) {
  return [function](Arrays& a) {
    for (std::size_t i = 0; i < std::size_t(n); ++i) a.y[i] = function(a.x[i]);
  };
}

void exp(benchmark::State& state) {
  compare(state, flat([](auto v) { return simd::exp<Isa, float>(v); }), loop([](float v) { return std::exp(v); }));
}
void log(benchmark::State& state) {
  compare(state, flat([](auto v) { return simd::log<Isa, float>(v * v); }), loop([](float v) { return std::log(v * v); }));
}
void tanh(benchmark::State& state) {
  compare(state, flat([](auto v) { return simd::tanh<Isa, float>(v); }), loop([](float v) { return std::tanh(v); }));
}
void erf(benchmark::State& state) {
  compare(state, flat([](auto v) { return simd::erf<Isa, float>(v); }), loop([](float v) { return std::erf(v); }));
}
void silu(benchmark::State& state) {
  compare(
      state, [](Arrays& a) { kernel::cpu::silu_forward<Isa>(n, a.x.data(), a.y.data()); },
      [](Arrays& a) { kernel::silu_forward(n, a.x.data(), a.y.data()); });
}
void gelu_tanh(benchmark::State& state) {
  compare(
      state, [](Arrays& a) { kernel::cpu::gelu_tanh_forward<Isa>(n, a.x.data(), a.y.data()); },
      [](Arrays& a) { kernel::gelu_tanh_forward(n, a.x.data(), a.y.data()); });
}
void gelu_tanh_backward(benchmark::State& state) {
  compare(
      state, [](Arrays& a) { kernel::cpu::gelu_tanh_backward<Isa>(n, a.x.data(), a.dy.data(), a.y.data()); },
      [](Arrays& a) { kernel::gelu_tanh_backward(n, a.x.data(), a.dy.data(), a.y.data()); });
}
void gelu_erf(benchmark::State& state) {
  compare(
      state, [](Arrays& a) { kernel::cpu::gelu_erf_forward<Isa>(n, a.x.data(), a.y.data()); },
      [](Arrays& a) { kernel::gelu_erf_forward(n, a.x.data(), a.y.data()); });
}
void gelu_erf_backward(benchmark::State& state) {
  compare(
      state, [](Arrays& a) { kernel::cpu::gelu_erf_backward<Isa>(n, a.x.data(), a.dy.data(), a.y.data()); },
      [](Arrays& a) { kernel::gelu_erf_backward(n, a.x.data(), a.dy.data(), a.y.data()); });
}

// The loss and its gradient. The plain loop is softmax as one would write it in float: largest, exp and sum, scale.
void softmax(benchmark::State& state) {
  const Index classes = state.range(0), rows = n / classes;
  compare(
      state,
      [=](Arrays& a) {
        benchmark::DoNotOptimize(kernel::cpu::softmax_cross_entropy<Isa>(rows, classes, static_cast<const float*>(a.x.data()),
                                                                         a.targets.data(), -1, 0.0f, 1.0f, a.y.data()));
      },
      [=](Arrays& a) {
        double loss = 0;
        for (Index r = 0; r < rows; ++r) {
          const float* row = a.x.data() + r * classes;
          float* out = a.y.data() + r * classes;
          float most = row[0], total = 0;
          for (Index c = 1; c < classes; ++c) most = std::max(most, row[c]);
          for (Index c = 0; c < classes; ++c) total += out[c] = std::exp(row[c] - most);
          for (Index c = 0; c < classes; ++c) out[c] /= total;
          loss -= std::log(double(out[a.targets[std::size_t(r)]]));
          out[a.targets[std::size_t(r)]] -= 1;
        }
        benchmark::DoNotOptimize(loss);
      });
}

void layer_norm(benchmark::State& state) {
  const Index width = state.range(0), rows = n / width;
  compare(
      state,
      [=](Arrays& a) {
        kernel::cpu::layer_norm_forward<Isa>(rows, width, 1e-5f, a.x.data(), a.gain.data(), a.shift.data(), a.y.data(), a.mean.data(),
                                             a.rstd.data());
      },
      [=](Arrays& a) {
        for (Index r = 0; r < rows; ++r) {
          const float* row = a.x.data() + r * width;
          float sum = 0, squares = 0;
          for (Index c = 0; c < width; ++c) sum += row[c];
          const float mean = sum / float(width);
          for (Index c = 0; c < width; ++c) squares += (row[c] - mean) * (row[c] - mean);
          const float rstd = 1 / std::sqrt(squares / float(width) + 1e-5f);
          for (Index c = 0; c < width; ++c)
            a.y[std::size_t(r * width + c)] = (row[c] - mean) * rstd * a.gain[std::size_t(c)] + a.shift[std::size_t(c)];
        }
      });
}
void layer_norm_backward(benchmark::State& state) {
  const Index width = state.range(0), rows = n / width;
  compare(
      state,
      [=](Arrays& a) {
        kernel::cpu::layer_norm_backward<Isa>(rows, width, a.x.data(), a.gain.data(), a.mean.data(), a.rstd.data(), a.dy.data(), a.y.data(),
                                              a.shift.data(), a.shift.data() + width, false);
      },
      [=](Arrays& a) {
        for (Index r = 0; r < rows; ++r) {
          const float *row = a.x.data() + r * width, *gradient = a.dy.data() + r * width, mean = a.mean[std::size_t(r)],
                      rstd = a.rstd[std::size_t(r)];
          float sum = 0, products = 0;
          for (Index c = 0; c < width; ++c) {
            const float g = gradient[c] * a.gain[std::size_t(c)];
            sum += g, products += g * (row[c] - mean) * rstd;
          }
          for (Index c = 0; c < width; ++c) {
            const float normal = (row[c] - mean) * rstd;
            a.shift[std::size_t(c)] += gradient[c] * normal;
            a.shift[std::size_t(width + c)] += gradient[c];
            a.y[std::size_t(r * width + c)] =
                rstd * (gradient[c] * a.gain[std::size_t(c)] - sum / float(width) - normal * products / float(width));
          }
        }
      });
}

// The plain loop draws from std::mt19937, as one would without counters.
void dropout(benchmark::State& state) {
  compare(
      state,
      [](Arrays& a) {
        kernel::cpu::dropout_forward<Isa>(Index(1), n, Index(0), 0.2, random::Stream{.seed = 1, .purpose = random::Purpose::dropout},
                                          a.x.data(), a.y.data());
      },
      [generator = std::mt19937(1)](Arrays& a) mutable {
        for (std::size_t i = 0; i < std::size_t(n); ++i) a.y[i] = generator() >= 858993459u ? a.x[i] * 1.25f : 0.0f;
      });
}

}  // namespace

BENCHMARK(exp)->UseManualTime();
BENCHMARK(log)->UseManualTime();
BENCHMARK(tanh)->UseManualTime();
BENCHMARK(erf)->UseManualTime();
BENCHMARK(silu)->UseManualTime();
BENCHMARK(gelu_tanh)->UseManualTime();
BENCHMARK(gelu_tanh_backward)->UseManualTime();
BENCHMARK(gelu_erf)->UseManualTime();
BENCHMARK(gelu_erf_backward)->UseManualTime();
BENCHMARK(softmax)->UseManualTime()->Arg(64)->Arg(65)->Arg(1024);
BENCHMARK(layer_norm)->UseManualTime()->Arg(128)->Arg(384)->Arg(1024);
BENCHMARK(layer_norm_backward)->UseManualTime()->Arg(128)->Arg(384)->Arg(1024);
BENCHMARK(dropout)->UseManualTime();
BENCHMARK_MAIN();
