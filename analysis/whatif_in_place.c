// SPDX-License-Identifier: MIT
//
// whatif, why an operator does not overwrite what it reads: what the operators' table says (alias_facts.h), held
// against the lifetimes. See whatif.h.
#include <inttypes.h>
#include <string.h>

#include "analysis/whatif.h"
#include "core/base/host_alloc.h"
#include "core/runtime/alias_facts.h"

static const tide_lifetime *lifetime_of(const tide_lifetimes *lt, uint32_t value, uint32_t *index) {
    for (uint32_t i = 0; i < lt->n; i++) {
        if (lt->items[i].value != value) continue;
        *index = i;
        return &lt->items[i];
    }
    return NULL;
}

/// The last step at which anything needs bytes of the storage that the tensor is in.
static int64_t storage_end(const tide_lifetimes *lt, uint32_t i) {
    const uint32_t root = tide_lifetimes_root(lt, i, NULL);
    int64_t end = 0;
    for (uint32_t k = 0; k < lt->n; k++) {
        if (tide_lifetimes_root(lt, k, NULL) == root && lt->items[k].end_step > end) end = lt->items[k].end_step;
    }
    return end;
}

/// Why it does not overwrite this input, behind what is said of others; or that it could.
static void say_input(const tide_lifetimes *lt, const tide_lifetime *made, const tide_lifetime *input, uint32_t i,
                      tide_in_place *out) {
    tide_text *why = &out->why;
    const int64_t end = storage_end(lt, i);
    if (why->len > 0) tide_text_add(why, "; ");
    if (input->persistent) {
        tide_text_addf(why, "it could overwrite '%s', which has memory of its own", input->name);
    } else if (end > made->begin_step + 1) {
        tide_text_addf(why, "it could overwrite '%s', whose bytes are in use until step %" PRId64, input->name,
                       end - 1);
    } else if (input->size_bytes < made->size_bytes) {
        tide_text_addf(why, "it could overwrite '%s', which is smaller", input->name);
    } else if (strlen(input->name) < sizeof out->other) {
        memcpy(out->other, input->name, strlen(input->name) + 1);
    }
}

tide_status tide_whatif_in_place(const tide_program *program, const tide_lifetimes *lt, const char *tensor,
                                 tide_in_place *out, tide_error *err) {
    tide_alias_facts facts = {0};
    char wanted[sizeof out->other];
    uint32_t i, index;
    bool found = false;
    memcpy(wanted, out->other, sizeof wanted);
    out->other[0] = '\0';
    TIDE_TRY(tide__whatif_find(lt, tensor, &i, err));
    const tide_lifetime *made = &lt->items[i];
    if (made->persistent || made->value == TIDE_NO_INDEX || made->alias != TIDE_ALIAS_NONE || made->begin_step < 0 ||
        (uint64_t)made->begin_step >= program->n_steps)
        return TIDE_OK;
    TIDE_TRY(tide_alias_facts_make(program, &facts, err));
    for (size_t k = facts.first[made->begin_step]; k < facts.first[made->begin_step + 1] && out->other[0] == '\0';
         k++) {
        const tide_alias_fact *f = &facts.list[k];
        if (!f->may_overwrite || f->out_value != made->value) continue;
        const tide_lifetime *input = lifetime_of(lt, f->in_value, &index);
        if (input == NULL || (wanted[0] != '\0' && strcmp(input->name, wanted) != 0)) continue;
        say_input(lt, made, input, index, out);
        found = true;
    }
    if (out->other[0] != '\0') tide_text_deinit(&out->why); // what was said of an input before it
    if (!found && wanted[0] != '\0') tide_text_addf(&out->why, "its operator cannot overwrite '%s'", wanted);
    if (!found && wanted[0] == '\0') tide_text_add(&out->why, "its operator cannot overwrite an input");
    tide_alias_facts_deinit(&facts);
    return out->why.failed ? TIDE_NO_MEMORY(err, "for an explanation") : TIDE_OK;
}
