// SPDX-License-Identifier: Apache-2.0
// What every operation reads and writes, told to a shadow of the arenas if there is one.
#pragma once

#include "weft/run/shadow_memory.hpp"
#include "weft/run/tensor_places.hpp"

namespace weft {

template <class Real>
class WatchedTensors : public TensorPlaces<Real> {
 protected:
  using Places = TensorPlaces<Real>;
  using Places::frame_of, Places::chunk_of, Places::rows_of, Places::slice_rows, Places::value, Places::gradient, Places::at, Places::elems,
      Places::memory_of, Places::plan_, Places::units_;

 public:
  using Places::Places;

  // Watches all memory of a step from now on; null: no more.
  void set_shadow(ShadowMemory* shadow) { shadow_ = shadow; }
  ShadowMemory* shadow() const { return shadow_; }

  // ── what the engine does itself: inputs, messages, the loss ──
  void wrote_input(const MicroBatch& micro) const {
    if (!is_watched(micro)) return;
    const Index rows = micro.leading.rows();
    const auto bytes = [&](Features features) {
      return rows * features.elems() * (features.element == Element::token ? 4 : Index(sizeof(Real)));
    };
    shadow_->write({TensorKind::value, 0, 0, micro.number}, this->input(micro.input_slot), bytes(plan_.graph.input));
    shadow_->write(targets_name(micro), this->targets(micro.input_slot), bytes(plan_.training.target));
  }
  void wrote_chunk_input(const MicroBatch& micro) const { see_write(TensorKind::value, chunk_of(micro).first_unit, 0, micro); }
  void wrote_chunk_gradient(const MicroBatch& micro) const { see_output(micro, TensorKind::gradient, true, ""); }
  void reads_chunk_output(const MicroBatch& micro) const { see_output(micro, TensorKind::value, false, "a message"); }
  void reads_chunk_input_gradient(const MicroBatch& micro) const {
    see_read(TensorKind::gradient, chunk_of(micro).first_unit, 0, micro, "a message");
  }
  void loss_reads(const MicroBatch& micro) const {
    if (!is_watched(micro)) return;
    see_output(micro, TensorKind::value, false, "the loss");
    const Features target = plan_.training.target;
    shadow_->read(targets_name(micro), this->targets(micro.input_slot),
                  micro.leading.rows() * target.elems() * (target.element == Element::token ? 4 : Index(sizeof(Real))), "the loss");
  }

 protected:
  bool is_watched(const MicroBatch& micro) const { return shadow_ != nullptr && micro.training; }

  void before_forward(Index u, int i, const MicroBatch& micro) const {
    if (!is_watched(micro)) return;
    const OpSite& op = op_of(u, i);
    see_read(TensorKind::value, u, op.input, micro, "forward");
    if (op.second >= 0) see_read(TensorKind::value, u, op.second, micro, "forward");
    if (op.kind == OpKind::scatter_rows) uses(TensorKind::value, u, op.input, micro);
  }
  void after_forward(Index u, int i, const MicroBatch& micro) const {
    if (!is_watched(micro)) return;
    const OpSite& op = op_of(u, i);
    const Index slice = slice_rows(micro);
    const bool gathers = op.kind == OpKind::gather_rows || op.kind == OpKind::copy_rows;
    see_write(TensorKind::value, u, op.output, micro,
              gathers                           ? slice * plan_.graph.tensor_ranks
              : op.kind == OpKind::scatter_rows ? slice
                                                : Index(-1),
              op.kind == OpKind::place);
    for_each_saved(u, op, micro, [&](const TensorName& name, const void* data, Index bytes) { shadow_->write(name, data, bytes); });
    if (shadow_->watcher) shadow_->watcher->after_op(*shadow_, u, i, false, micro.number);
  }

  // For the weight part alone too: it reads what backward as a whole reads.
  void before_backward(Index u, int i, const MicroBatch& micro) const {
    if (!is_watched(micro)) return;
    const OpSite& op = op_of(u, i);
    see_read(TensorKind::gradient, u, op.output, micro, "backward");
    if (op.kind == OpKind::gather_rows || op.kind == OpKind::scatter_rows || op.kind == OpKind::slice_rows)
      uses(TensorKind::gradient, u, op.output, micro);
    if (op.kind != OpKind::leaf) return;
    const LayerFacts& facts = plan_.graph.leaves[std::size_t(op.leaf)].facts;
    if (facts.needs_input) see_read(TensorKind::value, u, op.input, micro, "backward");
    if (facts.needs_output) see_read(TensorKind::value, u, op.output, micro, "backward");
    for_each_saved(u, op, micro,
                   [&](const TensorName& name, const void* data, Index bytes) { shadow_->read(name, data, bytes, "backward"); });
  }
  void after_backward(Index u, int i, const MicroBatch& micro) const {
    if (!is_watched(micro)) return;
    const OpSite& op = op_of(u, i);
    const std::size_t n = std::size_t(i);
    if (op.second >= 0) received(u, op.second, op.output, micro, memory_of(u).first_second[n]);
    // What a layer writes over its own output's gradient is another tensor; what a join of branches or a sum hands on is the same.
    if (op.kind == OpKind::leaf || (is_communication(op.kind) && op.kind != OpKind::all_reduce))
      added(u, op.input, micro, memory_of(u).first_input[n]);
    else
      received(u, op.input, op.output, micro, memory_of(u).first_input[n]);
    if (op.kind == OpKind::scatter_rows || op.kind == OpKind::slice_rows) uses(TensorKind::gradient, u, op.input, micro);
    if (const Place part = memory_of(u).gradient_parts[n]; part.storage != Storage::none)
      uses_bytes(at(u, part, micro, nullptr, nullptr), u, op.input, micro,
                 op.kind == OpKind::scatter_rows || op.kind == OpKind::slice_rows);
    if (shadow_->watcher) shadow_->watcher->after_op(*shadow_, u, i, true, micro.number);
  }

 private:
  const OpSite& op_of(Index u, int i) const { return plan_.graph.ops[std::size_t(frame_of(u).first_op + i)]; }

  static TensorName targets_name(const MicroBatch& micro) { return {TensorKind::value, 0, -1, micro.number}; }
  // The output of a unit is the input of the next one in the chunk: one tensor.
  TensorName name_of(TensorKind kind, Index u, int tensor, const MicroBatch& micro) const {
    const bool before = tensor == 0 && !units_[std::size_t(u)].starts_chunk;
    return {kind, before ? u - 1 : u, before ? frame_of(u - 1).output : tensor, micro.number};
  }
  const Real* data_of(TensorKind kind, Index u, int tensor, const MicroBatch& micro) const {
    return kind == TensorKind::value ? value(u, tensor, micro) : gradient(u, tensor, micro);
  }
  Index bytes_of_rows(Index u, int tensor, Index rows) const {
    const bool token = plan_.graph.tensors[std::size_t(frame_of(u).first_tensor + tensor)].element == Element::token;
    return rows * elems(u, tensor) * (token ? 4 : Index(sizeof(Real)));
  }
  void see_read(TensorKind kind, Index u, int tensor, const MicroBatch& micro, const char* what) const {
    if (!is_watched(micro)) return;
    if (const Real* data = data_of(kind, u, tensor, micro))
      shadow_->read(name_of(kind, u, tensor, micro), data, bytes_of_rows(u, tensor, rows_of(u, tensor, micro)), what);
  }
  // rows: how many are written, with the padding of equal slices; -1: those that the rank has.
  void see_write(TensorKind kind, Index u, int tensor, const MicroBatch& micro, Index rows = -1, bool partly = false) const {
    if (!is_watched(micro)) return;
    const Real* data = data_of(kind, u, tensor, micro);
    const Index bytes = bytes_of_rows(u, tensor, rows < 0 ? rows_of(u, tensor, micro) : rows);
    if (data && partly) shadow_->touch(name_of(kind, u, tensor, micro), data, bytes);
    if (data && !partly) shadow_->write(name_of(kind, u, tensor, micro), data, bytes);
  }
  // With the padding of equal slices.
  void uses(TensorKind kind, Index u, int tensor, const MicroBatch& micro) const {
    uses_bytes(data_of(kind, u, tensor, micro), u, tensor, micro, true);
  }
  void uses_bytes(const Real* data, Index u, int tensor, const MicroBatch& micro, bool padded) const {
    const Index slice = slice_rows(micro), all = padded ? slice * plan_.graph.tensor_ranks : micro.leading.rows();
    if (data) shadow_->use(data, bytes_of_rows(u, tensor, this->rows_divided(u, tensor) ? slice : all));
  }
  void see_output(const MicroBatch& micro, TensorKind kind, bool writes, const char* what) const {
    const Index u = chunk_of(micro).end_unit - 1;
    if (writes)
      see_write(kind, u, frame_of(u).output, micro);
    else
      see_read(kind, u, frame_of(u).output, micro, what);
  }
  // The gradient of `tensor` has got a part; was the first: what was there before does not count.
  void added(Index u, int tensor, const MicroBatch& micro, bool first) const {
    if (!first) see_read(TensorKind::gradient, u, tensor, micro, "adding a gradient");
    see_write(TensorKind::gradient, u, tensor, micro);
  }
  // The same where it may be the memory of `from`.
  void received(Index u, int tensor, int from, const MicroBatch& micro, bool first) const {
    const Real* data = gradient(u, tensor, micro);
    if (data == nullptr) return;
    if (data != gradient(u, from, micro)) return added(u, tensor, micro, first);
    shadow_->share(name_of(TensorKind::gradient, u, tensor, micro), name_of(TensorKind::gradient, u, from, micro));
  }
  template <class Visit>
  void for_each_saved(Index u, const OpSite& op, const MicroBatch& micro, Visit&& visit) const {
    if (op.kind != OpKind::leaf) return;
    const LeafSite& leaf = plan_.graph.leaves[std::size_t(op.leaf)];
    const int number = 4 * (op.leaf - frame_of(u).first_leaf);
    const Index rows = leaf.rows_divided ? this->own_rows(micro) : micro.leading.rows();
    for (int k = 0; k < leaf.facts.saved.size(); ++k) {
      const SavedFacts& saved = leaf.facts.saved[k];
      const Real* data = at(u, memory_of(u).saved[std::size_t(number + k)], micro, nullptr, nullptr);
      visit(TensorName{TensorKind::saved, u, number + k, micro.number}, data,
            (rows * saved.elems_per_row + saved.fixed_elems) * (saved.integer ? 4 : Index(sizeof(Real))));
    }
  }

  ShadowMemory* shadow_ = nullptr;
};

}  // namespace weft
