/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_PICTURE_SHOW_H
#define BOWLINE_TOOLS_BOWLINE_PICTURE_SHOW_H

/*
 * A picture for people and for programs. What a server and its peers chose reaches a terminal as
 * printable ASCII, all else of it as \xNN.
 */

#include "picture.h"
#include <stdio.h>

/** Where a picture for people goes. */
struct page {
    FILE *file;
    unsigned columns;
    unsigned rows;    /* at most so many lines; 0: as many as there are */
    bool has_colours; /* those of a terminal on standard output */
};

void picture_text(const struct picture *picture, const char *target, const struct page *page);

/** One object on one line; `time_s` is of the clock on the wall. */
void picture_json(const struct picture *picture, const char *target, double time_s, FILE *file);

/** The same of an interval without an answer. */
void picture_json_failed(const char *failure, const char *target, double time_s, FILE *file);

#endif
