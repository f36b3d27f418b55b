// SPDX-License-Identifier: Apache-2.0
// Trains the matrix's model under one strategy. What depends on types is compiled once a (element type, tensor degree): see
// engines_f64.cpp.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "matrix/cells.hpp"

namespace weft::test {

// What training gave, as rank 0 saw it, of the whole model.
struct Trained {
  std::vector<double> losses, norms;
  struct Tensor {
    std::string path;
    std::vector<double> data;
  };
  std::vector<Tensor> gradients, parameters, first_moments;  // gradients: of every step, one after the other
  struct Used {
    Index measured = 0, planned = 0;  // bytes
  };
  std::vector<std::array<Used, 6>> memory;  // within a step, by stage and arena
  std::string refused{};                    // the id of the error, if the plan was refused
};

// 24 heads, so that 2, 3, 4 and 8 divide them; 16 blocks, so that 8 stages of two chunks have some; a vocabulary that nothing divides.
inline constexpr Index matrix_sequence = 3, matrix_steps = 2;

template <class Real>
Trained run_cell(const Cell& cell);
template <>
Trained run_cell<double>(const Cell& cell);
template <>
Trained run_cell<float>(const Cell& cell);

}  // namespace weft::test
