/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Looking places up in source_code_info, and the list of errors.
 */

#include "codegen/place.h"

#include <string.h>

/* More would only hide the first ones. */
#define MAX_ERRORS 20

struct place place_within(struct memory *memory, struct place parent, int32_t number, size_t index)
{
    int32_t *path = memory_array(memory, parent.n_path + 2, sizeof(*path));

    if (parent.n_path > 0) {
        memcpy(path, parent.path, parent.n_path * sizeof(*path));
    }
    path[parent.n_path] = number;
    path[parent.n_path + 1] = (int32_t)index;
    return (struct place){.file = parent.file, .path = path, .n_path = parent.n_path + 2};
}

static const Google__Protobuf__SourceCodeInfo__Location *find(struct place place)
{
    const Google__Protobuf__SourceCodeInfo *info = place.file->source_code_info;

    for (size_t i = 0; info != NULL && i < info->n_location; i++) {
        const Google__Protobuf__SourceCodeInfo__Location *found = info->location[i];
        if (found->n_path != place.n_path || found->n_span < 3) {
            continue;
        }
        if (place.n_path == 0 ||
            memcmp(found->path, place.path, place.n_path * sizeof(*place.path)) == 0) {
            return found;
        }
    }
    return NULL;
}

static int from_one(int32_t from_zero)
{
    return from_zero >= 0 && from_zero < INT32_MAX ? from_zero + 1 : 1;
}

void place_position(struct place place, int *ret_line, int *ret_column)
{
    const Google__Protobuf__SourceCodeInfo__Location *found = find(place);

    while (found == NULL && place.n_path >= 2) {
        place.n_path -= 2;
        found = find(place);
    }
    *ret_line = found != NULL ? from_one(found->span[0]) : 1;
    *ret_column = found != NULL ? from_one(found->span[1]) : 1;
}

const char *place_comment(struct place place)
{
    const Google__Protobuf__SourceCodeInfo__Location *found = find(place);

    if (found == NULL) {
        return NULL;
    }
    return found->leading_comments != NULL ? found->leading_comments : found->trailing_comments;
}

void errors_init(struct errors *errors, struct memory *memory)
{
    errors->n_errors = 0;
    printer_init(&errors->text, memory);
}

void errors_add(struct errors *errors, struct place place, const char *format, ...)
{
    va_list args;
    int line = 0;
    int column = 0;

    if (errors->n_errors++ >= MAX_ERRORS) {
        return;
    }
    if (errors->text.len > 0) {
        printer_text(&errors->text, "\n");
    }
    if (place.file != NULL) {
        place_position(place, &line, &column);
        printer_printf(&errors->text, "%s:%d:%d: ", place.file->name, line, column);
    }
    va_start(args, format);
    printer_vprintf(&errors->text, format, args);
    va_end(args);
}

const char *errors_finish(struct errors *errors)
{
    if (errors->n_errors > MAX_ERRORS) {
        printer_printf(&errors->text, "\nand %zu more errors", errors->n_errors - MAX_ERRORS);
    }
    return printer_finish(&errors->text);
}
