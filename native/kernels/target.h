// For headers that make up one kernel's source: it defines TARGET, the attribute that names its instructions, before it
// includes them (inline functions of several instruction sets must not meet in one).
#pragma once

#if !defined(TARGET)
#error "TARGET names the instructions of the kernel that includes this"
#endif

#define TARGET_INLINE TARGET __attribute__((always_inline)) static inline
/// Behind a lambda's parameters: instructions are not inherited from the function around it.
#define TARGET_LAMBDA TARGET __attribute__((always_inline))
