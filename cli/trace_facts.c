// SPDX-License-Identifier: MIT
//
// The facts of a trace: what it holds, of whom, and what it lacks. See trace_view.h.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "cli/trace_view.h"
#include "core/base/host_alloc.h"

typedef struct run_peak {
    uint64_t bytes, event, t_ns;
} run_peak;

/// Everything that is told; [n_…] arrays are owned.
typedef struct facts {
    tide_trace_info info;
    cli_span span;
    cli_span whole;
    uint64_t peak_bytes, whole_bytes;
    cli_moment peak, whole_peak; // of the span, and of the whole trace
    tide_trace_kind *kinds;
    size_t n_kinds;
    tide_trace_run *runs;
    size_t n_runs;
    run_peak *run_peaks; // [n_runs]
    tide_trace_mark *marks;
    size_t n_marks;
} facts;

static tide_status read_facts(tide_trace *t, int64_t run_id, facts *f, tide_error *err) {
    TIDE_TRY(tide_trace_get_info(t, &f->info, err));
    TIDE_TRY(cli_trace_span(t, run_id, &f->span, err));
    TIDE_TRY(cli_trace_span(t, 0, &f->whole, err));
    TIDE_TRY(cli_moment_of(t, &f->span, "peak", &f->peak, err));
    TIDE_TRY(cli_moment_of(t, &f->whole, "peak", &f->whole_peak, err));
    TIDE_TRY(tide_trace_peak(t, f->span.run_id, -1, &f->peak_bytes, NULL, err));
    TIDE_TRY(tide_trace_peak(t, 0, -1, &f->whole_bytes, NULL, err));
    TIDE_TRY(tide_trace_kinds(t, run_id > 0 ? run_id : 0, &f->kinds, &f->n_kinds, err));
    TIDE_TRY(tide_trace_runs(t, &f->runs, &f->n_runs, err));
    TIDE_TRY(TIDE_NEW(&f->run_peaks, f->n_runs + 1, err, "for %zu runs", f->n_runs));
    for (size_t i = 0; i < f->n_runs; i++) {
        run_peak *p = &f->run_peaks[i];
        TIDE_TRY(tide_trace_run_peak(t, f->runs[i].id, -1, NULL, &p->bytes, &p->event, &p->t_ns, err));
    }
    return tide_trace_marks(t, &f->marks, &f->n_marks, err);
}

static void facts_deinit(facts *f) {
    tide_host_free(f->kinds);
    tide_host_free(f->runs);
    tide_host_free(f->run_peaks);
    tide_host_free(f->marks);
}

static const char *state_name(tide_trace_state s) {
    return s == TIDE_TRACE_COMPLETE ? "complete" : s == TIDE_TRACE_CUT_SHORT ? "cut short" : "recording";
}

/// A value of table meta; "" when it is not there.
static const char *meta(tide_trace *t, const char *key, char *buf, size_t buf_bytes) {
    if (tide_trace_meta(t, key, buf, buf_bytes, NULL) != TIDE_OK) buf[0] = '\0';
    return buf;
}

static uint64_t meta_number(tide_trace *t, const char *key) {
    char text[32];
    return strtoull(meta(t, key, text, sizeof text), NULL, 10);
}

/// Why a block that counts as never freed may have been freed; "" if there is no reason. An allocation that comes late,
/// after its own free, makes that free contradict the events before it, so it is refused, and the block stays.
static const char *leak_doubt(const tide_trace_info *i) {
    if (i->n_lost > 0) return "events were lost";
    return i->n_late > 0 && i->n_problems > 0 ? "events came late" : "";
}

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

// ---- text ----

static void print_origin(tide_trace *t, const cli_trace_options *o, const facts *f) {
    char path[4096], utc[64], tool[64], version[64], bytes[24], reason[512];
    printf("trace      %s, version %s, %s\n", cli_clean(o->path, path, sizeof path),
           meta(t, "version", tool, sizeof tool), state_name(f->info.state));
    if (f->info.reason[0] != '\0') printf("           %s\n", cli_clean(f->info.reason, reason, sizeof reason));
    meta(t, "created_utc", utc, sizeof utc);
    meta(t, "created_by", tool, sizeof tool);
    meta(t, "tool_version", version, sizeof version);
    char clean[3][64];
    if (utc[0] != '\0')
        printf("recorded   %s%s%s %s\n", cli_clean(utc, clean[0], sizeof clean[0]), tool[0] != '\0' ? " by " : "",
               cli_clean(tool, clean[1], sizeof clean[1]), cli_clean(version, clean[2], sizeof clean[2]));
    const uint64_t in_chunks = f->info.n_events - (f->info.first_kept_event - 1) - f->info.n_rows;
    printf("events     %" PRIu64 " in %s: %" PRIu64 " as rows, ", f->info.n_events,
           tide_format_bytes(f->info.file_bytes, bytes, sizeof bytes), f->info.n_rows);
    printf("%" PRIu64 " in %" PRIu64 " chunk%s\n", f->info.n_chunks > 0 ? in_chunks : 0, f->info.n_chunks,
           plural(f->info.n_chunks));
    if (f->info.first_kept_event > 1)
        printf("           the first %" PRIu64 " were left out to keep the file small; totals count them\n",
               f->info.first_kept_event - 1);
}

static void print_health(tide_trace *t, const facts *f) {
    const tide_trace_info *i = &f->info;
    char a[24], b[24], c[24], place[96];
    printf("span       %s: %" PRIu32 " process%s, %" PRIu32 " thread%s, %" PRIu32 " run%s\n",
           tide_format_ns(i->end_ns - i->begin_ns, "us", a, sizeof a), i->n_processes, i->n_processes == 1 ? "" : "es",
           i->n_threads, plural(i->n_threads), i->n_runs, plural(i->n_runs));
    printf("lost       %" PRIu64 " event%s on full rings\n", i->n_lost, plural(i->n_lost));
    printf("problems   %" PRIu64 " event%s that contradict another\n", i->n_problems, plural(i->n_problems));
    if (i->n_late > 0)
        printf("late       %" PRIu64 " event%s came later than the trace waited; their own times are in view late\n",
               i->n_late, plural(i->n_late));
    const char *doubt = i->n_leaked > 0 ? leak_doubt(i) : "";
    printf("blocks     %" PRIu64 ", %" PRIu64 " never freed%s%s%s\n", i->n_blocks, i->n_leaked,
           doubt[0] != '\0' ? "; " : "", doubt, doubt[0] != '\0' ? ": some may have been freed" : "");
    const uint64_t feed = meta_number(t, "feed_bytes"), own = meta_number(t, "own_peak_bytes");
    if (feed > 0)
        printf("recorder   rings %s, its own peak %s, threads waited %s\n", tide_format_bytes(feed, a, sizeof a),
               tide_format_bytes(own, b, sizeof b), tide_format_ns(meta_number(t, "blocked_ns"), "us", c, sizeof c));
    printf("peak       %s at %s\n", tide_format_bytes(f->peak_bytes, a, sizeof a),
           cli_moment_place(&f->peak, &f->span, place, sizeof place));
    if (f->span.run_id > 0 && f->whole_peak.t_ns != f->peak.t_ns)
        printf("whole      %s at %s\n", tide_format_bytes(f->whole_bytes, a, sizeof a),
               cli_moment_place(&f->whole_peak, &f->whole, place, sizeof place));
}

static void print_kinds(const facts *f) {
    static const cli_column columns[] = {
        {"kind", false, false},      {"device", false, false},   {"peak bytes", true, false}, {"reserved", true, false},
        {"at the end", true, false}, {"requested", true, false}, {"allocs", true, false},     {"frees", true, false}};
    cli_table table = {.columns = columns, .n_columns = sizeof columns / sizeof columns[0]};
    for (size_t k = 0; k < f->n_kinds; k++) {
        const tide_trace_kind *m = &f->kinds[k];
        cli_table_add(&table, tide_memory_kind_name(m->kind));
        cli_table_add(&table, m->device);
        cli_table_addf(&table, "%" PRIu64, m->peak_bytes);
        cli_table_addf(&table, "%" PRIu64, m->peak_reserved_bytes);
        cli_table_addf(&table, "%" PRIu64, m->live_at_end_bytes);
        cli_table_addf(&table, "%" PRIu64, m->requested_bytes);
        cli_table_addf(&table, "%" PRIu64, m->n_allocs);
        cli_table_addf(&table, "%" PRIu64, m->n_frees);
    }
    putchar('\n');
    cli_table_print(&table, "  ", stdout);
}

static void print_runs(const facts *f) {
    static const cli_column columns[] = {{"run", true, false},  {"model", false, true},  {"mode", false, false},
                                         {"plan", false, true}, {"begin", true, false},  {"took", true, false},
                                         {"peak", true, false}, {"planned", true, false}};
    cli_table table = {.columns = columns, .n_columns = sizeof columns / sizeof columns[0]};
    for (size_t i = 0; i < f->n_runs; i++) {
        const tide_trace_run *r = &f->runs[i];
        cli_table_addf(&table, "%" PRId64, r->id);
        cli_table_add(&table, r->model);
        cli_table_add(&table, r->mode);
        cli_table_add(&table, r->strategy[0] != '\0' ? r->strategy : "-");
        cli_table_add_ns(&table, cli_since(&f->span, r->begin_ns));
        cli_table_add_ns(&table, r->end_ns - r->begin_ns);
        cli_table_add_bytes(&table, f->run_peaks[i].bytes);
        if (r->has_plan)
            cli_table_add_bytes(&table, r->plan_bytes);
        else
            cli_table_add(&table, "-");
    }
    putchar('\n');
    cli_table_print(&table, "  ", stdout);
}

static void print_marks(const facts *f) {
    static const cli_column columns[] = {{"mark", false, true}, {"at", true, false}, {"event", true, false}};
    cli_table table = {.columns = columns, .n_columns = sizeof columns / sizeof columns[0]};
    for (size_t i = 0; i < f->n_marks; i++) {
        cli_table_add(&table, f->marks[i].name);
        cli_table_add_ns(&table, cli_since(&f->span, f->marks[i].t_ns));
        cli_table_addf(&table, "%" PRIu64, f->marks[i].event_id);
    }
    putchar('\n');
    cli_table_print(&table, "  ", stdout);
}

// ---- JSON ----

static json_t *peak_json(const cli_span *span, const cli_moment *peak, uint64_t bytes) {
    json_t *doc = json_object();
    json_object_set_new(doc, "bytes", cli_json_bytes(bytes));
    json_object_set_new(doc, "t_ns", cli_json_bytes(peak->t_ns));
    json_object_set_new(doc, "since_begin_ns", cli_json_bytes(cli_since(span, peak->t_ns)));
    json_object_set_new(doc, "event", cli_json_bytes(peak->event));
    json_object_set_new(doc, "run", span->run_id > 0 ? json_integer(span->run_id) : json_null());
    return doc;
}

static json_t *kinds_json(const facts *f) {
    json_t *list = json_array();
    for (size_t k = 0; k < f->n_kinds; k++) {
        const tide_trace_kind *m = &f->kinds[k];
        json_t *row = json_object();
        json_object_set_new(row, "kind", json_string(tide_memory_kind_name(m->kind)));
        json_object_set_new(row, "device", cli_json_text(m->device));
        json_object_set_new(row, "requested_bytes", cli_json_bytes(m->requested_bytes));
        json_object_set_new(row, "peak_bytes", cli_json_bytes(m->peak_bytes));
        json_object_set_new(row, "reserved_peak_bytes", cli_json_bytes(m->peak_reserved_bytes));
        json_object_set_new(row, "live_at_end_bytes", cli_json_bytes(m->live_at_end_bytes));
        json_object_set_new(row, "allocations", cli_json_bytes(m->n_allocs));
        json_object_set_new(row, "frees", cli_json_bytes(m->n_frees));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *runs_json(const facts *f) {
    json_t *list = json_array();
    for (size_t i = 0; i < f->n_runs; i++) {
        const tide_trace_run *r = &f->runs[i];
        json_t *row = json_object();
        json_object_set_new(row, "id", json_integer(r->id));
        json_object_set_new(row, "model", cli_json_text(r->model));
        json_object_set_new(row, "source", cli_json_text(r->source));
        json_object_set_new(row, "mode", cli_json_text(r->mode));
        json_object_set_new(row, "strategy", r->strategy[0] != '\0' ? cli_json_text(r->strategy) : json_null());
        json_object_set_new(row, "device", cli_json_text(r->device));
        json_object_set_new(row, "begin_ns", cli_json_bytes(r->begin_ns));
        json_object_set_new(row, "end_ns", cli_json_bytes(r->end_ns));
        json_object_set_new(row, "peak_bytes", cli_json_bytes(f->run_peaks[i].bytes));
        json_object_set_new(row, "peak_since_begin_ns", cli_json_bytes(cli_since(&f->span, f->run_peaks[i].t_ns)));
        json_object_set_new(row, "peak_event", cli_json_bytes(f->run_peaks[i].event));
        json_object_set_new(row, "plan_bytes", r->has_plan ? cli_json_bytes(r->plan_bytes) : json_null());
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *marks_json(const facts *f) {
    json_t *list = json_array();
    for (size_t i = 0; i < f->n_marks; i++) {
        json_t *row = json_object();
        json_object_set_new(row, "name", cli_json_text(f->marks[i].name));
        json_object_set_new(row, "t_ns", cli_json_bytes(f->marks[i].t_ns));
        json_object_set_new(row, "since_begin_ns", cli_json_bytes(cli_since(&f->span, f->marks[i].t_ns)));
        json_object_set_new(row, "event", cli_json_bytes(f->marks[i].event_id));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *meta_json(tide_trace *t, const char *key) {
    char text[256];
    return meta(t, key, text, sizeof text)[0] != '\0' ? cli_json_text(text) : json_null();
}

static int facts_json(tide_trace *t, const cli_trace_options *o, const facts *f) {
    const tide_trace_info *i = &f->info;
    json_t *doc = cli_json_document("trace_facts");
    json_object_set_new(doc, "file", cli_json_text(o->path));
    json_object_set_new(doc, "trace_version", cli_json_bytes(meta_number(t, "version")));
    json_object_set_new(doc, "state", json_string(state_name(i->state)));
    json_object_set_new(doc, "reason", i->reason[0] != '\0' ? cli_json_text(i->reason) : json_null());
    json_object_set_new(doc, "created_by", meta_json(t, "created_by"));
    json_object_set_new(doc, "tool_version", meta_json(t, "tool_version"));
    json_object_set_new(doc, "created_utc", meta_json(t, "created_utc"));
    json_object_set_new(doc, "file_bytes", cli_json_bytes(i->file_bytes));
    json_object_set_new(doc, "begin_ns", cli_json_bytes(i->begin_ns));
    json_object_set_new(doc, "end_ns", cli_json_bytes(i->end_ns));
    json_object_set_new(doc, "events", cli_json_bytes(i->n_events));
    json_object_set_new(doc, "rows", cli_json_bytes(i->n_rows));
    json_object_set_new(doc, "chunks", cli_json_bytes(i->n_chunks));
    json_object_set_new(doc, "first_kept_event", cli_json_bytes(i->first_kept_event));
    json_object_set_new(doc, "processes", json_integer(i->n_processes));
    json_object_set_new(doc, "threads", json_integer(i->n_threads));
    json_object_set_new(doc, "lost", cli_json_bytes(i->n_lost));
    json_object_set_new(doc, "problems", cli_json_bytes(i->n_problems));
    json_object_set_new(doc, "late", cli_json_bytes(i->n_late));
    json_object_set_new(doc, "blocks", cli_json_bytes(i->n_blocks));
    json_object_set_new(doc, "leaks", cli_json_bytes(i->n_leaked));
    json_object_set_new(doc, "leaks_uncertain", json_boolean(leak_doubt(i)[0] != '\0'));
    json_object_set_new(doc, "feed_bytes", cli_json_bytes(meta_number(t, "feed_bytes")));
    json_object_set_new(doc, "own_peak_bytes", cli_json_bytes(meta_number(t, "own_peak_bytes")));
    json_object_set_new(doc, "blocked_ns", cli_json_bytes(meta_number(t, "blocked_ns")));
    json_object_set_new(doc, "peak", peak_json(&f->span, &f->peak, f->peak_bytes));
    json_object_set_new(doc, "whole_peak", peak_json(&f->whole, &f->whole_peak, f->whole_bytes));
    json_object_set_new(doc, "kinds", kinds_json(f));
    json_object_set_new(doc, "runs", runs_json(f));
    json_object_set_new(doc, "marks", marks_json(f));
    return cli_json_print(doc);
}

int cli_trace_facts(tide_trace *t, const cli_trace_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    facts f = {0};
    int code = CLI_EXIT_OK;
    if (read_facts(t, o->run_id, &f, &err) != TIDE_OK) {
        code = cli_fail(&err);
    } else if (o->json) {
        code = facts_json(t, o, &f);
    } else {
        print_origin(t, o, &f);
        print_health(t, &f);
        if (f.n_kinds > 0) print_kinds(&f);
        if (f.n_runs > 0) print_runs(&f);
        if (f.n_marks > 0) print_marks(&f);
    }
    facts_deinit(&f);
    return code;
}

// ---- check ----

/// What a sound file does not hold: one finding for each.
static void find_gaps(const tide_trace_info *i, tide_text *out) {
    if (i->state == TIDE_TRACE_CUT_SHORT)
        tide_text_addf(out, "recording ended early: %s\n", i->reason[0] != '\0' ? i->reason : "no reason is noted");
    if (i->state == TIDE_TRACE_RECORDING) tide_text_add(out, "it is not finished\n");
    if (i->n_lost > 0)
        tide_text_addf(out, "%" PRIu64 " event%s lost on full rings\n", i->n_lost, i->n_lost == 1 ? " was" : "s were");
    if (i->n_problems > 0)
        tide_text_addf(out, "%" PRIu64 " event%s another: table problem\n", i->n_problems,
                       i->n_problems == 1 ? " contradicts" : "s contradict");
}

static json_t *lines_json(const char *text) {
    json_t *list = json_array();
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        char *line = tide_host_strndup(text, (size_t)(end - text));
        json_array_append_new(list, cli_json_text(line));
        tide_host_free(line);
    }
    return list;
}

int cli_trace_check(tide_trace *t, const cli_trace_options *o) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace_info info;
    if (tide_trace_check(t, &err) != TIDE_OK || tide_trace_get_info(t, &info, &err) != TIDE_OK) return cli_fail(&err);
    tide_text findings = {0};
    find_gaps(&info, &findings);
    const bool whole = findings.len == 0;
    int code = CLI_EXIT_OK;
    if (o->json) {
        json_t *doc = cli_json_document("trace_check");
        json_object_set_new(doc, "file", cli_json_text(o->path));
        json_object_set_new(doc, "verdict", json_string(whole ? "pass" : "fail"));
        json_object_set_new(doc, "events", cli_json_bytes(info.n_events));
        json_object_set_new(doc, "late", cli_json_bytes(info.n_late));
        json_object_set_new(doc, "findings", lines_json(tide_text_str(&findings)));
        code = cli_json_print(doc);
    } else {
        char path[4096];
        printf("%s: sound, %" PRIu64 " event%s%s\n%s", cli_clean(o->path, path, sizeof path), info.n_events,
               plural(info.n_events), whole ? "" : ", but not whole", tide_text_str(&findings));
        // Nothing is missing then: each is kept with both of its times.
        if (info.n_late > 0)
            printf("%" PRIu64 " event%s later than others that happened after %s: view late\n", info.n_late,
                   info.n_late == 1 ? " came" : "s came", info.n_late == 1 ? "it" : "them");
    }
    tide_text_deinit(&findings);
    return code == CLI_EXIT_OK && !whole ? CLI_EXIT_CHECK_FAILED : code;
}
