// SPDX-License-Identifier: MIT
//
// read_trace: what a trace says, in C++: how high the memory was, and who held it then, by operator.
//
//     read_trace TRACE
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "tidemark/trace.h"

namespace {

struct close_trace {
    void operator()(tide_trace *t) const { tide_trace_close(t); }
};
using trace_ptr = std::unique_ptr<tide_trace, close_trace>;

/// A live set that is given back; so are the groups of it.
class live_set {
  public:
    ~live_set() { tide_live_set_deinit(&set_); }
    tide_status after(tide_trace *t, uint64_t event, tide_error *err) {
        return tide_trace_live_set_after(t, event, &set_, err);
    }
    tide_status print_groups(tide_group_by by, tide_error *err) const {
        tide_group *groups = nullptr;
        std::size_t n = 0;
        const tide_status st = tide_live_set_group(&set_, by, &groups, &n, err);
        for (std::size_t i = 0; st == TIDE_OK && i < n; i++)
            std::printf("%10" PRIu64 " bytes in %" PRIu64 " blocks  %s\n", groups[i].requested_bytes,
                        groups[i].n_blocks, groups[i].key);
        if (st == TIDE_OK) tide_groups_free(groups, n);
        return st;
    }

  private:
    tide_live_set set_ = {};
};

tide_status tell(const char *path, tide_error *err) {
    tide_trace *opened = nullptr;
    tide_status st = tide_trace_open(path, &opened, err);
    if (st != TIDE_OK) return st;
    const trace_ptr trace(opened);
    uint64_t bytes = 0, event = 0;
    st = tide_trace_run_peak(trace.get(), 0, -1, nullptr, &bytes, &event, nullptr, err);
    if (st != TIDE_OK) return st;
    std::printf("peak: %" PRIu64 " bytes at event %" PRIu64 "\n", bytes, event);
    live_set at_peak;
    st = at_peak.after(trace.get(), event, err);
    return st == TIDE_OK ? at_peak.print_groups(TIDE_BY_SCOPE, err) : st;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fputs("usage: read_trace TRACE\n", stderr);
        return 2;
    }
    tide_error err = TIDE_ERROR_INIT;
    if (tell(argv[1], &err) == TIDE_OK) return 0;
    std::fprintf(stderr, "error: %s\n", err.msg);
    return 1;
}
