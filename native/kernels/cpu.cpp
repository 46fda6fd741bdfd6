// Detects instruction sets. One counts only if the CPU has it (CPUID, HWCAP) and the operating system saves its
// registers across context switches (XCR0).
#include "kernels/dispatch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace maxsimd {
namespace {

#if defined(__x86_64__)

bool bit(uint32_t word, int index) { return word >> index & 1; }

/// Linux gives AMX tiles to a process that asks, once for the whole process.
bool tilesPermitted() {
#if defined(__linux__)
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

CpuFeatures detect() {
  CpuFeatures features{};
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return features;
  const bool osxsave = bit(c, 27), avx = bit(c, 28), f16c = bit(c, 29);
  if (!osxsave || !avx) return features;
  uint32_t xcr0, xcr0High;
  __asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(xcr0High) : "c"(0));
  const bool ymmSaved = (xcr0 & 0x6) == 0x6;
  const bool zmmSaved = (xcr0 & 0xe6) == 0xe6;
  const bool tilesSaved = (xcr0 & 0x60000) == 0x60000;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return features;
  // The loops over codes use BMI1 and BMI2, which all processors with AVX2 have.
  features.avx2 = ymmSaved && f16c && bit(b, 5) && bit(b, 3) && bit(b, 8);
  const bool foundation = bit(b, 16), dq = bit(b, 17), bw = bit(b, 30), vl = bit(b, 31), vnni = bit(c, 11);
  features.avx512vnni = features.avx2 && zmmSaved && foundation && dq && bw && vl && vnni;
  const bool tiles = bit(d, 24), tilesInt8 = bit(d, 25);
  features.amx = features.avx512vnni && tilesSaved && tiles && tilesInt8 && tilesPermitted();
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) features.avxvnni = features.avx2 && bit(a, 4);
  return features;
}

#elif defined(__aarch64__) && defined(__linux__)

CpuFeatures detect() {
  constexpr unsigned long dotProduct = 1ul << 20;  // HWCAP_ASIMDDP
  CpuFeatures features{};
  features.dotprod = (getauxval(AT_HWCAP) & dotProduct) != 0;
  return features;
}

#else

CpuFeatures detect() { return CpuFeatures{}; }

#endif

}  // namespace

const CpuFeatures& cpuFeatures() {
  static const CpuFeatures features = detect();
  return features;
}

}  // namespace maxsimd
