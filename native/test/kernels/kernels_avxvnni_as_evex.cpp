// The avxvnni kernel's source in the encoding of AVX-512.
#define MAXSIMD_AVXVNNI_AS_EVEX
#include "kernels/exact/maxsim_i8_avxvnni.cpp"
