// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft {

// The kernel set of an executor: KernelsOf<Executor>::type. An executor of one's own specialises this.
template <class Executor>
struct KernelsOf;

}  // namespace weft
