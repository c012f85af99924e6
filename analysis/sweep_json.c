// SPDX-License-Identifier: MIT
//
// A sweep as `tidemark.sweep`, version 1. See sweep.h; docs/schemas/sweep.json is the schema.
#include "analysis/sweep.h"
#include "core/base/utf8.h"

static json_t *number(uint64_t value) { return json_integer((json_int_t)value); }
static json_t *number_if(bool known, uint64_t value) { return known ? number(value) : json_null(); }

/// Bytes that are no UTF-8 become U+FFFD: JSON has no other strings.
static json_t *string(const char *text) {
    tide_text clean = {0};
    uint32_t cp;
    for (size_t step; (step = tide_utf8_decode(text, &cp)) > 0; text += step) {
        if (cp == TIDE_UTF8_BAD)
            tide_text_add(&clean, TIDE_UTF8_REPLACEMENT);
        else
            tide_text_add_n(&clean, text, step);
    }
    json_t *value = clean.failed ? NULL : json_string(tide_text_str(&clean));
    tide_text_deinit(&clean);
    return value;
}

/// Whether all of it could be put; a NULL value is a failure.
static bool put(json_t *object, const char *key, json_t *value) {
    return value != NULL && json_object_set_new(object, key, value) == 0;
}

static json_t *point_json(const tide_sweep *s, const tide_sweep_point *p) {
    json_t *o = json_object();
    const bool known = p->error == NULL, swept = s->extent != NULL && s->extent[0] != '\0';
    const bool good =
        o != NULL && put(o, "model", string(p->model)) && put(o, "sizes", string(p->sizes)) &&
        put(o, "strategy", string(p->strategy)) && put(o, "align_bytes", number(p->align_bytes)) &&
        put(o, "value", number_if(swept, p->value)) && put(o, "total_bytes", number_if(known, p->total_bytes)) &&
        put(o, "planned_bytes", number_if(known, p->planned_bytes)) &&
        put(o, "weights_bytes", number_if(known, p->weights_bytes)) &&
        put(o, "io_bytes", number_if(known, p->io_bytes)) && put(o, "other_bytes", number_if(known, p->other_bytes)) &&
        put(o, "naive_bytes", number_if(known, p->naive_bytes)) &&
        put(o, "lower_bound_bytes", number_if(known, p->lower_bound_bytes)) &&
        put(o, "proved_bytes", number_if(known, p->proved_bytes)) &&
        put(o, "proven", known ? json_boolean(p->proven) : json_null()) &&
        put(o, "measured_peak_bytes", number_if(p->measured, p->measured_peak_bytes)) &&
        put(o, "plan_time_ns", number_if(known, p->plan_time_ns)) &&
        put(o, "time_ns", number_if(p->measured, p->time_ns)) &&
        put(o, "error", p->error != NULL ? string(p->error) : json_null()) && put(o, "rank", number(p->rank));
    if (good) return o;
    json_decref(o);
    return NULL;
}

static json_t *series_json(const tide_sweep_series *series) {
    json_t *o = json_object();
    const bool good = o != NULL && put(o, "model", string(series->model)) && put(o, "sizes", string(series->sizes)) &&
                      put(o, "strategy", string(series->strategy)) &&
                      put(o, "align_bytes", number(series->align_bytes)) && put(o, "from", number(series->from)) &&
                      put(o, "n", number(series->n));
    if (good) return o;
    json_decref(o);
    return NULL;
}

static json_t *answer_json(const tide_sweep_answer *a) {
    json_t *o = json_object();
    const bool good = o != NULL && put(o, "series", number(a->series)) &&
                      put(o, "budget_bytes", number(a->budget_bytes)) &&
                      put(o, "none_fits", json_boolean(a->none_fits)) && put(o, "is_open", json_boolean(a->is_open)) &&
                      put(o, "value", number_if(!a->none_fits, a->value)) &&
                      put(o, "total_bytes", number_if(!a->none_fits, a->total_bytes)) &&
                      put(o, "next_value", number_if(!a->is_open, a->next_value)) &&
                      put(o, "next_bytes", number_if(!a->is_open, a->next_bytes)) &&
                      put(o, "ran", a->tried && !a->none_fits ? json_boolean(a->ran) : json_null()) &&
                      put(o, "next_ran", a->tried && !a->is_open ? json_boolean(a->next_ran) : json_null());
    if (good) return o;
    json_decref(o);
    return NULL;
}

static bool append(json_t *list, json_t *value) {
    return list != NULL && value != NULL && json_array_append_new(list, value) == 0;
}

static bool put_lists(json_t *doc, const tide_sweep *s) {
    json_t *points = json_array(), *series = json_array(), *answers = json_array();
    bool good = points != NULL && series != NULL && answers != NULL;
    for (size_t i = 0; good && i < s->n; i++) good = append(points, point_json(s, &s->points[i]));
    for (size_t i = 0; good && i < s->n_series; i++) good = append(series, series_json(&s->series[i]));
    for (size_t i = 0; good && i < s->n_answers; i++) good = append(answers, answer_json(&s->answers[i]));
    good &= put(doc, "points", points);
    good &= put(doc, "series", series);
    good &= put(doc, "answers", answers);
    return good;
}

json_t *tide_sweep_to_json(const tide_sweep *s) {
    json_t *doc = json_object();
    const bool good = doc != NULL && put(doc, "schema", json_string("tidemark.sweep")) &&
                      put(doc, "version", number(1)) &&
                      put(doc, "extent", string(s->extent != NULL ? s->extent : "")) &&
                      put(doc, "n_ranks", number(s->n_ranks)) && put_lists(doc, s);
    if (good) return doc;
    json_decref(doc);
    return NULL;
}
