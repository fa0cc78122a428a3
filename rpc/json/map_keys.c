/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The order of map keys of any kind. Knows nothing of values. */
#include "rpc/json/map_keys.h"
#include "rpc/messages/map_key.h"
#include <stdlib.h>

bool bow__map_same_key(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    return bow__map_entry_order(a, b) == 0;
}

const ProtobufCMessage *bow__map_find_later(ProtobufCMessage *const *entries, size_t n, size_t i)
{
    for (size_t later = i + 1; later < n; later++) {
        if (bow__map_entry_order(entries[i], entries[later]) == 0) {
            return entries[later];
        }
    }
    return NULL;
}

static int compare_places(const void *a, const void *b)
{
    bow__map_place first = *(const bow__map_place *)a, second = *(const bow__map_place *)b;
    int order = bow__map_entry_order(*first, *second);

    return order != 0 ? order : (first > second) - (first < second);
}

void bow__map_sort(ProtobufCMessage *const *entries, size_t n, bow__map_place *places)
{
    for (size_t i = 0; i < n; i++) {
        places[i] = &entries[i];
    }
    qsort(places, n, sizeof places[0], compare_places);
}
