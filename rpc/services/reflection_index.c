/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Files and symbols by name. Knows nothing of who asks.
 */

#include "rpc/services/reflection_index.h"
#include "rpc/services/descriptor.h"

#include <errno.h>
#include <string.h>

static struct bow_slice slice_of(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static bool is_equal(struct bow_slice a, struct bow_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* What is looked up is a peer's, what is stored is not: nobody can aim for collisions. */
void bow__reflection_index_init(struct bow__reflection_index *index, struct bow_context *context)
{
    *index = (struct bow__reflection_index){.context = context};
    bow__arena_init(&index->arena, context, NULL, 0, SIZE_MAX);
    bow__bytes_map_init(&index->files, context, 0);
    bow__bytes_map_init(&index->symbols, context, 0);
    index->last_link = &index->first_file;
}

void bow__reflection_index_fini(struct bow__reflection_index *index)
{
    if (index->context == NULL) {
        return;
    }
    bow__bytes_map_fini(&index->files);
    bow__bytes_map_fini(&index->symbols);
    bow__arena_fini(&index->arena);
    index->context = NULL;
}

/* Files */

static int add_one(struct bow__reflection_index *index, const struct bow_file *file)
{
    struct bow__reflected_file *added = bow__arena_alloc(&index->arena, sizeof(*added));

    if (added == NULL) {
        return -ENOMEM;
    }
    *added = (struct bow__reflected_file){
        .file = file,
        .bytes = {file->bytes, file->n_bytes},
        .index = index->n_files,
    };
    int rc = bow__bytes_map_put(&index->files, slice_of(file->name), added);
    if (rc < 0) {
        return rc;
    }
    *index->last_link = added;
    index->last_link = &added->next;
    index->n_files++;
    return 0;
}

/* A file that was generated without its bytes is not at hand, as one that is not linked. */
static int add_once(struct bow__reflection_index *index, const struct bow_file *file)
{
    if (file->n_bytes == 0) {
        return 0;
    }
    return bow__bytes_map_get(&index->files, slice_of(file->name)) != NULL ? 0
                                                                           : add_one(index, file);
}

/* What is added goes to the end of the list that is being gone through: no recursion. */
int bow__reflection_index_add(struct bow__reflection_index *index, const struct bow_file *file)
{
    struct bow__reflected_file **at = index->last_link;
    int rc = add_once(index, file);

    for (; rc == 0 && *at != NULL; at = &(*at)->next) {
        const struct bow_file *importer = (*at)->file;
        for (size_t i = 0; i < importer->n_imports && rc == 0; i++) {
            rc = importer->imports[i] != NULL ? add_once(index, importer->imports[i]) : 0;
        }
    }
    return rc;
}

/* What is in one */

struct looking {
    struct bow__reflection_index *index;
    struct bow__reflected_file *file;
    bool misses_type;
};

/* Two files that declare the same are not made by one run of protoc; the first is shown. */
static int on_symbol(struct bow_slice full_name, bool is_message, void *user)
{
    const struct looking *looking = user;
    struct bow__reflected_symbol *symbol;

    if (bow__bytes_map_get(&looking->index->symbols, full_name) != NULL) {
        return 0;
    }
    symbol = bow__arena_alloc(&looking->index->arena, sizeof(*symbol));
    if (symbol == NULL) {
        return -ENOMEM;
    }
    *symbol = (struct bow__reflected_symbol){.file = looking->file, .is_message = is_message};
    return bow__bytes_map_put(&looking->index->symbols, full_name, symbol);
}

/* protoc resolves names: they begin with a dot. */
static struct bow_slice without_dot(struct bow_slice type)
{
    if (type.len == 0 || type.data[0] != '.') {
        return type;
    }
    return (struct bow_slice){type.data + 1, type.len - 1};
}

static int on_extension(struct bow_slice extendee, int32_t number, void *user)
{
    const struct looking *looking = user;
    struct bow__reflected_extension *extension =
        bow__arena_alloc(&looking->index->arena, sizeof(*extension));

    if (extension == NULL) {
        return -ENOMEM;
    }
    *extension = (struct bow__reflected_extension){
        .next = looking->index->extensions,
        .extendee = without_dot(extendee),
        .number = number,
        .file = looking->file,
    };
    looking->index->extensions = extension;
    looking->index->n_extensions++;
    return 0;
}

static int on_dependency(struct bow_slice name, void *user)
{
    const struct looking *looking = user;
    struct bow__reflected_file *file = looking->file;
    const struct bow__reflected_file *import = bow__bytes_map_get(&looking->index->files, name);

    if (import == NULL) {
        file->misses_import = true;
    } else if (file->n_imports < file->file->n_imports) {
        file->imports[file->n_imports++] = import;
    }
    return 0;
}

static int look_into(struct bow__reflection_index *index, struct bow__reflected_file *file)
{
    static const struct bow__descriptor_visitor visitor = {
        .symbol = on_symbol,
        .extension = on_extension,
        .dependency = on_dependency,
    };
    struct looking looking = {.index = index, .file = file};

    file->imports = bow__arena_alloc(&index->arena, file->file->n_imports * sizeof(*file->imports));
    if (file->imports == NULL) {
        return -ENOMEM;
    }
    return bow__descriptor_walk(file->bytes, &index->arena, &visitor, &looking);
}

/* Once all symbols are known */

static int on_reference(struct bow_slice type, void *user)
{
    struct looking *looking = user;

    if (bow__bytes_map_get(&looking->index->symbols, without_dot(type)) == NULL) {
        looking->misses_type = true;
    }
    return 0;
}

static bool is_known(struct bow_slice name, void *user)
{
    const struct bow__reflection_index *index = user;

    return bow__bytes_map_get(&index->files, name) != NULL;
}

static int drop_imports(struct bow__reflection_index *index, struct bow__reflected_file *file)
{
    static const struct bow__descriptor_visitor visitor = {.reference = on_reference};
    struct looking looking = {.index = index, .file = file};

    int rc = bow__descriptor_walk(file->bytes, &index->arena, &visitor, &looking);
    if (rc < 0 || looking.misses_type) {
        return rc;
    }
    return bow__descriptor_strip(file->bytes, &index->arena, is_known, index, &file->bytes);
}

int bow__reflection_index_seal(struct bow__reflection_index *index, const char **ret_bad)
{
    struct bow__reflected_file *file;
    int rc = 0;

    for (file = index->first_file; file != NULL && rc == 0; file = file->next) {
        *ret_bad = file->file->name;
        rc = look_into(index, file);
    }
    for (file = index->first_file; file != NULL && rc == 0; file = file->next) {
        *ret_bad = file->file->name;
        rc = file->misses_import ? drop_imports(index, file) : 0;
    }
    return rc;
}

/* Finding */

const struct bow__reflected_file *
bow__reflection_index_file(const struct bow__reflection_index *index, const char *name)
{
    return bow__bytes_map_get(&index->files, slice_of(name));
}

const struct bow__reflected_symbol *
bow__reflection_index_symbol(const struct bow__reflection_index *index, const char *name)
{
    return bow__bytes_map_get(&index->symbols, slice_of(name));
}

const struct bow__reflected_extension *
bow__reflection_index_extension(const struct bow__reflection_index *index, const char *extendee,
                                int32_t number)
{
    const struct bow__reflected_extension *extension = index->extensions;

    while (extension != NULL &&
           (extension->number != number || !is_equal(extension->extendee, slice_of(extendee)))) {
        extension = extension->next;
    }
    return extension;
}
