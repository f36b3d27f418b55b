// SPDX-License-Identifier: Apache-2.0
// The plan's bytes against the process: what training holds is what was planned, within 10 %.
#include <weft/run/process_memory.hpp>

#include "run/engine_cases.hpp"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

using namespace weft;
using namespace weft::test;

TEST_CASE("memory_of_training_is_what_the_plan_says") {
  using Model = Gpt<GptOptions{.vocabulary = 65, .sequence = 64, .width = 128, .heads = 4, .layers = 4}>;
  if (resident_bytes() == 0) return;  // the system does not tell
#ifdef __GLIBC__
  malloc_trim(0);  // what tests before this one have given back must not count as free room
#endif
  const Index before = resident_bytes();
  Index during = 0, planned = 0, allocated = 0;
  with_engines<Model, SoftmaxCrossEntropy<>, float>({.ranks = 2}, {.global = 12, .micro = 6, .sequence = 64}, AdamW{}, {},
                                                    [&](auto& engine) {
                                                      for (int step = 0; step < 2; ++step)
                                                        engine.step(
                                                            1,
                                                            [](auto& micro) {
                                                              for (int i = 0; i < 384; ++i)
                                                                micro.tokens()[i] = i % 65, micro.integer_targets()[i] = (i + 1) % 65;
                                                            },
                                                            1e-3);
                                                      engine.communicator().barrier();
                                                      if (engine.communicator().rank() == 0) {
                                                        during = resident_bytes();
                                                        planned = 2 * engine.plan().memory.total();
                                                        allocated = 2 * engine.arenas().bytes();
                                                      }
                                                      engine.communicator().barrier();
                                                    });
  CHECK(allocated == planned);  // exactly
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(double(during - before) < 1.1 * double(planned));
  CHECK(double(during - before) > 0.8 * double(planned));
#else
  (void)before, (void)during;  // sanitizers hold memory of their own
#endif
}
