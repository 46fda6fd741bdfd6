/** NumKong's headers, with the targets that the including file has switched on. */
#pragma once

#define NK_DYNAMIC_DISPATCH 0
#define NK_NATIVE_F16 0
#define NK_NATIVE_BF16 0
#include <numkong/capabilities.h>
#include <numkong/cast.h>
#include <numkong/maxsim.h>
