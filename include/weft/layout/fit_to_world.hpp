// SPDX-License-Identifier: Apache-2.0
// Meshes and worlds: an axis that was left open gets its extent from the number of ranks, and what does not fit is said with all numbers
// and the nearest layouts that do.
#pragma once

#include <string>

#include "weft/base/error.hpp"
#include "weft/base/text.hpp"
#include "weft/layout/axes.hpp"

namespace weft {

// Divisors of a number beside another one: the largest below it and the smallest above it; 0: none.
struct NearestDivisors {
  Index below = 0, above = 0;
};
constexpr NearestDivisors nearest_divisors(Index of, Index beside) {
  NearestDivisors out;
  for (Index d = beside - 1; d >= 1 && out.below == 0; --d)
    if (of % d == 0) out.below = d;
  for (Index d = beside < 1 ? 1 : beside + 1; d <= of && out.above == 0; ++d)
    if (of % d == 0) out.above = d;
  return out;
}
// "2 or 4"
inline std::string either_text(Index below, Index above) {
  if (below == 0 || above == 0) return below + above == 0 ? std::string("none") : std::to_string(below + above);
  return text_of(below, " or ", above);
}

// "data 2 x tensor 3"
inline std::string layout_text(const AxisList& axes) {
  std::string text;
  for (int i = 0; i < axes.size(); ++i) {
    append_text(text, text_of(i ? " x " : "", axes[i].name, " "));
    append_text(text, axes[i].extent == rest_of_world ? std::string("open") : std::to_string(axes[i].extent));
  }
  return text.empty() ? "no axes" : text;
}

// The extent that the open axis of a list gets, if there is one (else 1); 0 if the list does not fit the world.
constexpr Index open_extent(const AxisList& axes, Index world) {
  Index fixed = 1;
  for (int i = 0; i < axes.size(); ++i)
    if (axes[i].extent != rest_of_world) {
      if (axes[i].extent < 1 || axes[i].extent > world) return 0;
      fixed *= axes[i].extent;
    }
  if (world < 1 || axes.num_open() > 1) return 0;
  return axes.num_open() == 1 ? (world % fixed == 0 ? world / fixed : 0) : fixed == world ? 1 : 0;
}

// "world 8, data open x tensor 3, nearest: tensor 2 or 4, or a world of 6 or 9": what would fit if one thing were changed.
inline std::string world_text(const AxisList& axes, Index world) {
  const bool open = axes.num_open() > 0;
  std::string text = text_of("world ", world, ", ", layout_text(axes)), nearest;
  Index fixed = 1;
  for (int i = 0; i < axes.size(); ++i)
    if (axes[i].extent != rest_of_world) fixed *= axes[i].extent;
  if (!open) append_text(text, text_of(" = ", fixed));
  if (world < 1 || fixed < 1) return text_of(text, "; all are at least 1");
  for (int i = 0; i < axes.size(); ++i) {
    if (axes[i].extent == rest_of_world || world % (fixed / axes[i].extent) != 0) continue;
    const Index left = world / (fixed / axes[i].extent);  // for this axis and the open one
    const NearestDivisors divisors = nearest_divisors(left, axes[i].extent);
    append_text(nearest, text_of(axes[i].name, " ", open ? either_text(divisors.below, divisors.above) : std::to_string(left), ", "));
  }
  const Index below = world / fixed * fixed;
  return text_of(text, ", nearest: ", nearest, nearest.empty() ? "" : "or ", "a world of ",
                 open ? either_text(below, below + fixed) : std::to_string(fixed));
}

// The mesh for a world: its open axis gets the ranks that the others leave. Errors: weft[mesh.world], weft[mesh.open_twice].
template <class... Axes>
constexpr Mesh<Axes...> fit_to_world(const Mesh<Axes...>& mesh, Index world) {
  const AxisList axes = axes_of(mesh);
  if (axes.num_open() > 1)
    throw Error("mesh.open_twice", text_of("one axis gets the rest of the world; give the others an extent (", layout_text(axes), ")"));
  const Index extent = open_extent(axes, world);
  if (extent == 0)
    throw Error("mesh.world", text_of("the extents of a mesh's axes multiply to the number of ranks; change one of them, or launch as many "
                                      "ranks (",
                                      world_text(axes, world), ")"));
  return mesh.with_sizes({extent, extent, extent});
}

}  // namespace weft
