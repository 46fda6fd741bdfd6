# The addon's kernels as a library for a program beside them, built as in the addon: they agree to the last bit only without contraction.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
get_filename_component(MAXSIMD_ROOT "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

file(GLOB_RECURSE KERNEL_SOURCES "${MAXSIMD_ROOT}/native/kernels/*.cpp")
add_library(kernels STATIC ${KERNEL_SOURCES})
target_include_directories(kernels PUBLIC "${MAXSIMD_ROOT}/native")
target_compile_options(kernels PUBLIC -ffp-contract=off -Wall -Wextra -Wno-uninitialized -Wno-maybe-uninitialized)
