// SPDX-License-Identifier: MIT
//
// The simulated CUPTI: the one subscriber, what it has asked for, and the callbacks that it gets. Measured on an H100:
// a second subscriber gets error 39 and the name of the first with "CUPTI for " before it; the correlation id of a call
// is that of its record; callbacks of contexts come inside of the call that makes or ends one.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/cupti/simcupti.h"

enum { MAX_CONTEXTS = 64 };

_Thread_local sc_place sc_now_in;
_Atomic uint64_t sc_n_misuse, sc_n_driver_calls_inside;
CUpti_TimestampCallbackFunc sc_timestamp;

static struct {
    pthread_mutex_t lock;
    bool is_there;
    char name[64];
    CUpti_CallbackFunc callback;
    void *user;
    _Atomic uint8_t enabled[CUPTI_CB_DOMAIN_SIZE][1024];
    struct {
        CUcontext handle;
        uint32_t id, device;
    } contexts[MAX_CONTEXTS];
} sub = {.lock = PTHREAD_MUTEX_INITIALIZER};

void sc_misuse(const char *fmt, ...) {
    va_list args;
    char text[256];
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fprintf(stderr, "tidecupti: misuse: %s\n", text);
    sc_n_misuse++;
}

bool sc_may_call(const char *name, bool in_callbacks) {
    if (sc_now_in == SC_OUTSIDE || (sc_now_in == SC_IN_CALLBACK && in_callbacks)) return true;
    sc_misuse("%s was called inside of a callback%s", name, sc_now_in == SC_IN_BUFFER ? " of buffers" : "");
    return false;
}

const char *sc_env(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/// The default clock is CLOCK_REALTIME (measured without a device, too).
uint64_t sc_now_ns(void) {
    if (sc_timestamp != NULL) return sc_timestamp();
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

uint32_t sc_stream_id(uint32_t driver_id) { return driver_id > 7 ? driver_id - 1 : driver_id; }

// ---- callbacks ----

static bool is_enabled(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    return sub.is_there && id < 1024 && sub.enabled[domain][id];
}

static void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
    const sc_place was = sc_now_in;
    sc_now_in = SC_IN_CALLBACK;
    sub.callback(sub.user, domain, id, data);
    sc_now_in = was;
}

static void on_api(void *user, const tidesim_api *call) {
    (void)user;
    if (sc_now_in != SC_OUTSIDE) {
        if (call->enter) {
            sc_n_driver_calls_inside++;
            sc_misuse("%s was called inside of a callback", call->name);
        }
        return;
    }
    if (!call->enter) sc_after_call(call);
    if (!is_enabled(CUPTI_CB_DOMAIN_DRIVER_API, call->cbid)) return;
    const CUpti_CallbackData data = {.callbackSite = call->enter ? CUPTI_API_ENTER : CUPTI_API_EXIT,
                                     .functionName = call->name,
                                     .functionParams = call->params,
                                     .functionReturnValue = call->result,
                                     .context = call->handle,
                                     .contextUid = call->context,
                                     .correlationData = call->cookie,
                                     .correlationId = call->correlation};
    call_back(CUPTI_CB_DOMAIN_DRIVER_API, call->cbid, &data);
}

/// NULL: a free entry.
static size_t context_at(CUcontext handle) {
    size_t i = 0;
    while (i < MAX_CONTEXTS && sub.contexts[i].handle != handle) i++;
    return i;
}

static void on_context(void *user, const tidesim_life *event) {
    (void)user;
    pthread_mutex_lock(&sub.lock);
    const size_t i = context_at(event->created ? NULL : event->handle);
    if (i < MAX_CONTEXTS) {
        sub.contexts[i].handle = event->created ? event->handle : NULL;
        sub.contexts[i].id = event->context;
        sub.contexts[i].device = event->device;
    }
    pthread_mutex_unlock(&sub.lock);
    const CUpti_CallbackId id =
        event->created ? CUPTI_CBID_RESOURCE_CONTEXT_CREATED : CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING;
    const CUpti_ResourceData data = {.context = event->handle};
    if (is_enabled(CUPTI_CB_DOMAIN_RESOURCE, id)) call_back(CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

static void on_stream(void *user, const tidesim_life *event) {
    (void)user;
    const CUpti_CallbackId id =
        event->created ? CUPTI_CBID_RESOURCE_STREAM_CREATED : CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING;
    const CUpti_ResourceData data = {.context = event->handle, .resourceHandle.stream = event->stream_handle};
    if (is_enabled(CUPTI_CB_DOMAIN_RESOURCE, id)) call_back(CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

uint32_t sc_live_contexts(uint32_t *first) {
    uint32_t n = 0;
    *first = 0;
    pthread_mutex_lock(&sub.lock);
    for (size_t i = 0; i < MAX_CONTEXTS; i++) {
        if (sub.contexts[i].handle == NULL) continue;
        if (n++ == 0 || sub.contexts[i].id < *first) *first = sub.contexts[i].id;
    }
    pthread_mutex_unlock(&sub.lock);
    return n;
}

// ---- subscriber ----

static const tidesim_hooks hooks = {
    .api = on_api, .memory = sc_on_memory, .pool = sc_on_pool, .context = on_context, .stream = on_stream};

static void report(void) {
    const char *pattern = sc_env("TIDECUPTI_REPORT");
    if (pattern == NULL) return;
    char path[4096];
    const char *mark = strstr(pattern, "%p");
    if (mark != NULL)
        snprintf(path, sizeof path, "%.*s%d%s", (int)(mark - pattern), pattern, (int)getpid(), mark + 2);
    else
        snprintf(path, sizeof path, "%s", pattern);
    FILE *f = fopen(path, "we");
    if (f == NULL) return;
    fprintf(f, "misuse=%llu calls_inside=%llu records=%llu driver_misuse=%llu\n", (unsigned long long)sc_n_misuse,
            (unsigned long long)sc_n_driver_calls_inside, (unsigned long long)sc_n_records(),
            (unsigned long long)tidesim_misuse());
    fclose(f);
}

static CUptiResult refuse(const CUpti_SubscriberParams *params, const char *by) {
    if (params != NULL && params->oldSubscriberName != NULL)
        snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s", by);
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

SC_API CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *user,
                                     CUpti_SubscriberParams *params) {
    sc_may_call("cuptiSubscribe_v2", false);
    const char *other = sc_env("TIDECUPTI_OTHER");
    char by[80];
    if (subscriber == NULL || (params != NULL && params->structSize == 0)) return CUPTI_ERROR_INVALID_PARAMETER;
    if (sub.is_there) return refuse(params, sub.name);
    snprintf(by, sizeof by, "CUPTI for %s", other != NULL ? other : "");
    if (other != NULL) return refuse(params, by);
    snprintf(sub.name, sizeof sub.name, "CUPTI for %s",
             params != NULL && params->subscriberName != NULL ? params->subscriberName : "");
    sub.callback = callback;
    sub.user = user;
    sub.is_there = true;
    *subscriber = (CUpti_SubscriberHandle)(void *)&sub;
    static atomic_bool reports;
    if (!atomic_exchange(&reports, true)) atexit(report);
    tidesim_set_hooks(&hooks);
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *user) {
    return cuptiSubscribe_v2(subscriber, callback, user, NULL);
}

SC_API CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
    sc_may_call("cuptiUnsubscribe", false);
    if ((void *)subscriber != (void *)&sub || !sub.is_there) return CUPTI_ERROR_INVALID_PARAMETER;
    sub.is_there = false;
    memset((void *)sub.enabled, 0, sizeof sub.enabled);
    tidesim_set_hooks(NULL);
    return CUPTI_SUCCESS;
}

static bool is_subscriber(CUpti_SubscriberHandle s) { return sub.is_there && (void *)s == (void *)&sub; }

SC_API CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle s, CUpti_CallbackDomain domain,
                                       CUpti_CallbackId id) {
    sc_may_call("cuptiEnableCallback", true);
    if (!is_subscriber(s) || domain <= 0 || domain >= CUPTI_CB_DOMAIN_SIZE || id >= 1024)
        return CUPTI_ERROR_INVALID_PARAMETER;
    sub.enabled[domain][id] = enable != 0;
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle s, CUpti_CallbackDomain domain) {
    if (!is_subscriber(s) || domain <= 0 || domain >= CUPTI_CB_DOMAIN_SIZE) return CUPTI_ERROR_INVALID_PARAMETER;
    for (size_t i = 0; i < 1024; i++) sub.enabled[domain][i] = enable != 0;
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle s) {
    CUptiResult result = CUPTI_SUCCESS;
    for (int d = 1; d < CUPTI_CB_DOMAIN_SIZE && result == CUPTI_SUCCESS; d++) result = cuptiEnableDomain(enable, s, d);
    return result;
}

SC_API CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle s, CUpti_CallbackDomain domain,
                                         CUpti_CallbackId id) {
    if (!is_subscriber(s) || enable == NULL || domain <= 0 || domain >= CUPTI_CB_DOMAIN_SIZE || id >= 1024)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *enable = sub.enabled[domain][id];
    return CUPTI_SUCCESS;
}

// ---- ids, clock, versions ----

SC_API CUptiResult cuptiGetVersion(uint32_t *version) {
    if (version == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiGetResultString(CUptiResult result, const char **text) {
    if (text == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS"
            : result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiGetTimestamp(uint64_t *timestamp) {
    if (timestamp == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    *timestamp = sc_now_ns();
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiGetContextId(CUcontext context, uint32_t *id) {
    sc_may_call("cuptiGetContextId", true);
    if (id == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    *id = tidesim_context_id(context);
    return *id != 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

SC_API CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *id) {
    sc_may_call("cuptiGetDeviceId", true);
    CUptiResult result = CUPTI_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&sub.lock);
    const size_t i = context != NULL ? context_at(context) : MAX_CONTEXTS;
    if (i < MAX_CONTEXTS) {
        *id = sub.contexts[i].device;
        result = CUPTI_SUCCESS;
    }
    pthread_mutex_unlock(&sub.lock);
    return result;
}

SC_API CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread, uint32_t *id) {
    sc_may_call("cuptiGetStreamIdEx", true);
    if (id == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    const uint32_t driver_id = tidesim_stream_id(context, stream);
    if (driver_id == 0) return CUPTI_ERROR_INVALID_STREAM;
    *id = stream == NULL && per_thread ? 15 : sc_stream_id(driver_id);
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name) {
    (void)domain, (void)id;
    if (name == NULL) return CUPTI_ERROR_INVALID_PARAMETER;
    *name = "not known to the simulation";
    return CUPTI_SUCCESS;
}

SC_API CUptiResult cuptiFinalize(void) {
    sc_misuse("cuptiFinalize was called");
    return CUPTI_SUCCESS;
}
