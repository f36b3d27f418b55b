// SPDX-License-Identifier: Apache-2.0
// Facade of the describing half: models, strategies and plans, without kernels, threads or communication. What a laptop needs to plan for
// a machine that it does not have.
#pragma once

#include "weft/schedule/csv.hpp"
#include "weft/schedule/gpipe.hpp"
#include "weft/schedule/interleaved.hpp"
#include "weft/schedule/one_forward_one_backward.hpp"
#include "weft/schedule/timeline.hpp"
#include "weft/schedule/zero_bubble.hpp"
#include "weft/strategy/data_parallel.hpp"
#include "weft/strategy/model_parallel.hpp"
#include "weft/strategy/pipeline.hpp"
#include "weft/strategy/recompute.hpp"
#include "weft/strategy/synchronisation.hpp"
#include "weft/strategy/tensor_parallel.hpp"

#include "weft/layer/activation.hpp"
#include "weft/layer/attention.hpp"
#include "weft/layer/batch_norm2d.hpp"
#include "weft/layer/conv2d.hpp"
#include "weft/layer/dropout.hpp"
#include "weft/layer/embedding.hpp"
#include "weft/layer/linear.hpp"
#include "weft/layer/loss.hpp"
#include "weft/layer/norm.hpp"
#include "weft/layer/pool2d.hpp"

#include "weft/graph/lower.hpp"
#include "weft/graph/models.hpp"
#include "weft/plan/plan.hpp"
#include "weft/report/describe.hpp"
