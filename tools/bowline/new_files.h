/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_NEW_FILES_H
#define BOWLINE_TOOLS_BOWLINE_NEW_FILES_H

/* The files of a new service, as texts; what they hold is the user's, 0BSD. */

#include <stdbool.h>
#include <stddef.h>

struct new_file {
    const char *name;
    bool is_named; /* the package stands before `name` */
    const char *text;
};

extern const struct new_file new_files[];
extern const size_t n_new_files;

#endif
