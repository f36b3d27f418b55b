// SPDX-License-Identifier: Apache-2.0
// What is wrong with a schedule.
#pragma once

#include "weft/schedule/action.hpp"

namespace weft {

enum class ScheduleRule : char { none, shape, action, stage, twice, missing, message, order, deadlock };

constexpr const char* rule_text(ScheduleRule rule) {
  switch (rule) {
    case ScheduleRule::none: return "";
    case ScheduleRule::shape:
      return "weft[schedule.shape]: a schedule has one row a stage and says the stage of every chunk; fix its table";
    case ScheduleRule::action: return "weft[schedule.action]: an action names a chunk and a micro-batch of the shape; fix the entry";
    case ScheduleRule::stage: return "weft[schedule.stage]: an action stands in the row of the stage that holds its chunk; move it";
    case ScheduleRule::twice: return "weft[schedule.twice]: every action stands in a schedule once; remove the second";
    case ScheduleRule::missing:
      return "weft[schedule.missing]: every micro-batch goes forward and backward through every chunk; add what is missing";
    case ScheduleRule::message:
      return "weft[schedule.message]: what goes from stage to stage is sent by one and received by the other; add the end that is missing";
    case ScheduleRule::order: return "weft[schedule.order]: an action comes after what it needs on its own stage; swap them";
    case ScheduleRule::deadlock:
      return "weft[schedule.deadlock]: stages wait for each other for ever; move the action before which the stage waits, or what it waits for";
  }
  return "";
}

// Where a schedule breaks a rule first. action: the one at fault, or the one that cannot begin; waiting_for: what it needs. Of rule shape:
// `stage` rows for `position` chunks, or a chunk on a stage that is not there.
struct ScheduleFault {
  ScheduleRule rule = ScheduleRule::none;
  int stage = 0, position = 0;
  Action action{}, waiting_for{};
  bool operator==(const ScheduleFault&) const = default;
};

}  // namespace weft
