// SPDX-License-Identifier: MIT
//
// Some requests of these tests are meant to be refused; without this the sanitizers stop the program instead.
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }
