// SPDX-License-Identifier: Apache-2.0
// Matrix products on the shapes of real models: GFLOP/s = 2 m n k / time, in percent of a multiply-add loop that touches no memory and is
// timed in the same rounds, and as a ratio to the best library found at build time. Candidates take turns within each round; of the rounds
// the shortest time counts, for the loop too, so that other work on the machine matters little.
//
// To make the table of relative speeds that a library's policy carries (weft/kernel/<library>/products.hpp) again: run this, and for each
// pair of transposes and each ProductSize take the median over shapes of the printed columns <library>/builtin, in percent. For another
// instruction set than the machine's best, compile with its -m flags and hold the libraries to the same (OPENBLAS_CORETYPE=Haswell,
// DNNL_MAX_CPU_ISA=AVX2).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <weft/kernel/cpu/gemm.hpp>
#include <weft/kernel/cpu/products.hpp>
#if defined(WEFT_HAS_CBLAS)  // the target weft::cblas says so
#include <weft/kernel/cblas/products.hpp>
#endif
#if defined(WEFT_HAS_ONEDNN)
#include <weft/kernel/onednn/products.hpp>
#endif

extern "C" __attribute__((weak)) char* openblas_get_corename(void);

namespace {

using namespace weft;
using namespace weft::kernel;
using Isa = simd::Native;
constexpr auto N = Transpose::no, T = Transpose::yes;

struct Shape {
  const char* name;
  Transpose ta, tb;
  Index m, n, k;
  Index calls = 1;                  // as many as a step makes one after the other, on other data
  Index lda = 0, ldb = 0, ldc = 0;  // 0: as wide as stored
};

constexpr Shape shapes[] = {
    {"gpt/qkv/y", N, T, 768, 384, 128},
    {"gpt/qkv/dx", N, N, 768, 128, 384},
    {"gpt/qkv/dw", T, N, 384, 128, 768},
    {"gpt/proj/y", N, T, 768, 128, 128},
    {"gpt/proj/dx", N, N, 768, 128, 128},
    {"gpt/proj/dw", T, N, 128, 128, 768},
    {"gpt/fc/y", N, T, 768, 512, 128},
    {"gpt/fc/dx", N, N, 768, 128, 512},
    {"gpt/fc/dw", T, N, 512, 128, 768},
    {"gpt/out/y", N, T, 768, 128, 512},
    {"gpt/out/dx", N, N, 768, 512, 128},
    {"gpt/out/dw", T, N, 128, 512, 768},
    {"gpt/head/y", N, T, 768, 65, 128},
    {"gpt/head/dx", N, N, 768, 128, 65},
    {"gpt/head/dw", T, N, 65, 128, 768},
    {"attention/qk", N, T, 64, 64, 32, 48, 384, 384, 64},
    {"attention/pv", N, N, 64, 32, 64, 48, 64, 384, 128},
    {"attention/dv", T, N, 64, 32, 64, 48, 64, 128, 384},
    {"mid/qkv/y", N, T, 4096, 1152, 384},
    {"mid/qkv/dx", N, N, 4096, 384, 1152},
    {"mid/qkv/dw", T, N, 1152, 384, 4096},
    {"mid/proj/y", N, T, 4096, 384, 384},
    {"mid/proj/dw", T, N, 384, 384, 4096},
    {"mid/out/y", N, T, 4096, 384, 1536},
    {"mid/fc/y", N, T, 4096, 1536, 384},
    {"mid/out/dx", N, N, 4096, 1536, 384},
    {"mid/out/dw", T, N, 384, 1536, 4096},
    {"mid/head/y", N, T, 4096, 65, 384},
    {"mlp/1/y", N, T, 256, 512, 784},
    {"mlp/1/dw", T, N, 512, 784, 256},
    {"mlp/2/y", N, T, 256, 512, 512},
    {"mlp/2/dx", N, N, 256, 512, 512},
    {"mlp/2/dw", T, N, 512, 512, 256},
    {"mlp/3/y", N, T, 256, 10, 512},
    {"mlp/3/dx", N, N, 256, 512, 10},
    {"mlp/3/dw", T, N, 10, 512, 256},
    {"cnn/1/y", N, N, 32, 784, 9},
    {"cnn/1/dw", N, T, 32, 9, 784},
    {"cnn/2/y", N, N, 64, 784, 288},
    {"cnn/2/dw", N, T, 64, 288, 784},
    {"cnn/2/dcol", T, N, 288, 784, 64},
    {"cnn/3/y", N, N, 64, 196, 576},
    {"cnn/3/dw", N, T, 64, 576, 196},
    {"cnn/3/dcol", T, N, 576, 196, 64},
    {"decode/qkv/y", N, T, 1, 1152, 384},
    {"decode/out/y", N, T, 8, 384, 1536},
};

alignas(64) std::byte scratch_bytes[cpu_scratch_bytes];

using Gemm = void (*)(Transpose, Transpose, Index, Index, Index, const float*, Index, const float*, Index, bool, float*, Index, Scratch);
using GemmDouble = void (*)(Transpose, Transpose, Index, Index, Index, const double*, Index, const double*, Index, bool, double*, Index,
                            Scratch);
struct Candidate {
  const char* name;
  Gemm run;
  GemmDouble run_double;
  bool library;
};
using Chooser = cpu::Fastest<cpu::Builtin
#ifdef WEFT_HAS_ONEDNN
                             ,
                             cpu::OneDnn
#endif
#ifdef WEFT_HAS_CBLAS
                             ,
                             cpu::Cblas
#endif
                             >;
template <class Policy>
constexpr Candidate candidate(bool library) {
  return {Policy::name, &Policy::template gemm<Isa, float>, &Policy::template gemm<Isa, double>, library};
}
constexpr Candidate candidates[] = {
    candidate<cpu::Builtin>(false),
    candidate<Chooser>(false),
#ifdef WEFT_HAS_CBLAS
    candidate<cpu::Cblas>(true),
#endif
#ifdef WEFT_HAS_ONEDNN
    candidate<cpu::OneDnn>(true),
#endif
};
constexpr std::size_t num_candidates = std::size(candidates);

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// GFLOP/s of 16 independent chains of multiply-adds. The chains are opaque to the compiler, so that it cannot merge equal ones.
template <class Real>
double peak_gflops() {
  using Register = simd::Vector<Isa, Real>;
  constexpr Index chains = Isa::num_registers >= 32 ? 16 : 12, turns = 20000;
  Register sums[chains] = {}, x = simd::broadcast<Isa>(Real(0.5)), y = x;
  cpu::unrolled<chains>([&](auto i) WEFT_ALWAYS_INLINE { asm volatile("" : "+v"(sums[i])); });
  asm volatile("" : "+v"(x), "+v"(y));
  const double start = seconds();
  for (Index turn = 0; turn < turns; ++turn) {
    cpu::unrolled<chains>([&](auto i) WEFT_ALWAYS_INLINE {
      sums[i] += x * y;
      asm volatile("" : "+v"(sums[i]));
    });
  }
  const double time = seconds() - start;
  return 2.0 * double(turns * chains * simd::lanes<Isa, Real>) / time * 1e-9;
}

template <class Real>
void products(benchmark::State& state, const Shape& shape) {
  const Index rows_a = shape.ta == N ? shape.m : shape.k, rows_b = shape.tb == N ? shape.k : shape.n;
  const Index lda = shape.lda ? shape.lda : shape.ta == N ? shape.k : shape.m;
  const Index ldb = shape.ldb ? shape.ldb : shape.tb == N ? shape.n : shape.k;
  const Index ldc = shape.ldc ? shape.ldc : shape.n;
  const auto make = [&](Index rows, Index stride) {
    std::vector<Real> values(std::size_t(rows * stride * shape.calls + 16));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = Real(int(i * 7 % 17) - 8) / 16;
    return values;
  };
  const auto aligned = [](std::vector<Real>& values) {
    return reinterpret_cast<Real*>((reinterpret_cast<std::uintptr_t>(values.data()) + 63) / 64 * 64);
  };
  std::vector<Real> a_store = make(rows_a, lda), b_store = make(rows_b, ldb), c_store = make(shape.m, ldc);
  Real *const a = aligned(a_store), *const b = aligned(b_store), *const c = aligned(c_store);
  const bool accumulate = shape.ta == T;  // weight gradients are added to
  const double flops = 2.0 * double(shape.m) * double(shape.n) * double(shape.k) * double(shape.calls);
  const Index repeats = std::max<Index>(1, Index(1e-3 * 100e9 / flops));

  double shortest[num_candidates], peak = 0;
  std::fill_n(shortest, num_candidates, 1e30);
  std::size_t first = 0;
  for (auto round : state) {
    static_cast<void>(round);
    peak = std::max(peak, peak_gflops<Real>());
    double whole = 0;
    for (std::size_t turn = 0; turn < num_candidates; ++turn) {
      const std::size_t which = (first + turn) % num_candidates;
      const auto once = [&] {
        for (Index call = 0; call < shape.calls; ++call) {
          const Real *const ac = a + call * rows_a * lda, *const bc = b + call * rows_b * ldb;
          Real* const cc = c + call * shape.m * ldc;
          const Scratch scratch{scratch_bytes, cpu_scratch_bytes};
          if constexpr (std::is_same_v<Real, float>) {
            candidates[which].run(shape.ta, shape.tb, shape.m, shape.n, shape.k, ac, lda, bc, ldb, accumulate, cc, ldc, scratch);
          } else {
            candidates[which].run_double(shape.ta, shape.tb, shape.m, shape.n, shape.k, ac, lda, bc, ldb, accumulate, cc, ldc, scratch);
          }
        }
      };
      once();
      const double start = seconds();
      for (Index i = 0; i < repeats; ++i) once();
      const double time = (seconds() - start) / double(repeats);
      shortest[which] = std::min(shortest[which], time);
      whole += time;
    }
    ++first;
    state.SetIterationTime(whole);
  }
  double best_library = 1e30;
  for (std::size_t i = 0; i < num_candidates; ++i) {
    if (candidates[i].library) best_library = std::min(best_library, shortest[i]);
  }
  state.counters["peak_GFLOP/s"] = peak;
  state.counters["builtin_%peak"] = 100 * flops / shortest[0] * 1e-9 / peak;
  for (std::size_t i = 0; i < num_candidates; ++i) {
    const std::string name = candidates[i].name;
    state.counters[name + "_GFLOP/s"] = flops / shortest[i] * 1e-9;
    if (candidates[i].library)
      state.counters[name + "/builtin"] = shortest[0] / shortest[i];
    else if (best_library < 1e30)
      state.counters[name + "/best_library"] = best_library / shortest[i];
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const Shape& shape : shapes) {
    benchmark::RegisterBenchmark((std::string("float/") + shape.name).c_str(), products<float>, shape)->UseManualTime()->Iterations(15);
    benchmark::RegisterBenchmark((std::string("double/") + shape.name).c_str(), products<double>, shape)->UseManualTime()->Iterations(15);
  }
  benchmark::Initialize(&argc, argv);
  std::printf("isa %s, OpenBLAS core %s\n", Isa::name, openblas_get_corename ? openblas_get_corename() : "none");
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
