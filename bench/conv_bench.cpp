// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling and batch norm on the layers of a small image network (grey 28×28 images, 3×3 kernels, padding 1), float, one core.
//
// Convolutions: GFLOP/s = 2·B·K·out_plane·C/groups·kernel_height·kernel_width / time, in percent of a multiply-add loop that touches no
// memory. Pooling and batch norm: GB/s = tensors read and written once / time, in percent of a memcpy of as many bytes. The limit is timed
// in turns with the kernel, within the same iterations, so that a busy machine slows both.
#include <benchmark/benchmark.h>

#include <time.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <weft/kernel/cpu/batch_norm2d.hpp>
#include <weft/kernel/cpu/conv2d.hpp>
#include <weft/kernel/cpu/gemm.hpp>
#include <weft/kernel/cpu/pool2d.hpp>

namespace {

using namespace weft;
using Isa = simd::Native;
using Products = kernel::cpu::Builtin;

constexpr Index images = 64;
struct Line {
  alignas(alignment_bytes) std::byte bytes[alignment_bytes];
};

// Memory of a tensor, aligned as an arena's.
class Tensor {
 public:
  explicit Tensor(Index elems) : lines_(new Line[std::size_t(elems * 4 / alignment_bytes + 1)]), elems_(elems) {
    for (Index i = 0; i < elems; ++i) data()[i] = float((i * 7919) % 1009) / 1009.0f - 0.5f;
  }
  float* data() { return reinterpret_cast<float*>(lines_.get()); }
  Index elems() const { return elems_; }

 private:
  std::unique_ptr<Line[]> lines_;
  Index elems_;
};

const std::unique_ptr<Line[]> arena(new Line[kernel::cpu_scratch_bytes / alignment_bytes]);
const kernel::Scratch scratch{arena[0].bytes, kernel::cpu_scratch_bytes};

// Of this thread on a core: what other programs take of a busy machine does not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// `rounds` times 12 independent multiply-adds on whole registers; returns the flops. The sums are opaque, so that the compiler merges none.
double multiply_add(Index rounds) {
  simd::Vector<Isa, float> sums[12] = {};
  auto factor = simd::broadcast<Isa>(0.999f), addend = simd::broadcast<Isa>(0.001f);
  for (Index i = 0; i < rounds; ++i) {
    kernel::cpu::unrolled<12>([&](auto q) WEFT_ALWAYS_INLINE {
      sums[q] = sums[q] * factor + addend;
#if defined(__x86_64__)
      asm volatile("" : "+x"(sums[q]));
#endif
    });
  }
  auto total = sums[0];
  kernel::cpu::unrolled<11>([&](auto q) WEFT_ALWAYS_INLINE { total += sums[q + 1]; });
  float kept = simd::sum<Isa, float>(total);
  benchmark::DoNotOptimize(kept);
  return double(rounds) * 12 * 2 * double(simd::lanes<Isa, float>);
}

// Kernel and limit in turns. work: flops or bytes of one kernel call; limit(): does as much of its own as takes about as long, returns it.
template <class Kernel, class Limit>
void measure(benchmark::State& state, const char* unit, double work, Kernel&& kernel, Limit&& limit) {
  double kernel_seconds = 0, limit_seconds = 0, limit_work = 0, calls = 0;
  kernel();
  for (auto _ : state) {
    const double start = cpu_seconds();
    kernel();
    const double between = cpu_seconds();
    limit_work += limit();
    kernel_seconds += between - start, limit_seconds += cpu_seconds() - between, ++calls;
    state.SetIterationTime(between - start);
  }
  const double rate = work * calls / kernel_seconds / 1e9, limit_rate = limit_work / limit_seconds / 1e9;
  state.counters[unit] = rate;
  state.counters["limit"] = limit_rate;
  state.counters["percent"] = 100 * rate / limit_rate;
  state.counters["us_image"] = kernel_seconds / calls / double(images) * 1e6;
}

enum class Pass { forward, backward_input, backward_weight };

void convolution(benchmark::State& state, Conv2dSizes s, Pass pass) {
  Tensor x(images * s.in_channels * s.in_plane()), y(images * s.out_channels * s.out_plane()), weight(s.out_channels * s.patch()),
      bias(s.out_channels);
  Tensor dweight(weight.elems()), dbias(bias.elems());
  const double flops = 2.0 * double(images * s.out_channels * s.out_plane() * s.patch());
  measure(
      state, "GFLOP/s", flops,
      [&] {
        using namespace kernel::cpu;
        if (pass == Pass::forward) conv2d_forward<Products, Isa>(images, s, x.data(), weight.data(), bias.data(), y.data(), scratch);
        if (pass == Pass::backward_input) conv2d_backward_input<Products, Isa>(images, s, y.data(), weight.data(), x.data(), scratch);
        if (pass == Pass::backward_weight)
          conv2d_backward_weight<Products, Isa>(images, s, x.data(), y.data(), dweight.data(), dbias.data(), scratch);
        benchmark::ClobberMemory();
      },
      [&] { return multiply_add(Index(flops / 12 / 2 / double(simd::lanes<Isa, float>) / 2)); });
}

template <class Kernel>
void memory_bound(benchmark::State& state, double bytes, Kernel&& kernel) {
  Tensor from(Index(bytes / 8)), to(Index(bytes / 8));
  measure(
      state, "GB/s", bytes, [&] { kernel(), benchmark::ClobberMemory(); },
      [&] {
        std::memcpy(to.data(), from.data(), std::size_t(from.elems()) * 4);
        benchmark::ClobberMemory();
        return double(from.elems()) * 8;
      });
}

constexpr Index channels = 32, plane = 28 * 28, elems = images * channels * plane;
constexpr Pool2dSizes pool{channels, 28, 28, 2, 2, 0};

void max_pool_forward(benchmark::State& state) {
  Tensor x(elems), y(elems / 4);
  std::vector<std::int32_t> argmax(std::size_t(elems / 4));
  memory_bound(state, 4.0 * double(elems) * 1.5,
               [&] { kernel::cpu::max_pool2d_forward<Isa>(images, pool, x.data(), y.data(), argmax.data()); });
}
void max_pool_backward(benchmark::State& state) {
  Tensor x(elems), y(elems / 4);
  std::vector<std::int32_t> argmax(std::size_t(elems / 4));
  kernel::cpu::max_pool2d_forward<Isa>(images, pool, x.data(), y.data(), argmax.data());
  memory_bound(state, 4.0 * double(elems) * 1.5,
               [&] { kernel::cpu::max_pool2d_backward<Isa>(images, pool, argmax.data(), y.data(), x.data()); });
}
void average_pool_forward(benchmark::State& state) {
  Tensor x(elems), y(elems / 4);
  memory_bound(state, 4.0 * double(elems) * 1.25, [&] { kernel::cpu::average_pool2d_forward<Isa>(images, pool, x.data(), y.data()); });
}
void average_pool_backward(benchmark::State& state) {
  Tensor x(elems), y(elems / 4);
  memory_bound(state, 4.0 * double(elems) * 1.25, [&] { kernel::cpu::average_pool2d_backward<Isa>(images, pool, y.data(), x.data()); });
}

void batch_norm_statistics(benchmark::State& state) {
  Tensor x(elems);
  std::vector<double> sums(2 * channels);
  memory_bound(state, 4.0 * double(elems),
               [&] { kernel::cpu::batch_norm2d_statistics<Isa>(images, channels, plane, x.data(), sums.data()); });
}
void batch_norm_forward(benchmark::State& state) {
  Tensor x(elems), y(elems), c(channels);
  memory_bound(state, 8.0 * double(elems), [&] {
    kernel::cpu::batch_norm2d_forward<Isa>(images, channels, plane, x.data(), c.data(), c.data(), c.data(), c.data(), y.data());
  });
}
void batch_norm_backward_statistics(benchmark::State& state) {
  Tensor x(elems), dy(elems), c(channels), dgain(channels), dshift(channels);
  std::vector<double> sums(2 * channels);
  memory_bound(state, 8.0 * double(elems), [&] {
    kernel::cpu::batch_norm2d_backward_statistics<Isa>(images, channels, plane, x.data(), c.data(), c.data(), dy.data(), sums.data(),
                                                       dgain.data(), dshift.data());
  });
}
void batch_norm_backward(benchmark::State& state) {
  Tensor x(elems), dy(elems), dx(elems), c(channels);
  const std::vector<double> sums(2 * channels, 1.0);
  memory_bound(state, 12.0 * double(elems), [&] {
    kernel::cpu::batch_norm2d_backward<Isa>(images, channels, plane, x.data(), c.data(), c.data(), c.data(), dy.data(), sums.data(),
                                            double(images * plane), dx.data());
  });
}

constexpr Conv2dSizes grey_28{1, 32, 28, 28, 3, 3, 1, 1, 1, 1}, middle_28{32, 64, 28, 28, 3, 3, 1, 1, 1, 1},
    middle_14{32, 64, 14, 14, 3, 3, 1, 1, 1, 1}, unpadded_13{32, 64, 13, 13, 3, 3, 1, 0, 1, 1},
    strided_28{32, 64, 28, 28, 3, 3, 2, 1, 1, 1}, pointwise_28{32, 64, 28, 28, 1, 1, 1, 0, 1, 1},
    depthwise_28{32, 32, 28, 28, 3, 3, 1, 1, 1, 32};

}  // namespace

int main(int argc, char** argv) {
  const std::pair<const char*, Conv2dSizes> layers[] = {{"1to32_28", grey_28},
                                                        {"32to64_28", middle_28},
                                                        {"32to64_14", middle_14},
                                                        {"32to64_13_unpadded", unpadded_13},
                                                        {"32to64_28_stride2", strided_28},
                                                        {"pointwise_28", pointwise_28},
                                                        {"depthwise_28", depthwise_28}};
  const std::pair<const char*, Pass> passes[] = {
      {"/forward", Pass::forward}, {"/backward_input", Pass::backward_input}, {"/backward_weight", Pass::backward_weight}};
  for (const auto& [layer, sizes] : layers) {
    for (const auto& [name, pass] : passes)
      benchmark::RegisterBenchmark((std::string("conv2d/") + layer + name).c_str(), convolution, sizes, pass)->UseManualTime();
  }
  const std::pair<const char*, void (*)(benchmark::State&)> others[] = {
      {"max_pool2d/forward", max_pool_forward},
      {"max_pool2d/backward", max_pool_backward},
      {"average_pool2d/forward", average_pool_forward},
      {"average_pool2d/backward", average_pool_backward},
      {"batch_norm2d/statistics", batch_norm_statistics},
      {"batch_norm2d/forward", batch_norm_forward},
      {"batch_norm2d/backward_statistics", batch_norm_backward_statistics},
      {"batch_norm2d/backward", batch_norm_backward}};
  for (const auto& [name, function] : others) benchmark::RegisterBenchmark(name, function)->UseManualTime();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
