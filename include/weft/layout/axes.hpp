// SPDX-License-Identifier: Apache-2.0
// A mesh as plain data: its axes in order, and where a rank stands by what the axes divide. Axes with the same role count as one.
#pragma once

#include "weft/base/fixed_vector.hpp"
#include "weft/layout/mesh.hpp"

namespace weft {

// Where a rank stands: which replica of the model it works for, which part of the layers, which part of the features.
struct RankPlace {
  Index data = 0, stage = 0, tensor = 0;
  bool operator==(const RankPlace&) const = default;
};

struct AxisData {
  Role role = Role::batch;
  Index extent = 1;
  const char* name = "";  // for messages
  constexpr bool operator==(const AxisData& other) const { return role == other.role && extent == other.extent; }
};

class AxisList {
 public:
  constexpr void push(Role role, Index extent, const char* name = "") { axes_.push({role, extent, name}); }
  constexpr int size() const { return axes_.size(); }
  constexpr const AxisData& operator[](int i) const { return axes_[i]; }

  constexpr Index extent(Role role) const {
    Index product = 1;
    for (const AxisData& axis : axes_) product *= axis.role == role ? axis.extent : 1;
    return product;
  }
  constexpr int num_open() const {
    int count = 0;
    for (const AxisData& axis : axes_) count += axis.extent == rest_of_world;
    return count;
  }

  constexpr RankPlace place(Index rank) const {
    RankPlace out;
    Index strides[3] = {1, 1, 1};
    for (int i = axes_.size(); i-- > 0; rank /= axes_[i].extent) {
      Index& stride = strides[int(axes_[i].role)];
      coordinate(out, axes_[i].role) += rank % axes_[i].extent * stride;
      stride *= axes_[i].extent;
    }
    return out;
  }

  constexpr Index rank(RankPlace place) const {
    Index out = 0, stride = 1;
    for (int i = axes_.size(); i-- > 0;) {
      Index& own = coordinate(place, axes_[i].role);
      out += own % axes_[i].extent * stride;
      own /= axes_[i].extent, stride *= axes_[i].extent;
    }
    return out;
  }

  constexpr bool operator==(const AxisList&) const = default;

 private:
  static constexpr Index& coordinate(RankPlace& place, Role role) {
    return role == Role::batch ? place.data : role == Role::layers ? place.stage : place.tensor;
  }

  FixedVector<AxisData, 8> axes_{};
};

template <class MeshType>
constexpr AxisList axes_of(const MeshType& mesh) {
  AxisList out;
  mesh.for_each_axis([&]<class Axis>(const Axis& axis, int) { out.push(Axis::role, axis.size(), Axis::name); });
  return out;
}

}  // namespace weft
