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

template <class Model, class Real, class Rule, class Lookup>
void follow(const GoldenFile& golden, const Trajectory& trajectory, Rule rule, const std::vector<Index>& all_ranks,
            const std::vector<Index>& all_micros, Lookup&& lookup) {
  const double tolerance = sizeof(Real) == 8 ? 1e-10 : 1e-4;
  for (Index ranks : all_ranks)
    for (Index micro : all_micros) {
      if (trajectory.items % (ranks * micro) != 0) continue;
      const Batch batch{.global = trajectory.items, .micro = micro, .sequence = trajectory.sequence};
      with_engines<Model, SoftmaxCrossEntropy<>, Real>(
          {.ranks = ranks, .bucket_bytes = 3000}, batch, rule, {.clip_norm = trajectory.clip, .poison = true}, [&](auto& engine) {
            const Index rank = engine.communicator().rank(), per_rank = trajectory.items / ranks;
            engine.for_each_parameter([&](const std::string& path, const ParameterFacts&, Real* data, Real* gradient) {
              if (!gradient) return;
              const auto values = lookup("param", path);
              for (std::size_t i = 0; i < values.size(); ++i) data[i] = Real(values[i]);
            });
            const auto& input = golden["input"];
            const auto& target = golden["target"];
            const Index width = Index(input.size()) / trajectory.items, targets = Index(target.size()) / trajectory.items;
            const auto fill = [&](auto& to) {
              to.leading = {micro, trajectory.sequence, 0};
              to.first_item = rank * per_rank + to.number * micro;
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
            static std::mutex mutex;  // doctest's checks from one rank at a time
            Comparison compare{.tolerance = tolerance, .bound = double(trajectory.steps) * trajectory.rate};
            const std::string cell = std::to_string(ranks) + " ranks, micro-batches of " + std::to_string(micro) + ": ";
            for (Index step = 0; step < trajectory.steps; ++step) {
              const StepResult result = engine.step(per_rank / micro, fill, trajectory.rate);
              const std::lock_guard lock(mutex);
              const double loss = golden["losses"][std::size_t(step)], norm = golden["grad_norms"][std::size_t(step)];
              CHECK_MESSAGE(std::abs(result.loss - loss) <= tolerance * std::abs(loss),
                            cell << "loss of step " << step << ": " << result.loss << " " << loss);
              CHECK_MESSAGE(std::abs(result.gradient_norm - norm) <= tolerance * norm,
                            cell << "norm of step " << step << ": " << result.gradient_norm << " " << norm);
              if (step == 0)
                engine.for_each_parameter([&](const std::string& path, const ParameterFacts& facts, Real*, Real* gradient) {
                  if (!gradient) return;
                  std::vector<Real> scaled(gradient, gradient + facts.elems());
                  for (Real& value : scaled) value = Real(double(value) * engine.gradient_scale());
                  compare.check(cell + "gradient of " + path, scaled.data(), lookup("grad", path));
                });
            }
            const std::lock_guard lock(mutex);
            engine.for_each_parameter([&](const std::string& path, const ParameterFacts&, Real* data, Real* gradient) {
              const bool spares = trajectory.adam && sizeof(Real) == 4 && gradient;
              const std::vector<double> first = spares ? lookup("grad", path) : std::vector<double>();
              compare.check(cell + path, data, lookup(gradient ? "after" : "buffer_after", path), spares ? &first : nullptr);
            });
            CHECK(compare.num_spared * 100 <= 3 * compare.num_elems);
          });
    }
}

}  // namespace weft::test
