/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Files and their imports as a list without repetitions, and the search in their tables. */
#include "rpc/json/json_types.h"
#include "rpc/messages/storage.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct list {
    const struct bow_file **files;
    size_t n;
    struct bow_arena *arena; /* NULL: malloc() */
};

/* Programs have hundreds of files at most: each is compared with each. */
static bool add(struct list *list, const struct bow_file *file)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->files[i] == file) {
            return true;
        }
    }
    if (file == NULL) { /* an import that is not linked */
        return true;
    }
    const struct bow_file **files =
        bow__storage_extend(list->arena, (void *)list->files, list->n, sizeof(file));
    if (files == NULL) {
        return false;
    }
    files[list->n++] = file;
    list->files = files;
    return true;
}

static int make_list(struct bow__json_types *types, struct bow__arena *arena)
{
    struct list list = {.arena = bow__arena_as_public(arena)};
    bool is_made = true;

    for (size_t i = 0; i < types->n_given && is_made; i++) {
        is_made = add(&list, types->given[i]);
    }
    /* What was added is looked at in its turn. */
    for (size_t i = 0; i < list.n && is_made; i++) {
        for (size_t k = 0; k < list.files[i]->n_imports && is_made; k++) {
            is_made = add(&list, list.files[i]->imports[k]);
        }
    }
    types->files = list.files;
    types->n_files = list.n;
    if (!is_made) {
        if (arena == NULL) {
            bow__json_types_fini(types);
        }
        types->files = NULL;
        return -ENOMEM;
    }
    return 0;
}

void bow__json_types_fini(struct bow__json_types *types)
{
    free((void *)types->files);
    types->files = NULL;
}

static int compare_name(const void *name, const void *info)
{
    return strcmp(name, ((const struct bow_message_info *)info)->full_name);
}

int bow__json_types_find(struct bow__json_types *types, struct bow__arena *arena, const char *name,
                         const ProtobufCMessageDescriptor **ret_type)
{
    int rc = types->files == NULL ? make_list(types, arena) : 0;

    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < types->n_files; i++) {
        const struct bow_file *file = types->files[i];
        const struct bow_message_info *info =
            bsearch(name, file->messages, file->n_messages, sizeof file->messages[0], compare_name);
        if (info != NULL && info->descriptor != NULL) {
            *ret_type = info->descriptor;
            return 0;
        }
    }
    return -ENOENT;
}
