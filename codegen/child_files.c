/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What protoc-gen-c made: which version it is, and the one line that we add.
 */

#include "codegen/child.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Each header has "#elif 1004001 < PROTOBUF_C_MIN_COMPILER_VERSION": the version that made it. */
#define VERSION_MARK " < PROTOBUF_C_MIN_COMPILER_VERSION"

/* Its INIT macros draw warnings (-Wmissing-braces where a oneof begins with bytes, -Wcast-qual for
 * every string) wherever a user writes one. In a system header compilers keep them to themselves.
 */
#define SYSTEM_HEADER "#pragma GCC system_header\n"

static bool is_header(const Bowline__Codegen__Response__File *file)
{
    size_t len = file->name != NULL ? strlen(file->name) : 0;

    return len > 2 && strcmp(file->name + len - 2, ".h") == 0;
}

static unsigned long version_of(struct memory *memory, const Bowline__Codegen__Response__File *file)
{
    const char *text = memory_dup(memory, (const char *)file->content.data, file->content.len);
    const char *mark = strstr(text, VERSION_MARK);

    if (mark == NULL) {
        return 0;
    }
    const char *number = mark;
    while (number > text && isdigit((unsigned char)number[-1])) {
        number--;
    }
    return strtoul(number, NULL, 10);
}

static const char *describe(struct memory *memory, unsigned long version)
{
    if (version == 0) {
        return "of a version that it does not say";
    }
    return memory_printf(memory, "%lu.%lu.%lu", version / 1000000, version / 1000 % 1000,
                         version % 1000);
}

static void hide_warnings(struct memory *memory, Bowline__Codegen__Response__File *file)
{
    struct printer text;

    printer_init(&text, memory);
    printer_text(&text, SYSTEM_HEADER);
    printer_bytes(&text, (const char *)file->content.data, file->content.len);
    file->content.data = (uint8_t *)text.bytes;
    file->content.len = text.len;
}

const char *child_check_files(struct memory *memory, const char *program,
                              Bowline__Codegen__Response *response)
{
    for (size_t i = 0; i < response->n_file; i++) {
        Bowline__Codegen__Response__File *file = response->file[i];
        if (!is_header(file)) {
            continue;
        }
        unsigned long version = version_of(memory, file);
        if (version < CHILD_MIN_VERSION || version >= CHILD_END_VERSION) {
            return memory_printf(
                memory,
                "%s is protoc-gen-c %s, and this protoc-gen-bowline takes 1.4.0 to 1.5.x: use one "
                "of those (--bowline_opt=protoc_gen_c=PATH) or another release of Bowline",
                program, describe(memory, version));
        }
        hide_warnings(memory, file);
    }
    return NULL;
}
