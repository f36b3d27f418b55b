// SPDX-License-Identifier: Apache-2.0
// The reference trajectories of tests/golden, read without weft's own reader, and the comparison that they are held to.
#pragma once

#include <nlohmann/json.hpp>

#include "run/engine_cases.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

namespace weft::test {

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name) {
    std::ifstream file(WEFT_TEST_DATA "/" + name + ".safetensors", std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    REQUIRE(bytes.size() > 8);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    const auto header = nlohmann::json::parse(bytes.substr(8, length));
    for (const auto& [key, tensor] : header.items()) {
      if (key == "__metadata__") continue;
      const std::size_t from = 8 + length + tensor["data_offsets"][0].get<std::size_t>(),
                        to = 8 + length + tensor["data_offsets"][1].get<std::size_t>();
      std::vector<double>& values = tensors_[key];
      for (std::size_t at = from; at < to; at += 8) {
        double real = 0;
        std::int64_t integer = 0;
        std::memcpy(&real, bytes.data() + at, 8), std::memcpy(&integer, bytes.data() + at, 8);
        values.push_back(tensor["dtype"] == "F64" ? real : double(integer));
      }
      for (const auto& extent : tensor["shape"]) shapes_[key].push_back(extent.get<Index>());
    }
  }

  const std::vector<double>& operator[](const std::string& name) const {
    const auto found = tensors_.find(name);
    REQUIRE_MESSAGE(found != tensors_.end(), name);
    return found->second;
  }
  // (in, out) as (out, in).
  std::vector<double> transposed(const std::string& name) const {
    const std::vector<double>& from = (*this)[name];
    const auto& shape = shapes_.at(name);
    std::vector<double> to(from.size());
    for (Index i = 0; i < shape[0]; ++i)
      for (Index o = 0; o < shape[1]; ++o) to[std::size_t(o * shape[0] + i)] = from[std::size_t(i * shape[1] + o)];
    return to;
  }

 private:
  std::map<std::string, std::vector<double>> tensors_;
  std::map<std::string, std::vector<Index>> shapes_;
};

// |a - b| <= tolerance · max|reference|. Elements that `spared` names are held to `bound` instead, and counted.
struct Comparison {
  double tolerance = 1e-10, bound = 0;
  Index num_spared = 0, num_elems = 0;

  template <class Real>
  void check(const std::string& what, const Real* found, const std::vector<double>& reference,
             const std::vector<double>* gradient = nullptr) {
    double largest = 1e-300, worst = 0;
    for (double value : reference) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < reference.size(); ++i) {
      const double error = std::abs(double(found[i]) - reference[i]);
      ++num_elems;
      if (gradient && std::abs((*gradient)[i]) < 1e-6) {
        if (!(error <= tolerance * largest)) ++num_spared;
        CHECK_MESSAGE(error <= bound, what << "[" << i << "]");
      } else {
        worst = std::max(worst, std::isfinite(error) ? error : 1e300);
      }
    }
    CHECK_MESSAGE(worst <= tolerance * largest, what << ": " << worst << " of " << largest);
  }
};

// lookup(kind, path) gives the reference of a parameter ("param", "grad", "after") or buffer ("buffer_after"; empty for other kinds).
struct Trajectory {
  Index items = 0, sequence = 1, steps = 5;
  double rate = 0.1, clip = 0;
  bool adam = false;
};

struct GoldenStrategy {
  std::string name;
  StrategyData data;
};
template <class MeshType>
GoldenStrategy golden_strategy(const std::string& name, const MeshType& axes) {
  return {name, lower_strategy(axes)};
}
inline std::vector<GoldenStrategy> data_ranks(std::initializer_list<Index> all) {
  std::vector<GoldenStrategy> out;
  for (Index ranks : all)
    out.push_back(golden_strategy(std::to_string(ranks) + " ranks", mesh(DataParallel{.ranks = ranks, .bucket_bytes = 3000})));
  return out;
}

// tensor_ranks: the degrees besides 1 that strategies have.
template <class Model, class Real, Index... tensor_ranks, class Rule, class Lookup>
void follow(const GoldenFile& golden, const Trajectory& trajectory, Rule rule, const std::vector<GoldenStrategy>& strategies,
            const std::vector<Index>& all_micros, Lookup&& lookup) {
  const double tolerance = sizeof(Real) == 8 ? 1e-10 : 1e-4;
  for (const GoldenStrategy& strategy : strategies)
    for (Index micro : all_micros) {
      const Index data = strategy.data.data();
      if (trajectory.items % (data * micro) != 0) continue;
      const PlanData plan = plan_data<Model, Recipe<typename PrecisionOf<Real>::type, SoftmaxCrossEntropy<>, Rule>>(
          strategy.data, {.global = trajectory.items, .micro = micro, .sequence = trajectory.sequence});
      if (plan.fault.rule == PlanRule::schedule_refuses) continue;  // takes multiples of the stages only
      const std::string cell = strategy.name + ", micro-batches of " + std::to_string(micro) + ": ";
      launch(int(strategy.data.ranks), [&](ThreadCommunicator& comm) {
        using TheEngine = Engine<CpuExecutor, Real, ThreadCommunicator, Rule>;
        TheEngine engine(plan,
                         model_code_for<typename TheEngine::Kernels, Real, Model, SoftmaxCrossEntropy<>, tensor_ranks...>(
                             plan.strategy.tensor(), plan.strategy.sequence),
                         comm, rule, {.clip_norm = trajectory.clip, .poison = true});
        auto model = engine.whole_model();
        const auto is_buffer = [](const auto& tensor) { return tensor.facts.kind == ParameterKind::buffer; };
        const auto initial = engine.collect();
        for (std::size_t t = 0; t < model.tensors.size(); ++t) {
          auto& tensor = model.tensors[t];
          tensor.data = initial.tensors[t].data;
          if (is_buffer(tensor)) continue;
          const auto values = lookup("param", tensor.path);
          for (std::size_t i = 0; i < values.size(); ++i) tensor.data[i] = Real(values[i]);
        }
        engine.distribute(model);
        const auto &input = golden["input"], &target = golden["target"];
        const Index width = Index(input.size()) / trajectory.items, targets = Index(target.size()) / trajectory.items;
        const Index per_rank = trajectory.items / data;
        const auto fill = [&](auto& to) {
          to.leading = {micro, trajectory.sequence, 0};
          to.first_item = engine.place().data * per_rank + to.number * micro;
          const std::size_t first = std::size_t(to.first_item);
          for (Index i = 0; i < micro * width; ++i) {
            const double value = input[first * std::size_t(width) + std::size_t(i)];
            if (engine.plan().graph.input.element == Element::token)
              to.tokens()[i] = std::int32_t(value);
            else
              to.values()[i] = Real(value);
          }
          for (Index i = 0; i < micro * targets; ++i)
            to.integer_targets()[i] = std::int32_t(target[first * std::size_t(targets) + std::size_t(i)]);
        };
        const bool checks = comm.rank() == 0;
        Comparison compare{.tolerance = tolerance, .bound = double(trajectory.steps) * trajectory.rate};
        for (Index step = 0; step < trajectory.steps; ++step) {
          const StepResult result = engine.step(per_rank / micro, fill, trajectory.rate);
          const double loss = golden["losses"][std::size_t(step)], norm = golden["grad_norms"][std::size_t(step)];
          if (checks) {
            CHECK_MESSAGE(std::abs(result.loss - loss) <= tolerance * std::abs(loss),
                          cell << "loss of step " << step << ": " << result.loss << " " << loss);
            CHECK_MESSAGE(std::abs(result.gradient_norm - norm) <= tolerance * norm,
                          cell << "norm of step " << step << ": " << result.gradient_norm << " " << norm);
          }
          if (step > 0) continue;
          const auto gradients = engine.collect(Collected::gradients, 0);
          for (const auto& tensor : gradients.tensors)
            compare.check(cell + "gradient of " + tensor.path, tensor.data.data(), lookup("grad", tensor.path));
        }
        const auto after = engine.collect({}, 0);
        for (const auto& tensor : after.tensors) {
          const bool spares = trajectory.adam && sizeof(Real) == 4 && !is_buffer(tensor);
          const std::vector<double> first = spares ? lookup("grad", tensor.path) : std::vector<double>();
          compare.check(cell + tensor.path, tensor.data.data(), lookup(is_buffer(tensor) ? "buffer_after" : "after", tensor.path),
                        spares ? &first : nullptr);
        }
        if (checks) CHECK(compare.num_spared * 100 <= 3 * compare.num_elems);
      });
    }
}

}  // namespace weft::test
