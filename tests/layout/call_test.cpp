// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <weft/layout/call.hpp>

using weft::CallRecord, weft::ElementType, weft::Operation, weft::Reduction;

TEST_CASE("call_record_text_names_what_the_operation_has") {
  CHECK(to_text(CallRecord{}) == "barrier");
  const CallRecord average{
      .operation = Operation::all_reduce, .type = ElementType::f32, .reduction = Reduction::average, .count = 1024, .tag = 3};
  const CallRecord rooted{.operation = Operation::broadcast, .type = ElementType::i64, .peer = 2, .count = 5};
  const CallRecord message{.operation = Operation::receive, .type = ElementType::bf16, .peer = 1, .count = 0};
  CHECK(to_text(average) == "all_reduce of 1024 float32, average, tag 3");
  CHECK(to_text(rooted) == "broadcast of 5 int64, root 2");
  CHECK(to_text(message) == "receive of 0 bfloat16 from rank 1");
}

TEST_CASE("call_records_agree_on_all_but_the_communicator") {
  constexpr CallRecord call{.operation = Operation::reduce, .type = ElementType::f64, .peer = 0, .count = 7};
  CallRecord other = call;
  other.communicator = 5;
  CHECK(agree(call, other));
  CHECK_FALSE(call == other);
  const auto differs = [&](auto change) {
    CallRecord changed = call;
    change(changed);
    return !agree(call, changed) && !(call == changed);
  };
  CHECK(differs([](CallRecord& c) { c.operation = Operation::all_reduce; }));
  CHECK(differs([](CallRecord& c) { c.type = ElementType::f32; }));
  CHECK(differs([](CallRecord& c) { c.reduction = Reduction::maximum; }));
  CHECK(differs([](CallRecord& c) { c.peer = 1; }));
  CHECK(differs([](CallRecord& c) { c.count = 8; }));
  CHECK(differs([](CallRecord& c) { c.tag = 1; }));
}
