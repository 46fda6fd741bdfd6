#include "kernels/encoding/row_loops.h"

#include "kernels/dispatch.h"

namespace maxsimd {

const RowLoops& rowLoops() {
#if defined(__x86_64__)
  if (cpuFeatures().avx2) return avx2RowLoops;
#endif
  return baselineRowLoops;
}

}  // namespace maxsimd
