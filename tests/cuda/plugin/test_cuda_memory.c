// SPDX-License-Identifier: MIT
//
// Memory of the CUDA plug-in on the simulated driver: sizes, alignments, pinned memory, facts, and a calling program
// that has a context of its own.
#include <dlfcn.h>
#include <pthread.h>

#include "tests/cuda/plugin/cuda_test.h"

static void every_alignment_is_honoured(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    void *blocks[32] = {0};
    for (int sort = 0; sort < 2; sort++) {
        const tidesim_kind kind = sort == 0 ? TIDESIM_DEVICE : TIDESIM_PINNED;
        for (size_t i = 0; i < 24; i++) {
            const size_t align = (size_t)1 << i;
            if (sort == 0)
                assert_tide_ok(ops->mem_alloc(self, 0, 1000 + i, align, &blocks[i], &err), &err);
            else
                assert_tide_ok(ops->pinned_alloc(self, 0, 1000 + i, align, &blocks[i], &err), &err);
            assert_int_equal((uintptr_t)blocks[i] % align, 0);
        }
        assert_true(live_bytes(kind) >= 24 * 1000);
        for (size_t i = 0; i < 24; i++) (sort == 0 ? ops->mem_free : ops->pinned_free)(self, 0, blocks[i]);
        assert_int_equal(live_bytes(kind), 0);
    }
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    void *p = NULL;
    assert_tide_status(ops->mem_alloc(self, 0, 0, 64, &p, &err), TIDE_ERR_INVALID);
    assert_tide_status(ops->mem_alloc(self, 0, 64, 3, &p, &err), TIDE_ERR_INVALID);
    assert_tide_status(ops->mem_alloc(self, 0, SIZE_MAX, 64, &p, &err), TIDE_ERR_NOMEM);
    assert_tide_status(ops->mem_alloc(self, 0, (size_t)1 << 50, 64, &p, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "cuda:0: cuMemAlloc of 1125899906842624 B: CUDA_ERROR_OUT_OF_MEMORY (2): ");
    ops->mem_free(self, 0, NULL);
    ops->mem_free(self, 99, &p); // there is no such device: nothing happens
    assert_tide_status(tide_device_mem_alloc((tide_device){TIDE_DEVICE_CUDA, 9}, 64, 64, &p, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "number 9 was asked for");
    assert_tide_status(ops->copy(self, 0, 0, (tide_copy_direction)7, &p, &p, 1, &err), TIDE_ERR_INVALID);
    assert_tide_status(ops->copy(self, 0, 0, TIDE_COPY_HOST_TO_DEVICE, NULL, &p, 1, &err), TIDE_ERR_INVALID);
    assert_tide_status(ops->fill(self, 0, 0, NULL, 1, 1, &err), TIDE_ERR_INVALID);
    assert_tide_status(ops->fill(self, 0, 12345, &p, 1, 1, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "cuda:0 has no stream 12345");
    assert_tide_status(ops->call(self, 0, 0, NULL, NULL, &err), TIDE_ERR_INVALID);
}

/// Asking what there is takes nothing of a device; the first call that needs a context makes it, once.
static void a_context_is_made_when_it_is_needed(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_device_facts facts;
    uint64_t n_free, n_total;
    assert_tide_ok(ops->facts(self, 0, &facts, &err), &err);
    assert_int_equal(tidesim_live("context"), 0);
    assert_int_equal(tidesim_taken(0), 0);
    assert_string_equal(facts.driver, "CUDA 13.0");
    assert_true(facts.name[0] != '\0' && facts.has_pool);
    assert_int_equal(facts.map_step_bytes, 2 * MIB);
    assert_tide_ok(ops->memory_info(self, 0, &n_free, &n_total, &err), &err);
    assert_int_equal(n_total, facts.total_bytes);
    assert_int_equal(n_total - n_free, tidesim_taken(0));
    assert_int_equal(tidesim_live("context"), 1);
}

static void *call_from_a_thread(void *arg) {
    tide_error err = TIDE_ERROR_INIT;
    CUcontext before = NULL, after = NULL;
    void *p = NULL;
    cuCtxGetCurrent(&before);
    const tide_status st = ops->mem_alloc(self, 0, 64, 64, &p, &err);
    ops->mem_free(self, 0, p);
    cuCtxGetCurrent(&after);
    *(bool *)arg = st == TIDE_OK && before == NULL && after == NULL;
    return NULL;
}

/// The context that the program has made current stays so, also in a thread that has none, and after a failure.
static void the_programs_context_is_left_alone(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    CUcontext own, now;
    CUctxCreateParams params = {0};
    void *p = NULL;
    tide_stream_id s;
    assert_int_equal(cuCtxCreate(&own, &params, 0, 0), CUDA_SUCCESS);
    assert_tide_ok(ops->mem_alloc(self, 0, 4096, 64, &p, &err), &err);
    assert_tide_ok(ops->stream_create(self, 0, &s, &err), &err);
    assert_tide_ok(ops->fill(self, 0, s, p, 1, 4096, &err), &err);
    void *none = NULL;
    assert_tide_status(ops->mem_alloc(self, 0, (size_t)1 << 50, 64, &none, &err), TIDE_ERR_NOMEM);
    assert_tide_ok(ops->stream_sync(self, 0, s, &err), &err);
    ops->stream_destroy(self, 0, s);
    ops->mem_free(self, 0, p);
    assert_int_equal(cuCtxGetCurrent(&now), CUDA_SUCCESS);
    assert_ptr_equal(now, own);
    pthread_t thread;
    bool good = false;
    assert_int_equal(pthread_create(&thread, NULL, call_from_a_thread, &good), 0);
    pthread_join(thread, NULL);
    assert_true(good);
    assert_int_equal(cuCtxDestroy(own), CUDA_SUCCESS);
}

/// Bytes of the device are the device's: what comes back is what was put there.
static void bytes_go_there_and_back(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char out[1000], in[1000];
    void *a, *b;
    for (size_t i = 0; i < sizeof out; i++) out[i] = (char)(7 * i);
    assert_tide_ok(ops->mem_alloc(self, 0, sizeof out, 64, &a, &err), &err);
    assert_tide_ok(ops->mem_alloc(self, 0, sizeof out, 64, &b, &err), &err);
    assert_tide_ok(ops->copy(self, 0, 0, TIDE_COPY_HOST_TO_DEVICE, a, out, sizeof out, &err), &err);
    assert_tide_ok(ops->copy(self, 0, 0, TIDE_COPY_WITHIN_DEVICE, b, a, sizeof out, &err), &err);
    assert_tide_ok(ops->fill(self, 0, 0, (char *)b + 10, 'x', 5, &err), &err);
    assert_tide_ok(ops->copy(self, 0, 0, TIDE_COPY_DEVICE_TO_HOST, in, b, sizeof in, &err), &err);
    assert_tide_ok(ops->stream_sync(self, 0, 0, &err), &err);
    memset(out + 10, 'x', 5);
    assert_memory_equal(in, out, sizeof out);
    ops->mem_free(self, 0, a);
    ops->mem_free(self, 0, b);
}

/// Both sides check the ABI: this is the plug-in's.
static void a_program_built_for_another_plugin_is_refused(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    const tide_device_plugin_host other = {.abi = TIDE_DEVICE_PLUGIN_ABI + 1};
    const tide_device_ops *table;
    void *opened, *module = dlopen(getenv("TIDEMARK_CUDA_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(module);
    tide_device_plugin_get get;
    *(void **)&get = dlsym(module, TIDE_DEVICE_PLUGIN_SYMBOL);
    assert_non_null(get);
    assert_int_equal(get()->abi, TIDE_DEVICE_PLUGIN_ABI);
    assert_tide_status(get()->open(&other, &table, &opened, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "another version of tidemark");
    dlclose(module);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cuda_unit_test(every_alignment_is_honoured),
        cuda_unit_test(what_cannot_be_is_refused),
        cuda_unit_test(a_context_is_made_when_it_is_needed),
        cuda_unit_test(the_programs_context_is_left_alone),
        cuda_unit_test(bytes_go_there_and_back),
        cuda_unit_test(a_program_built_for_another_plugin_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
