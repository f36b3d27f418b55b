// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

#include "weft/plan/plan_data.hpp"

namespace weft {

// visit(row, class) for the class with the largest output in each of the rows that engine.predict gave, the first of equal ones; also where
// the ranks of a tensor group have slices of the classes: on all of them.
// Communication: there, two all-reduces of a double a row, by all ranks of the group. Memory: the loss's.
template <class EngineType, class Visit>
void for_each_largest_class(EngineType& engine, const typename EngineType::Real* output, Index rows, Visit&& visit) {
  const auto& plan = engine.plan();
  const Index own = plan.graph.output.elems();
  if (!plan.divides_classes()) {
    for (Index r = 0; r < rows; ++r) visit(r, Index(std::max_element(output + r * own, output + (r + 1) * own) - (output + r * own)));
    return;
  }
  auto& group = engine.state().groups[GroupKind::tensor];
  const Index first = engine.place().tensor * own, count = std::clamp<Index>(plan.graph.whole_output.elems() - first, 0, own);
  double *largest = engine.arenas().loss.template as<double>(), *classes = largest + rows;  // (rows) each
  const auto own_largest = [&](Index r) { return std::max_element(output + r * own, output + r * own + count); };
  for (Index r = 0; r < rows; ++r) largest[r] = count > 0 ? double(*own_largest(r)) : -std::numeric_limits<double>::infinity();
  group.all_reduce(largest, rows, Reduction::maximum);
  for (Index r = 0; r < rows; ++r) {
    const bool here = count > 0 && double(*own_largest(r)) == largest[r];
    classes[r] = here ? double(first + (own_largest(r) - (output + r * own))) : std::numeric_limits<double>::infinity();
  }
  group.all_reduce(classes, rows, Reduction::minimum);
  for (Index r = 0; r < rows; ++r)
    visit(r, classes[r] < double(plan.graph.whole_output.elems()) ? Index(classes[r]) : Index(-1));  // NaN: none
}

}  // namespace weft
