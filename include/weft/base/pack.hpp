// SPDX-License-Identifier: Apache-2.0
// A flat pack of types: look-up by one overload resolution, iteration by one fold, so that compile time does not grow with a recursion.
#pragma once

#include <utility>

namespace weft {

template <class... Types>
struct Pack {
  static constexpr int size = int(sizeof...(Types));
};

template <class... First, class... Second>
constexpr Pack<First..., Second...> operator+(Pack<First...>, Pack<Second...>) {
  return {};
}

template <int I, class T>
struct PackSlot {
  using type = T;
};

template <class Indices, class Types>
struct PackSlots;
template <int... I, class... T>
struct PackSlots<std::integer_sequence<int, I...>, Pack<T...>> : PackSlot<I, T>... {};

template <int I, class T>
PackSlot<I, T> find_slot(const PackSlot<I, T>*);

// The I-th type of a pack.
template <int I, class P>
using At = typename decltype(find_slot<I>(static_cast<const PackSlots<std::make_integer_sequence<int, P::size>, P>*>(nullptr)))::type;

// Calls f.template operator()<Index, Type>() for every type, in order.
template <class... T, class Function>
constexpr void for_each_type(Pack<T...>, Function&& function) {
  [&]<int... I>(std::integer_sequence<int, I...>) { (function.template operator()<I, T>(), ...); }
  (std::make_integer_sequence<int, int(sizeof...(T))>{});
}

}  // namespace weft
