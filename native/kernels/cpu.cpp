// What the CPU has (CPUID) and what the operating system saves across context switches (XCR0): an
// instruction set counts only when both say so.
#include "kernels/dispatch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace maxsimd {
namespace {

#if defined(__x86_64__)

bool bit(uint32_t word, int index) { return word >> index & 1; }

/// AMX state is switched on per process, by asking (Linux 5.16 and later).
bool requestAmx() {
#if defined(__linux__)
  constexpr long archReqXcompPerm = 0x1023;
  constexpr long xfeatureXtileData = 18;
  return syscall(SYS_arch_prctl, archReqXcompPerm, xfeatureXtileData) == 0;
#else
  return false;
#endif
}

CpuFeatures detect() {
  CpuFeatures features{};
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return features;
  const bool osxsave = bit(c, 27), avx = bit(c, 28), fma = bit(c, 12), f16c = bit(c, 29);
  if (!osxsave || !avx) return features;
  uint32_t xcr0, xcr0High;
  __asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(xcr0High) : "c"(0));
  const bool ymmSaved = (xcr0 & 0x6) == 0x6;
  const bool zmmSaved = (xcr0 & 0xe6) == 0xe6;
  const bool tilesSaved = (xcr0 & 0x60000) == 0x60000;
  uint32_t b7, c7, d7;
  if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return features;
  features.avx2 = ymmSaved && bit(b7, 5) && fma && f16c;
  features.avx512vnni = features.avx2 && zmmSaved && bit(b7, 16) && bit(b7, 17) && bit(b7, 30) && bit(b7, 31) &&
                        bit(c7, 11);
  if (a >= 1) {
    uint32_t a1, b1, c1, d1;
    __get_cpuid_count(7, 1, &a1, &b1, &c1, &d1);
    features.avxvnni = features.avx2 && bit(a1, 4);
  }
  features.amxInt8 =
      features.avx512vnni && tilesSaved && bit(d7, 24) && bit(d7, 25) && requestAmx();
  return features;
}

#elif defined(__aarch64__)

CpuFeatures detect() {
  CpuFeatures features{};
#if defined(__linux__)
  features.neonDot = getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#elif defined(__APPLE__)
  features.neonDot = true;
#endif
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
