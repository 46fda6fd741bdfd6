#define TARGET
#define REGISTER_BYTES 16

#include "kernels/approximate/code_loops_body.h"

namespace maxsimd {

const CodeLoops baselineCodeLoops = codeLoops("baseline");

}  // namespace maxsimd
