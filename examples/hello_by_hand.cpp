// SPDX-License-Identifier: Apache-2.0
// hello.cpp without weft: the same model, data, optimizer and two ranks, with everything that weft generates written out. What is left out
// here and is not there: clipping, schedules, micro-batches, errors of a rank that fails, an audit, and any other model.
#include <barrier>
#include <cmath>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr int ranks = 2, batch = 32, hidden = 32, steps = 1500;
constexpr int first_weight = 0, first_bias = hidden, second_weight = 2 * hidden, second_bias = 3 * hidden, num_parameters = 3 * hidden + 1;

float gelu(float x) { return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))); }
float gelu_slope(float x) {
  const float t = std::tanh(0.7978845608f * (x + 0.044715f * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f * (1 + 3 * 0.044715f * x * x);
}

struct Rank {
  std::vector<float> parameters = std::vector<float>(num_parameters), gradients = parameters, mean = parameters, square = parameters;
  float loss = 0;
};

// One rank's half of the global batch: the loss, and gradients of the global mean.
void forward_backward(int step, int rank, Rank& own) {
  std::fill(own.gradients.begin(), own.gradients.end(), 0.0f);
  own.loss = 0;
  for (int i = 0; i < batch; ++i) {
    const float x = float((step * 64 + rank * batch + i) * 37 % 628) / 100 - 3.14f;
    float before[hidden], after[hidden], y = own.parameters[second_bias];
    for (int h = 0; h < hidden; ++h) {
      before[h] = own.parameters[first_weight + h] * x + own.parameters[first_bias + h];
      after[h] = gelu(before[h]);
      y += own.parameters[second_weight + h] * after[h];
    }
    const float error = y - std::sin(x), dy = 2 * error / float(ranks * batch);
    own.loss += error * error / float(ranks * batch);
    own.gradients[second_bias] += dy;
    for (int h = 0; h < hidden; ++h) {
      own.gradients[second_weight + h] += dy * after[h];
      const float dh = dy * own.parameters[second_weight + h] * gelu_slope(before[h]);
      own.gradients[first_weight + h] += dh * x, own.gradients[first_bias + h] += dh;
    }
  }
}

void adamw(int step, Rank& own, const std::vector<float>& gradients) {
  const float correction1 = 1 - std::pow(0.9f, float(step + 1)), correction2 = 1 - std::pow(0.999f, float(step + 1));
  for (int p = 0; p < num_parameters; ++p) {
    const bool weight = p < first_bias || (p >= second_weight && p < second_bias);
    own.parameters[p] -= weight ? 0.01f * 0.01f * own.parameters[p] : 0.0f;
    own.mean[p] += 0.1f * (gradients[p] - own.mean[p]);
    own.square[p] += 0.001f * (gradients[p] * gradients[p] - own.square[p]);
    own.parameters[p] -= 0.01f * own.mean[p] / correction1 / (std::sqrt(own.square[p] / correction2) + 1e-8f);
  }
}

}  // namespace

int main() {
  std::vector<Rank> all(ranks);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> first(-1, 1), second(-1 / std::sqrt(float(hidden)), 1 / std::sqrt(float(hidden)));
  for (int p = 0; p < num_parameters; ++p) all[0].parameters[p] = p < second_weight ? first(random) : second(random);
  for (Rank& rank : all) rank.parameters = all[0].parameters;  // replicas must start equal

  std::barrier meet(ranks);
  const auto work = [&](int rank) {
    for (int step = 0; step < steps; ++step) {
      forward_backward(step, rank, all[rank]);
      meet.arrive_and_wait();  // all gradients are there
      std::vector<float> sum(num_parameters);
      for (const Rank& each : all)
        for (int p = 0; p < num_parameters; ++p) sum[p] += each.gradients[p];
      meet.arrive_and_wait();  // all have read them
      adamw(step, all[rank], sum);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  std::printf("mean squared error after %d steps: %.6f\n", steps, all[0].loss + all[1].loss);
  return all[0].loss + all[1].loss < 1e-2f ? 0 : 1;
}
