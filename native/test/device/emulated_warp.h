// A warp on the CPU: each of its types holds the values of 32 lanes. The matrix product reads its operands by the
// fragment tables of the PTX ISA, so that a wrong index in the program gives a wrong product here, too.
#pragma once

#include "kernels/half.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace maxsimd::cuda {

template <class T>
struct Lanes {
  std::array<T, 32> at;
};

template <class A, class Operation>
auto each(const Lanes<A>& a, Operation operation) {
  Lanes<decltype(operation(a.at[0]))> result;
  for (uint32_t lane = 0; lane < 32; ++lane) result.at[lane] = operation(a.at[lane]);
  return result;
}

template <class A, class Operation>
Lanes<A> both(const Lanes<A>& a, const Lanes<A>& b, Operation operation) {
  Lanes<A> result;
  for (uint32_t lane = 0; lane < 32; ++lane) result.at[lane] = operation(a.at[lane], b.at[lane]);
  return result;
}

inline Lanes<uint32_t> operator+(const Lanes<uint32_t>& a, uint32_t b) {
  return each(a, [b](uint32_t x) { return x + b; });
}
inline Lanes<uint32_t> operator*(const Lanes<uint32_t>& a, uint32_t b) {
  return each(a, [b](uint32_t x) { return x * b; });
}
inline Lanes<uint32_t> operator/(const Lanes<uint32_t>& a, uint32_t b) {
  return each(a, [b](uint32_t x) { return x / b; });
}
inline Lanes<uint32_t> operator%(const Lanes<uint32_t>& a, uint32_t b) {
  return each(a, [b](uint32_t x) { return x % b; });
}
inline Lanes<uint32_t> operator<<(const Lanes<uint32_t>& a, uint32_t b) {
  return each(a, [b](uint32_t x) { return x << b; });
}
inline Lanes<uint32_t> operator>>(const Lanes<uint32_t>& a, uint32_t b) {
  return each(a, [b](uint32_t x) { return x >> b; });
}
inline Lanes<uint32_t> operator&(const Lanes<uint32_t>& a, uint32_t b) {
  return each(a, [b](uint32_t x) { return x & b; });
}
inline Lanes<uint32_t> operator+(const Lanes<uint32_t>& a, const Lanes<uint32_t>& b) {
  return both(a, b, [](uint32_t x, uint32_t y) { return x + y; });
}

struct EmulatedWarp {
  using U32 = Lanes<uint32_t>;
  using I32 = Lanes<int32_t>;
  using F32 = Lanes<float>;
  template <uint32_t Count>
  struct Words {
    U32 words[Count];
  };

  static U32 lane() {
    U32 lanes;
    for (uint32_t lane = 0; lane < 32; ++lane) lanes.at[lane] = lane;
    return lanes;
  }
  static F32 f32(float value) {
    F32 lanes;
    lanes.at.fill(value);
    return lanes;
  }
  static I32 i32(int32_t value) {
    I32 lanes;
    lanes.at.fill(value);
    return lanes;
  }
  static U32 least(const U32& a, uint32_t b) {
    return each(a, [b](uint32_t x) { return std::min(x, b); });
  }
  static F32 greater(const F32& a, const F32& b) {
    return both(a, b, [](float x, float y) { return std::max(x, y); });
  }
  static F32 product(const F32& a, const F32& b) {
    return both(a, b, [](float x, float y) { return x * y; });
  }
  static F32 sum(const F32& a, const F32& b) {
    return both(a, b, [](float x, float y) { return x + y; });
  }
  static F32 toFloat(const I32& a) {
    return each(a, [](int32_t x) { return float(x); });
  }

  template <uint32_t Count>
  static Words<Count> stream(const int8_t* base, const U32& offset) {
    Words<Count> read;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      for (uint32_t word = 0; word < Count; ++word) {
        std::memcpy(&read.words[word].at[lane], base + offset.at[lane] + 4 * word, 4);
      }
    }
    return read;
  }
  static Words<4> keep(const int8_t* base, const U32& offset) { return stream<4>(base, offset); }
  static F32 half(const uint16_t* base, const U32& offset) {
    return each(offset, [base](uint32_t at) { return halfToFloat(base[at]); });
  }
  template <class Value>
  static Lanes<Value> read(const Value* base, const U32& offset) {
    return each(offset, [base](uint32_t at) { return base[at]; });
  }
  static F32 exchange(const F32& a, uint32_t distance) {
    F32 result;
    for (uint32_t lane = 0; lane < 32; ++lane) result.at[lane] = a.at[lane ^ distance];
    return result;
  }
  static void store(float* to, const F32& value) { *to = value.at[0]; }

  /// products += documents [16 x 32] * query [32 x 8], each value taken from the lane that holds it.
  static void multiply(I32 (&products)[4], const U32& a0, const U32& a1, const U32& a2, const U32& a3, const U32& b0,
                       const U32& b1) {
    const U32* const documents[2][2] = {{&a0, &a2}, {&a1, &a3}};
    const U32* const query[2] = {&b0, &b1};
    const auto byteOf = [](uint32_t word, uint32_t k) { return int32_t(int8_t(word >> (8 * (k % 4)))); };
    for (uint32_t row = 0; row < 16; ++row) {
      for (uint32_t column = 0; column < 8; ++column) {
        int32_t sum = 0;
        for (uint32_t k = 0; k < 32; ++k) {
          const uint32_t place = k % 16 / 4;
          sum += byteOf(documents[row / 8][k / 16]->at[row % 8 * 4 + place], k) *
                 byteOf(query[k / 16]->at[column * 4 + place], k);
        }
        products[row / 8 * 2 + column % 2].at[row % 8 * 4 + column / 2] += sum;
      }
    }
  }
};

}  // namespace maxsimd::cuda
