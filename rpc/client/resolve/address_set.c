/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sets of addresses. The order in which servers were said is kept, for it may mean something;
 * which of too many are left out is decided by their bytes, so that it is the same ones each time.
 */

#include "rpc/client/resolve/address_set.h"
#include "base/alloc.h"
#include "transport/address/address.h"
#include <bowline/limits.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_scheme(const char *address)
{
    size_t n_scheme = 0;

    (void)bow__address_scheme(address, &n_scheme);
    return address + n_scheme;
}

static int compare_texts(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "");
}

int bow__resolver_address_compare(const struct bow_resolver_address *a,
                                  const struct bow_resolver_address *b)
{
    int order = strcmp(skip_scheme(a->address), skip_scheme(b->address));

    order = order != 0 ? order : compare_texts(a->server_name, b->server_name);
    return order != 0 ? order : compare_texts(a->locality, b->locality);
}

/* Choosing */

struct choice {
    const struct bow_resolver_address *said; /* where it stands there is its place */
    uint32_t weight;
};

static int by_bytes(const void *a, const void *b)
{
    return bow__resolver_address_compare(((const struct choice *)a)->said,
                                         ((const struct choice *)b)->said);
}

static int by_place(const void *a, const void *b)
{
    const struct choice *first = a;
    const struct choice *second = b;

    return (first->said > second->said) - (first->said < second->said);
}

/* Sorted by their bytes: leave each once. */
static size_t merge(struct choice *choices, size_t n)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct choice *last = n_kept > 0 ? &choices[n_kept - 1] : NULL;
        if (last == NULL || by_bytes(last, &choices[i]) != 0) {
            choices[n_kept++] = choices[i];
            continue;
        }
        last->weight = last->weight > choices[i].weight ? last->weight : choices[i].weight;
        if (choices[i].said < last->said) {
            last->said = choices[i].said;
        }
    }
    return n_kept;
}

static size_t choose(struct choice *choices, const struct bow_resolver_address *addresses, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        choices[i] =
            (struct choice){&addresses[i], addresses[i].weight != 0 ? addresses[i].weight : 1};
    }
    qsort(choices, n, sizeof(*choices), by_bytes);
    return merge(choices, n);
}

/* Copying */

static size_t bytes_of(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static size_t size_of(const struct choice *choices, uint32_t n, const char *service_config)
{
    size_t size = sizeof(struct bow__address_set) +
                  n * (sizeof(struct bow_resolver_address) + sizeof(uint32_t)) +
                  bytes_of(service_config);

    for (uint32_t i = 0; i < n; i++) {
        size += bytes_of(choices[i].said->address) + bytes_of(choices[i].said->server_name) +
                bytes_of(choices[i].said->locality);
    }
    return size;
}

static const char *copy(char **to, const char *text)
{
    size_t n = bytes_of(text);
    char *copied = *to;

    if (n == 0) {
        return NULL;
    }
    memcpy(copied, text, n);
    *to += n;
    return copied;
}

static const char *said_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* A few hundred at most, and their order by bytes is nearly made. */
static void sort_indices(const struct bow__address_set *set, uint32_t *sorted)
{
    for (uint32_t i = 0; i < set->n; i++) {
        uint32_t low = 0;
        for (uint32_t high = i; low < high;) {
            uint32_t middle = low + (high - low) / 2;
            bool is_less =
                bow__resolver_address_compare(&set->items[sorted[middle]], &set->items[i]) < 0;
            low = is_less ? middle + 1 : low;
            high = is_less ? high : middle;
        }
        memmove(&sorted[low + 1], &sorted[low], (i - low) * sizeof(*sorted));
        sorted[low] = i;
    }
}

/* `choices`: in the order in which they were said. */
static void fill(struct bow__address_set *set, const struct choice *choices,
                 const char *service_config)
{
    uint32_t *sorted = (uint32_t *)(void *)&set->items[set->n];
    char *text = (char *)&sorted[set->n];

    for (uint32_t i = 0; i < set->n; i++) {
        const struct bow_resolver_address *said = choices[i].said;
        set->items[i] = (struct bow_resolver_address){
            .address = copy(&text, skip_scheme(said->address)),
            .server_name = copy(&text, said_or_null(said->server_name)),
            .locality = copy(&text, said_or_null(said->locality)),
            .weight = choices[i].weight,
        };
    }
    set->service_config = copy(&text, service_config);
    set->sorted = sorted;
    sort_indices(set, sorted);
}

/* `n_all`: chosen ones, by their bytes. */
static struct bow__address_set *make(struct bow_context *context, struct choice *choices,
                                     size_t n_all, const char *service_config)
{
    uint32_t n =
        n_all < BOW_LIMIT_RESOLVED_ADDRESSES ? (uint32_t)n_all : BOW_LIMIT_RESOLVED_ADDRESSES;
    size_t size = size_of(choices, n, service_config);
    struct bow__address_set *set = bow__alloc_zero(context, size);

    if (set == NULL) {
        return NULL;
    }
    set->n_bytes = size;
    set->n = n;
    set->n_cut = n_all - n;
    qsort(choices, n, sizeof(*choices), by_place);
    fill(set, choices, service_config);
    return set;
}

int bow__address_set_new(struct bow_context *context, const struct bow_resolver_address *addresses,
                         size_t n, const char *service_config, struct bow__address_set **ret_set)
{
    size_t n_choices = n > 0 ? n : 1;
    struct choice *choices = bow__alloc_array(context, n_choices, sizeof(*choices));

    if (choices == NULL) {
        return -ENOMEM;
    }
    struct bow__address_set *set =
        make(context, choices, choose(choices, addresses, n), service_config);
    bow__free(context, choices, n_choices * sizeof(*choices));
    if (set == NULL) {
        return -ENOMEM;
    }
    *ret_set = set;
    return 0;
}

void bow__address_set_free(struct bow_context *context, struct bow__address_set *set)
{
    if (set != NULL) {
        bow__free(context, set, set->n_bytes);
    }
}

int bow__address_set_find(const struct bow__address_set *set,
                          const struct bow_resolver_address *address)
{
    uint32_t low = 0;

    for (uint32_t high = set->n; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        int order = bow__resolver_address_compare(&set->items[set->sorted[middle]], address);
        if (order == 0) {
            return (int)set->sorted[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return -1;
}
