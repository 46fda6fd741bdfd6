// Helpers for headers that several kernels include. The source of a kernel first defines TARGET, the attribute that
// names its instruction set. Otherwise the linker could merge inline functions of different instruction sets.
#pragma once

#if !defined(TARGET)
#error "TARGET names the instructions of the kernel that includes this"
#endif

#define TARGET_INLINE TARGET __attribute__((always_inline)) static inline
/// Goes after a lambda's parameters: a lambda does not inherit the instruction set of the function around it.
#define TARGET_LAMBDA TARGET __attribute__((always_inline))
