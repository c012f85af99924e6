// SPDX-License-Identifier: MIT
//
// Physical memory (cuMemCreate) and where it is mapped. The device gives it at cuMemCreate and takes it back when the
// last handle is released and the last mapping is gone, so it is one block from there to there; it is shown at the
// address where it was mapped first, under the name cuMemMap, and at none under cuMemCreate while it is mapped nowhere.
//
//     cuMemCreate   handles 1, mappings 0    alloc (cuMemCreate)
//     cuMemMap      handles 1, mappings 1    end, alloc (cuMemMap, address)
//     cuMemRelease  handles 0, mappings 1    nothing: the mapping keeps it
//     cuMemUnmap    handles 0, mappings 0    end
//
// All with the lock of the recorder held.
#include "cuda/cupti/recorder.h"

static tide__cupti_ledger *ledger(void) { return &tide__cupti.ledger; }

static tide__cupti_block *of_handle(uint64_t handle) {
    return tide__cupti_ledger_find(ledger(), TIDE__CUPTI_PHYSICAL, handle, NULL);
}

static void show_at(tide__cupti_block *b, uint64_t address) {
    tide__cupti_tell_again(b, address, address != 0 ? "cuMemMap" : "cuMemCreate");
}

static void end_if_unused(tide__cupti_block *b) {
    if (b->n_handles + b->n_maps > 0) return;
    tide__cupti_tell_end(b, 0);
    tide__cupti_ledger_drop(ledger(), b);
}

void tide__cupti_name_lost(tide__cupti_block *b, tide__cupti_space space, uint64_t key) {
    tide__cupti_ledger_unbind(ledger(), space, key);
    if (space == TIDE__CUPTI_PHYSICAL)
        b->n_handles = 0;
    else if (b->n_maps > 0)
        b->n_maps--;
    end_if_unused(b);
}

void tide__cupti_created(const tide__cupti_call *c) {
    tide__cupti_block *b = tide__cupti_new_block(TIDE__CUPTI_PHYSICAL, c->handle, c->bytes);
    if (b == NULL) return;
    b->device = c->device;
    b->kind = c->device < 0 ? TIDE_KIND_HOST_PINNED : TIDE_KIND_DEFAULT;
    b->allocator = c->allocator;
    b->tag = c->tag;
    b->n_handles = 1;
    b->is_own = c->is_own;
    tide__cupti_tell_alloc(b, 0);
}

/// The handle of what is mapped at an address, once more: the same handle or a new one.
void tide__cupti_retained(const tide__cupti_call *c) {
    tide__cupti_block *b = of_handle(c->handle);
    if (b == NULL) {
        b = tide__cupti_ledger_find(ledger(), TIDE__CUPTI_ADDRESS, c->address, NULL);
        if (b == NULL || b->n_maps == 0) return;
        if (!tide__cupti_ledger_bind(ledger(), TIDE__CUPTI_PHYSICAL, c->handle, b->bytes, b)) {
            tide__cupti.counts.no_room++;
            return;
        }
    }
    b->n_handles++;
}

uint64_t tide__cupti_releasing(const tide__cupti_call *c) {
    const tide__cupti_block *b = of_handle(c->handle);
    return b != NULL ? b->serial : 0;
}

/// The driver may have given the same handle to another thread before this one was told that it is gone: then the
/// serial is another one, and cuMemCreate's callback has taken the name over already.
void tide__cupti_released(const tide__cupti_call *c, uint64_t serial) {
    tide__cupti_block *b = of_handle(c->handle);
    if (b == NULL || b->serial != serial || b->n_handles == 0) return;
    if (--b->n_handles == 0) tide__cupti_ledger_unbind(ledger(), TIDE__CUPTI_PHYSICAL, c->handle);
    end_if_unused(b);
}

void tide__cupti_mapped(const tide__cupti_call *c) {
    tide__cupti_block *b = of_handle(c->handle);
    if (b == NULL) return; // memory of another process
    tide__cupti_make_room(TIDE__CUPTI_ADDRESS, c->address);
    if (!tide__cupti_ledger_bind(ledger(), TIDE__CUPTI_ADDRESS, c->address, c->bytes, b)) {
        tide__cupti.counts.no_room++;
        return;
    }
    if (b->n_maps++ == 0) show_at(b, c->address);
}

/// Another address where the block is mapped; 0: none.
static uint64_t other_mapping(const tide__cupti_block *b) {
    const tide__cupti_ledger *l = ledger();
    const uint32_t number = (uint32_t)(b - l->blocks) + 1;
    for (size_t i = 0; i < l->n_slots; i++)
        if (l->keys[i].block == number && l->keys[i].space == TIDE__CUPTI_ADDRESS) return l->keys[i].key;
    return 0;
}

/// One call may take away several mappings that lie one behind the other.
void tide__cupti_unmapped(const tide__cupti_call *c) {
    const uint64_t end = c->address + c->bytes;
    uint64_t at = c->address, address, bytes;
    tide__cupti_block *b;
    while ((b = tide__cupti_ledger_first_in(ledger(), at, end, &address, &bytes)) != NULL) {
        tide__cupti_ledger_unbind(ledger(), TIDE__CUPTI_ADDRESS, address);
        at = address + bytes;
        if (b->n_maps == 0) continue; // no mapping: its own names are wrong, and it stays as it is
        b->n_maps--;
        if (b->n_handles + b->n_maps > 0 && b->address == address) show_at(b, b->n_maps > 0 ? other_mapping(b) : 0);
        end_if_unused(b);
    }
}
