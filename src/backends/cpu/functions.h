// exp, tanh and erf in plain arithmetic, so that loops over them are vectorised. Within a few units
// in the last place of float; a NaN comes out as a NaN.
#pragma once

#include <bit>
#include <cstdint>

#include "backends/cpu/vector.h"

namespace regatta::cpu {

REGATTA_INLINE float clamped(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

// Cephes' expf: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2].
REGATTA_INLINE float exp_of(float x) {
  x = clamped(x, -87.0f, 88.0f);
  // Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits.
  constexpr float magic = 12582912.0f;
  const float shifted = x * 1.44269504088896341f + magic;
  const float n = shifted - magic;
  const float r = x - n * 0.693359375f - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const std::uint32_t power =
      (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(magic) + 127u) << 23;
  return p * std::bit_cast<float>(power);
}

REGATTA_INLINE float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

// Eigen's rational approximations of tanh and erf: odd polynomials over even ones, on the range
// beyond which the value is 1 in float.
REGATTA_INLINE float tanh_of(float x) {
  x = clamped(x, -7.90531110763549805f, 7.90531110763549805f);
  const float x2 = x * x;
  float p = -2.76076847742355e-16f;
  p = p * x2 + 2.00018790482477e-13f;
  p = p * x2 + -8.60467152213735e-11f;
  p = p * x2 + 5.12229709037114e-08f;
  p = p * x2 + 1.48572235717979e-05f;
  p = p * x2 + 6.37261928875436e-04f;
  p = p * x2 + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * x2 + 1.18534705686654e-04f;
  q = q * x2 + 2.26843463243900e-03f;
  q = q * x2 + 4.89352518554385e-03f;
  return x * p / q;
}

REGATTA_INLINE float erf_of(float x) {
  x = clamped(x, -4.0f, 4.0f);
  const float x2 = x * x;
  float p = -2.72614225801306e-10f;
  p = p * x2 + 2.77068142495902e-08f;
  p = p * x2 + -2.10102402082508e-06f;
  p = p * x2 + -5.69250639462346e-05f;
  p = p * x2 + -7.34990630326855e-04f;
  p = p * x2 + -2.95459980854025e-03f;
  p = p * x2 + -1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * x2 + -2.13374055278905e-04f;
  q = q * x2 + -1.68282697438203e-03f;
  q = q * x2 + -7.37332916720468e-03f;
  q = q * x2 + -1.42647390514189e-02f;
  return x * p / q;
}

}  // namespace regatta::cpu
