/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A terminal's modes and control sequences. What is drawn is none of this file's business. */
#include "screen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The alternate screen, no cursor, and lines that are cut off at the margin. */
#define BEGIN "\033[?1049h\033[?25l\033[?7l"
#define END "\033[?7h\033[?25h\033[?1049l"

static void put(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, len);
        if (n < 0 && errno != EINTR) {
            return; /* who has hung up sees nothing any more */
        }
        n = n > 0 ? n : 0;
        bytes += n;
        len -= (size_t)n;
    }
}

void screen_open(struct screen *screen)
{
    screen->has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &screen->saved) == 0;
    if (screen->has_keys) {
        struct termios raw = screen->saved;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* Ctrl-C and Ctrl-Z stay signals */
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    put(BEGIN, strlen(BEGIN));
    screen->is_open = true;
}

void screen_close(struct screen *screen)
{
    if (!screen->is_open) {
        return;
    }
    screen->is_open = false;
    put(END, strlen(END));
    if (screen->has_keys) {
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &screen->saved);
    }
}

void screen_size(unsigned *ret_columns, unsigned *ret_rows)
{
    struct winsize size = {0};

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *ret_columns = size.ws_col > 0 ? size.ws_col : 80;
    *ret_rows = size.ws_row > 0 ? size.ws_row : 24;
}

/* In one piece, so that nothing flickers: each line is cleared behind its text, and all below the
 * last one. A line feed behind the last row would scroll. */
void screen_draw(const char *text, size_t len)
{
    unsigned columns;
    unsigned rows;
    char *drawn = NULL;
    size_t n_drawn = 0;
    FILE *file = open_memstream(&drawn, &n_drawn);

    if (file == NULL) {
        return;
    }
    screen_size(&columns, &rows);
    fputs("\033[H", file);
    for (unsigned row = 0; row < rows && len > 0; row++) {
        const char *end = memchr(text, '\n', len);
        size_t n = end != NULL ? (size_t)(end - text) : len;
        fprintf(file, "%s%.*s\033[K", row > 0 ? "\r\n" : "", (int)n, text);
        n += end != NULL;
        text += n;
        len -= n;
    }
    fputs("\033[J", file);
    if (fclose(file) == 0) {
        put(drawn, n_drawn);
    }
    free(drawn);
}
