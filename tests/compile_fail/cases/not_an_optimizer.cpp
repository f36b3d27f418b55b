// SPDX-License-Identifier: Apache-2.0
// id: optim.states
// A rule that does not say how many numbers it keeps of a parameter.
#include <weft/optim/optim.hpp>

struct Rule {
  static constexpr const char* name = "rule";
  static constexpr int version = 1;
#ifdef WEFT_CONTROL
  static constexpr weft::Index num_states = 0;
#endif
  double rate = 1, decay = 0;
  constexpr bool decays(bool weight) const { return weight; }
  constexpr const char* fault() const { return nullptr; }
  template <class Isa, class Real>
  void update(weft::Index, Real*, const Real*, Real* const*, double, const weft::UpdateStep&) const {}
};
static_assert(weft::explain_optimizer<Rule>() || true, "said by the function itself");
int main() { return 0; }
