/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Policies by method, service, or for everything.
 */

#include "rpc/client/retry/policy_table.h"
#include "base/alloc.h"

#include <bowline/limits.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Who says the names is the program, or who it believes about its servers. */
#define SEED UINT64_C(0xD6E8FEB86659FD93)

struct bow__policy_entry {
    struct bow__policy_entry *next;
    struct bow__method_policy policy;
    size_t n_name;
    char name[];
};

static size_t bytes_of(const struct bow__policy_entry *entry)
{
    return sizeof(*entry) + entry->n_name + 1;
}

void bow__policy_table_init(struct bow__policy_table *table, struct bow_context *context)
{
    *table = (struct bow__policy_table){.context = context};
    bow__bytes_map_init(&table->by_name, context, SEED);
}

void bow__policy_table_fini(struct bow__policy_table *table)
{
    while (table->entries != NULL) {
        struct bow__policy_entry *entry = table->entries;
        table->entries = entry->next;
        bow__free(table->context, entry, bytes_of(entry));
    }
    if (table->context != NULL) {
        bow__bytes_map_fini(&table->by_name);
    }
    *table = (struct bow__policy_table){0};
}

int bow__policy_table_add(struct bow__policy_table *table, const char *service, const char *method,
                          const struct bow__method_policy *policy)
{
    size_t n_name = strlen(service) + 1 + strlen(method);

    if (table->n >= BOW_LIMIT_METHOD_CONFIGS) {
        return -ENOSPC;
    }
    struct bow__policy_entry *entry = bow__alloc_zero(table->context, sizeof(*entry) + n_name + 1);
    if (entry == NULL) {
        return -ENOMEM;
    }
    entry->n_name = n_name;
    entry->policy = *policy;
    snprintf(entry->name, n_name + 1, "%s/%s", service, method);
    struct bow_slice name = {(const uint8_t *)entry->name, n_name};
    int rc = bow__bytes_map_get(&table->by_name, name) != NULL
                 ? -EEXIST
                 : bow__bytes_map_put(&table->by_name, name, entry);
    if (rc < 0) {
        bow__free(table->context, entry, bytes_of(entry));
        return rc;
    }
    entry->next = table->entries;
    table->entries = entry;
    table->n++;
    return 0;
}

static const struct bow__policy_entry *look(const struct bow__policy_table *table, const char *name,
                                            size_t n)
{
    return bow__bytes_map_get(&table->by_name, (struct bow_slice){(const uint8_t *)name, n});
}

const struct bow__method_policy *bow__policy_table_find(const struct bow__policy_table *table,
                                                        const char *path)
{
    const char *name = path + (path[0] == '/');
    const char *slash = strchr(name, '/');

    if (table->n == 0 || slash == NULL) {
        return NULL;
    }
    const struct bow__policy_entry *found = look(table, name, strlen(name));
    found = found != NULL ? found : look(table, name, (size_t)(slash - name) + 1);
    found = found != NULL ? found : look(table, "/", 1);
    return found != NULL ? &found->policy : NULL;
}
