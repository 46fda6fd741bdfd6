#define TARGET
#define REGISTER_BYTES 16

#include "kernels/encoding/row_loops_body.h"

namespace maxsimd {

const RowLoops baselineRowLoops = loopsOf("baseline");

}  // namespace maxsimd
