/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A picture as tables. Each line is written whole: what is wider than the page is cut off by it, or
 * not at all where there is none. What is in the picture is picture.c's.
 */
#include "picture_show.h"
#include "say.h"

#include <inttypes.h>
#include <string.h>

#define CELL_BYTES 64
#define NAME_BYTES 256
#define ESCAPED_BYTES (4 * NAME_BYTES + 1)
#define MIN_NAME 16
#define MAX_NAME 60
#define MAX_CELLS 8
#define MAX_CALLS 10 /* without a page's end */

static const char *on(const struct page *page, enum colour colour)
{
    return page->has_colours ? colour_on(stdout, colour) : "";
}

static const char *off(const struct page *page)
{
    return page->has_colours ? colour_off(stdout) : "";
}

/* Cells */

/* What a terminal shows as it stands. Returns its length. */
static size_t escape(const char *text, char ret_text[ESCAPED_BYTES])
{
    size_t n = 0;

    ret_text[0] = '\0';
    for (size_t i = 0; text[i] != '\0' && i < NAME_BYTES; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_plain = c >= ' ' && c < 0x7f;
        n += (size_t)snprintf(ret_text + n, ESCAPED_BYTES - n, is_plain ? "%c" : "\\x%02x", c);
    }
    return n;
}

/* At most `columns` of it; of what is longer the end, for there are methods' own names. */
static void clean(const char *text, char *ret_text, size_t columns)
{
    char whole[ESCAPED_BYTES];
    size_t n = escape(text, whole);

    if (n <= columns) {
        memcpy(ret_text, whole, n + 1);
    } else {
        snprintf(ret_text, columns + 1, "...%s", whole + n - (columns - 3));
    }
}

/* Without the slash in front that each has. */
static const char *name_of(const char *method)
{
    if (strcmp(method, "*") == 0) {
        return "(unknown methods)";
    }
    return method[0] == '/' ? method + 1 : method;
}

static void put_number(char *cell, double n)
{
    static const struct {
        double unit;
        const char *sign;
    } units[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (n >= 10 * units[i].unit) {
            snprintf(cell, CELL_BYTES, "%.1f%s", n / units[i].unit, units[i].sign);
            return;
        }
    }
    snprintf(cell, CELL_BYTES, n >= 100 || n == (double)(uint64_t)n ? "%.0f" : "%.1f", n);
}

static void put_bytes(char *cell, double n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t at = 0;

    while (n >= 1024 && at < 4) {
        n /= 1024;
        at++;
    }
    snprintf(cell, CELL_BYTES, at > 0 && n < 100 ? "%.1f %s" : "%.0f %s", n, units[at]);
}

static void put_us(char *cell, uint64_t us)
{
    if (us < 1000) {
        snprintf(cell, CELL_BYTES, "%" PRIu64 " us", us);
    } else if (us < 1000000) {
        snprintf(cell, CELL_BYTES, us < 10000 ? "%.1f ms" : "%.0f ms", (double)us / 1e3);
    } else if (us < 120000000) {
        snprintf(cell, CELL_BYTES, us < 10000000 ? "%.1f s" : "%.0f s", (double)us / 1e6);
    } else {
        snprintf(cell, CELL_BYTES, "%" PRIu64 " min", us / 60000000);
    }
}

/* Of no calls there are no times. */
static void put_time(char *cell, const struct picture_times *times, uint64_t us)
{
    if (times->n > 0) {
        put_us(cell, us);
    } else {
        snprintf(cell, CELL_BYTES, "-");
    }
}

/* Tables: a name, and cells to the right of it. */

struct column {
    const char *head;
    int width; /* below 0: from the left */
};

struct row {
    char name[NAME_BYTES + 1];
    char cells[MAX_CELLS][CELL_BYTES];
    enum colour colours[MAX_CELLS];
    enum colour colour; /* of the name */
};

struct table {
    const struct page *page;
    const struct column *columns;
    size_t n_columns;
    int name_width;
};

static int clamp(int value, int least, int most)
{
    value = value < most ? value : most;
    return value > least ? value : least;
}

/* Behind the last one, when it begins at the left, there are no blanks. */
static int width_of(const struct table *table, size_t column)
{
    int width = table->columns[column].width;

    return column + 1 == table->n_columns && width < 0 ? 0 : width;
}

static void begin_table(struct table *table, const struct page *page, const char *head,
                        const struct column *columns, size_t n_columns)
{
    int rest = 0;

    for (size_t i = 0; i < n_columns; i++) {
        rest += 2 + (columns[i].width < 0 ? -columns[i].width : columns[i].width);
    }
    *table = (struct table){page, columns, n_columns,
                            clamp((int)page->columns - rest, MIN_NAME, MAX_NAME)};
    fprintf(page->file, "\n%s%-*s", on(page, COLOUR_DIM), table->name_width, head);
    for (size_t i = 0; i < n_columns; i++) {
        fprintf(page->file, "  %*s", width_of(table, i), columns[i].head);
    }
    fprintf(page->file, "%s\n", off(page));
}

static void put_row(const struct table *table, const struct row *row)
{
    const struct page *page = table->page;
    char name[NAME_BYTES + 1];

    clean(row->name, name, (size_t)table->name_width);
    fprintf(page->file, "%s%-*s%s", on(page, row->colour), table->name_width, name,
            row->colour != COLOUR_NONE ? off(page) : "");
    for (size_t i = 0; i < table->n_columns; i++) {
        bool has_colour = row->colours[i] != COLOUR_NONE;
        fprintf(page->file, "  %s%*s%s", has_colour ? on(page, row->colours[i]) : "",
                width_of(table, i), row->cells[i], has_colour ? off(page) : "");
    }
    fputc('\n', page->file);
}

static void put_rest(const struct page *page, size_t n_left, const char *what)
{
    if (n_left > 0) {
        fprintf(page->file, "%sand %zu %s more%s\n", on(page, COLOUR_DIM), n_left, what, off(page));
    }
}

/* The head */

static void put_state(const struct picture *picture, const struct page *page)
{
    const Told__Server *told = picture->told;

    if (told->held_loops > 0) {
        fprintf(page->file, "%s%" PRIu64 " of %zu loops held%s", on(page, COLOUR_RED),
                told->held_loops, picture->n_loops, off(page));
    } else if (told->draining) {
        fprintf(page->file, "%sdraining%s", on(page, COLOUR_YELLOW), off(page));
    } else {
        fprintf(page->file, "%sserving%s", on(page, COLOUR_GREEN), off(page));
    }
}

static void put_head(const struct picture *picture, const char *target, const struct page *page)
{
    char where[NAME_BYTES + 1];
    char addresses[NAME_BYTES + 1];
    char cells[7][CELL_BYTES];
    const struct picture_times *times = &picture->times;

    clean(target, where, 60);
    clean(picture->told->config->addresses, addresses, 80);
    fprintf(page->file, "%s%s%s  ", on(page, COLOUR_BOLD), where, off(page));
    put_state(picture, page);
    fprintf(page->file, "  calls at %s\n", addresses);
    put_number(cells[0], picture->calls);
    put_number(cells[1], picture->errors);
    put_time(cells[2], times, times->p50_us);
    put_time(cells[3], times, times->p99_us);
    put_number(cells[4], (double)picture->told->total_calls);
    put_bytes(cells[5], picture->bytes_received);
    put_bytes(cells[6], picture->bytes_sent);
    fprintf(page->file,
            "%s calls/s  %s%s not OK/s%s  p50 %s  p99 %s  %s in flight  %" PRIu64
            " connection%s  %s/s in  %s/s out\n",
            cells[0], picture->errors > 0 ? on(page, COLOUR_RED) : "", cells[1],
            picture->errors > 0 ? off(page) : "", cells[2], cells[3], cells[4],
            picture->told->total_connections, picture->told->total_connections == 1 ? "" : "s",
            cells[5], cells[6]);
}

/* Sections */

static void put_methods(const struct picture *picture, const struct page *page, size_t n)
{
    static const struct column columns[] = {{"RATE/S", 8}, {"NOT OK/S", 8}, {"P50", 7},
                                            {"P99", 7},    {"MAX", 7},      {"IN FLIGHT", 9}};
    struct table table;

    begin_table(&table, page, "METHOD", columns, 6);
    for (size_t i = 0; i < n; i++) {
        const struct picture_method *method = &picture->methods[i];
        struct row row = {.colour = method->calls > 0 || method->in_flight > 0 ? COLOUR_NONE
                                                                               : COLOUR_DIM};
        snprintf(row.name, sizeof(row.name), "%s", name_of(method->name));
        put_number(row.cells[0], method->calls);
        put_number(row.cells[1], method->errors);
        row.colours[1] = method->errors > 0 ? COLOUR_RED : COLOUR_NONE;
        put_time(row.cells[2], &method->times, method->times.p50_us);
        put_time(row.cells[3], &method->times, method->times.p99_us);
        put_time(row.cells[4], &method->times, method->times.max_us);
        put_number(row.cells[5], (double)method->in_flight);
        put_row(&table, &row);
    }
    if (picture->n_methods == 0) {
        fprintf(page->file, "no method has been called yet\n");
    }
    put_rest(page, picture->n_methods - n, "methods");
}

static void put_loops(const struct picture *picture, const struct page *page, size_t n)
{
    static const struct column columns[] = {{"BUSY", 5},     {"TURNS/S", 8},      {"LAG", 7},
                                            {"MAX TURN", 8}, {"CONNECTIONS", 11}, {"CALLS", 6}};
    struct table table;

    begin_table(&table, page, "LOOP", columns, 6);
    for (size_t i = 0; i < n; i++) {
        const struct picture_loop *loop = &picture->loops[i];
        const Told__Loop *told = loop->told;
        bool runs = strcmp(told->state, "runs") == 0;
        struct row row = {.colour = runs ? COLOUR_NONE : COLOUR_RED};
        char held[CELL_BYTES];
        put_us(held, told->held_us);
        if (runs) {
            snprintf(row.name, sizeof(row.name), "%s", told->name);
        } else {
            snprintf(row.name, sizeof(row.name), "%s: %s%s%s for %s", told->name, told->state,
                     told->held_by[0] != '\0' ? " by " : "", told->held_by, held);
        }
        snprintf(row.cells[0], CELL_BYTES, "%.0f %%", loop->busy * 100);
        put_number(row.cells[1], loop->turns);
        put_us(row.cells[2], told->lag_us);
        put_us(row.cells[3], told->max_turn_us);
        put_number(row.cells[4], (double)told->connections);
        put_number(row.cells[5], (double)told->calls);
        row.colours[0] = loop->busy > 0.9   ? COLOUR_RED
                         : loop->busy > 0.7 ? COLOUR_YELLOW
                                            : COLOUR_NONE;
        put_row(&table, &row);
    }
    put_rest(page, picture->n_loops - n, "loops");
}

static void put_calls(const struct picture *picture, const struct page *page, size_t n)
{
    static const struct column columns[] = {{"AGE", 7}, {"LEFT", 7}, {"PEER", -21}, {"STAGE", -25}};
    struct table table;

    begin_table(&table, page, "SLOWEST CALLS IN FLIGHT", columns, 4);
    for (size_t i = 0; i < n; i++) {
        const Told__Call *call = picture->calls_shown[i];
        struct row row = {.colour = COLOUR_NONE};
        char stage[NAME_BYTES + 1];
        char escaped[ESCAPED_BYTES];
        snprintf(row.name, sizeof(row.name), "%s", name_of(call->method));
        put_us(row.cells[0], call->age_us);
        if (call->_left_us_case == TOLD__CALL___LEFT_US_LEFT_US) {
            put_us(row.cells[1], call->left_us);
        } else {
            snprintf(row.cells[1], CELL_BYTES, "-");
        }
        snprintf(stage, sizeof(stage), "%s%s%s", call->stage, call->detail[0] != '\0' ? ": " : "",
                 call->detail);
        clean(call->peer, row.cells[2], 21);
        (void)escape(stage, escaped);
        snprintf(row.cells[3], CELL_BYTES, "%.*s", CELL_BYTES - 1, escaped);
        put_row(&table, &row);
    }
    put_rest(page, picture->n_calls_shown - n, "calls");
}

static void put_limits(const struct picture *picture, const struct page *page, size_t n)
{
    static const struct column columns[] = {{"NOW", 10}, {"OF", 10}, {"USED", 6}};
    struct table table;

    begin_table(&table, page, "LIMIT", columns, 3);
    for (size_t i = 0; i < n; i++) {
        const struct picture_limit *limit = &picture->limits[i];
        double share = (double)limit->now / (double)limit->most;
        struct row row = {.colour = COLOUR_NONE};
        snprintf(row.name, sizeof(row.name), "%s%s", limit->name, limit->note);
        if (limit->is_bytes) {
            put_bytes(row.cells[0], (double)limit->now);
            put_bytes(row.cells[1], (double)limit->most);
        } else {
            put_number(row.cells[0], (double)limit->now);
            put_number(row.cells[1], (double)limit->most);
        }
        snprintf(row.cells[2], CELL_BYTES, "%.0f %%", share * 100);
        row.colours[2] = share > 0.9 ? COLOUR_RED : share > 0.7 ? COLOUR_YELLOW : COLOUR_NONE;
        put_row(&table, &row);
    }
}

/* Room */

struct shares {
    size_t n_methods, n_loops, n_calls, n_limits;
};

/* Rows of a table that has `n`, of `*left`, with its two lines of head, and one for the rest of
 * it. */
static size_t take(size_t n, size_t most, size_t *left)
{
    size_t wanted = n < most ? n : most;

    if (wanted == 0 || *left < wanted + 3) {
        return 0;
    }
    *left -= wanted + 2 + (n > wanted);
    return wanted;
}

static struct shares share_rows(const struct picture *picture, const struct page *page)
{
    bool is_tall = page->rows >= 40;
    size_t left = page->rows;
    struct shares shares = {picture->n_methods, picture->n_loops, picture->n_calls_shown,
                            picture->n_limits};

    if (page->rows == 0) {
        shares.n_calls = shares.n_calls < MAX_CALLS ? shares.n_calls : MAX_CALLS;
        return shares;
    }
    /* The head, and the methods' first few rows. */
    left = left > 9 ? left - 9 : 0;
    shares.n_loops = take(picture->n_loops, is_tall ? 8 : 4, &left);
    shares.n_calls = take(picture->n_calls_shown, is_tall ? 10 : 3, &left);
    shares.n_limits = take(picture->n_limits, is_tall ? PICTURE_LIMITS : 2, &left);
    left += page->rows > 9 ? 4 : 1;
    shares.n_methods = picture->n_methods < left ? picture->n_methods : left;
    return shares;
}

void picture_text(const struct picture *picture, const char *target, const struct page *page)
{
    struct shares shares = share_rows(picture, page);

    put_head(picture, target, page);
    put_methods(picture, page, shares.n_methods);
    if (shares.n_loops > 0) {
        put_loops(picture, page, shares.n_loops);
    }
    if (shares.n_calls > 0) {
        put_calls(picture, page, shares.n_calls);
    }
    if (shares.n_limits > 0) {
        put_limits(picture, page, shares.n_limits);
    }
}
