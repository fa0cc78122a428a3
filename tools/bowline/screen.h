/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_SCREEN_H
#define BOWLINE_TOOLS_BOWLINE_SCREEN_H

/*
 * The terminal on standard output as one page that is drawn again and again, on its alternate
 * screen; keys come from standard input one by one, when that is a terminal, too. What was on the
 * terminal before is there again after screen_close().
 */

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct screen {
    bool is_open;
    bool has_keys;
    struct termios saved; /* of standard input, with has_keys */
};

/** Begin, or begin again. */
void screen_open(struct screen *screen);
/** Give the terminal back as it was. Idempotent. */
void screen_close(struct screen *screen);

/** How large it is now. */
void screen_size(unsigned *ret_columns, unsigned *ret_rows);

/** Draw the lines of `text`, from the top, as many as there is room for. */
void screen_draw(const char *text, size_t len);

#endif
