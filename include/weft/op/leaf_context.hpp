// SPDX-License-Identifier: Apache-2.0
// What a layer computes through: its tensors, its extents and the kernels of the executor.
#pragma once

#include <string>

#include "weft/base/error.hpp"
#include "weft/layer/attention.hpp"
#include "weft/layout/call.hpp"
#include "weft/op/leaf_call.hpp"
#include "weft/random/stream.hpp"

namespace weft {

// KernelSet: the executor's kernels (op/cpu_kernels.hpp). `in`, `out`: the features, as constants that kernels can be specialised on.
template <class KernelSet, class RealType, Features in_features, Features out_features>
class LeafContext {
 public:
  using Real = RealType;
  static constexpr Features in = in_features, out = out_features;

  explicit LeafContext(LeafCall<Real>& call) : call_(call) {}

  // ── extents ──
  Index rows() const { return call_.leading.rows(); }  // batch · sequence
  Index batch() const { return call_.leading.batch; }
  Index sequence() const { return call_.leading.sequence; }
  Index past() const { return call_.leading.past; }    // tokens before the first one (generation)
  Index first_row() const { return call_.first_row; }  // of row 0, in the global batch
  static constexpr Index input_features() { return in.elems(); }
  static constexpr Index output_features() { return out.elems(); }
  Index input_elems() const { return rows() * in.elems(); }
  Index output_elems() const { return rows() * out.elems(); }
  bool training() const { return call_.training; }
  int tensor_rank() const { return call_.tensor_rank; }
  bool adds_whole() const { return call_.adds_whole; }

  // visit(row, batch, sequence, past): the micro-batch, or, where its rows are divided, this rank's stretch of each sequence.
  template <class Visit>
  void for_each_part_of_sequence(Visit&& visit) const {
    if (!call_.rows_divided) return visit(Index(0), batch(), sequence(), past());
    for (Index row = 0; row < rows();) {
      const Index past = (call_.row_offset + row) % call_.sequence;
      const Index length = call_.sequence - past < rows() - row ? call_.sequence - past : rows() - row;
      visit(row, Index(1), length, past);
      row += length;
    }
  }
  // Whether this rank has slices of a row's features only. visit(own, whole, count, whole features): each slice, where it begins here and
  // among the whole features.
  bool features_divided() const { return !slicing().segments.empty(); }
  template <class Visit>
  void for_each_feature_slice(Visit&& visit) const {
    constexpr Index plane = in.plane();
    slicing().for_each_slice(call_.graph->tensor_ranks, call_.tensor_rank, [&](Index own, Index whole, Index count, Index) {
      visit(own * plane, whole * plane, count * plane, slicing().whole() * plane);
    });
  }
  static constexpr Real real(double value) { return Real(value); }

  // ── forward ──
  const Real* input() const { return static_cast<const Real*>(call_.input); }                   // (rows, in)
  const std::int32_t* tokens() const { return static_cast<const std::int32_t*>(call_.input); }  // (rows), where the input is tokens
  Real* output() const { return call_.output; }                                                 // (rows, out)
  const Real* residual() const { return call_.residual; }                                       // (rows, out) or null: to be added
  const Real* parameter(int i) const { return call_.parameters[i]; }
  const Real* parameter_if(bool there, int i) const { return there ? call_.parameters[i] : nullptr; }
  Real* buffer(int i) const { return call_.parameters[i]; }  // state that forward may change
  Real* saved(int i) const { return reinterpret_cast<Real*>(call_.saved[i]); }
  std::int32_t* saved_integers(int i) const { return reinterpret_cast<std::int32_t*>(call_.saved[i]); }
  kernel::Scratch scratch() const { return call_.scratch; }

  // ── backward ──
  const Real* output_value() const { return call_.output; }  // where the facts say needs_output
  const Real* output_gradient() const { return call_.output_gradient; }
  Real* input_gradient() const { return call_.input_gradient; }  // null where nobody needs it
  bool accumulates() const { return call_.accumulates; }         // the input gradient is added to, not overwritten
  Real* gradient(int i) const { return call_.gradients[i]; }     // of a parameter: always added to
  Real* gradient_if(bool there, int i) const { return there ? call_.gradients[i] : nullptr; }

  // ── layers that join micro-batches ──
  double* join_sums() const { return call_.join_sums; }  // added to in statistics; summed over the global batch afterwards
  double join_rows() const { return call_.join_rows; }   // rows of the global batch
  Real* step_state() const { return call_.step_state; }

  // ── generation ──
  Real* cache() const { return call_.cache; }  // (batch, capacity, elems), null unless generating
  Index cache_capacity() const { return call_.cache_capacity; }

  // Reports that a parameter took part, where facts say reports_touched.
  void touch(int parameter) {
    if (call_.touched) call_.touched[parameter] = 1;
  }

  random::Stream dropout_stream() const {
    return {.seed = call_.seed,
            .purpose = random::Purpose::dropout,
            .step = call_.step,
            .layer = (std::uint64_t(call_.leaf) << 32) | std::uint64_t(call_.repetition)};
  }

  static KernelSet kernels() { return {}; }

  auto attention_sizes(const AttentionOptions& o) const {
    return KernelSet::attention_sizes(batch(), sequence(), past() + sequence(), o.heads, o.key_value_heads, o.head_size, o.causal);
  }

  // y = x, dx = dy: nothing if they are the same memory.
  void pass_value() {
    if (output() != input()) kernels().copy_columns(rows(), input(), in.elems(), output(), in.elems(), in.elems());
  }
  void pass_gradient() {
    if (input_gradient() && input_gradient() != output_gradient())
      kernels().copy_columns(rows(), output_gradient(), in.elems(), input_gradient(), in.elems(), in.elems());
  }

  [[noreturn]] void refuse_token(Index row, Index vocabulary) const {
    throw Error("embedding.token", "a token is outside the vocabulary; check the data or enlarge the model's vocabulary (token " +
                                       std::to_string(tokens()[row]) + " at row " + std::to_string(row) +
                                       " of the micro-batch, vocabulary " + std::to_string(vocabulary) + ", layer " +
                                       path_of_leaf(*call_.graph, call_.leaf, call_.repetition) + ")");
  }

 private:
  const Slicing& slicing() const { return call_.graph->leaves[std::size_t(call_.leaf)].slicing; }

  LeafCall<Real>& call_;
};

// The ranks that have the slices of a prediction's classes, for a loss over all of them. workspace: (rows, 4).
struct ClassGroup {
  int rank = 0;
  double* workspace = nullptr;
  void* communicator = nullptr;
  void (*reduce)(void* communicator, double* data, Index count, Reduction reduction) = nullptr;

  void all_reduce(double* data, Index count, Reduction reduction) const { reduce(communicator, data, count, reduction); }
};

// What a loss computes through. whole_classes: of all ranks, where classes are divided; else out_features.
template <class KernelSet, class RealType, Features out_features, Index whole_classes = out_features.elems()>
class LossContext {
 public:
  using Real = RealType;
  static constexpr bool divides_classes = whole_classes != out_features.elems();

  LossContext(Index rows, const Real* prediction, const void* targets, double scale, Real* gradient, const ClassGroup& group = {})
      : rows_(rows), prediction_(prediction), targets_(targets), scale_(scale), gradient_(gradient), group_(group) {}

  static constexpr Index classes() { return whole_classes; }
  const ClassGroup& group() const { return group_; }

  Index rows() const { return rows_; }
  static constexpr Index output_features() { return out_features.elems(); }
  static constexpr Real real(double value) { return Real(value); }
  const Real* output_value() const { return prediction_; }  // (rows, out)
  const std::int32_t* integer_targets() const { return static_cast<const std::int32_t*>(targets_); }
  const Real* real_targets() const { return static_cast<const Real*>(targets_); }
  Real scale() const { return Real(scale_); }          // of the gradient
  Real* output_gradient() const { return gradient_; }  // null in evaluation; may be the prediction
  static KernelSet kernels() { return {}; }

  // The first row whose target is neither a class nor ignored, or -1.
  Index first_bad_target(std::int32_t ignored) const {
    for (Index r = 0; r < rows_; ++r) {
      const std::int32_t target = integer_targets()[r];
      if (target != ignored && (target < 0 || target >= classes())) return r;
    }
    return -1;
  }
  [[noreturn]] void refuse_target(Index row) const {
    throw Error("loss.target", "a target is not a class of the model; check the data or enlarge the last layer (target " +
                                   std::to_string(integer_targets()[row]) + " at row " + std::to_string(row) +
                                   " of the micro-batch, classes " + std::to_string(classes()) + ")");
  }

 private:
  Index rows_;
  const Real* prediction_;
  const void* targets_;
  double scale_;
  Real* gradient_;
  ClassGroup group_;
};

}  // namespace weft
