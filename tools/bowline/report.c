/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measurements for people and programs. How they were made is none of this file's business. */
#include "report.h"
#include "say.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define BAR_COLUMNS 40

static const struct {
    const char *name;
    double percent;
} percentiles[] = {{"p50", 50}, {"p75", 75},     {"p90", 90},      {"p95", 95},
                   {"p99", 99}, {"p99.9", 99.9}, {"p99.99", 99.99}};
#define N_PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static double per_second(const struct report *report)
{
    return report->seconds > 0 ? (double)report->n_measured / report->seconds : 0;
}

static const char *code_name(size_t code)
{
    return bow_code_name((enum bow_code)code);
}

static uint64_t most_in_row(const struct histogram_row *rows, unsigned n)
{
    uint64_t most = 1;

    for (unsigned i = 0; i < n; i++) {
        most = rows[i].count > most ? rows[i].count : most;
    }
    return most;
}

/* A time with the unit that suits it. */
static void put_time(FILE *file, uint64_t ns)
{
    if (ns < 1000000) {
        fprintf(file, "%8.1f us", (double)ns / 1e3);
    } else if (ns < UINT64_C(10000000000)) {
        fprintf(file, "%8.2f ms", (double)ns / 1e6);
    } else {
        fprintf(file, "%8.2f s ", (double)ns / 1e9);
    }
}

/* Text */

static void put_histogram(const struct report *report)
{
    struct histogram_row rows[HISTOGRAM_ROWS];
    unsigned n = histogram_rows(&report->histogram, rows);
    uint64_t most = most_in_row(rows, n);

    for (unsigned i = 0; i < n; i++) {
        unsigned width = (unsigned)((rows[i].count * BAR_COLUMNS + most - 1) / most);
        printf("  ");
        put_time(stdout, rows[i].upto_ns);
        printf(" %s", colour_on(stdout, COLOUR_GREEN));
        for (unsigned k = 0; k < width; k++) {
            printf("\u2588");
        }
        printf("%s %" PRIu64 "\n", colour_off(stdout), rows[i].count);
    }
}

static void put_statuses(const struct report *report)
{
    for (size_t i = 0; i < REPORT_CODES; i++) {
        if (report->n_ended[i] > 0) {
            printf("  %s%-20s%s %" PRIu64 "\n", i == BOW_OK ? "" : colour_on(stdout, COLOUR_RED),
                   code_name(i), i == BOW_OK ? "" : colour_off(stdout), report->n_ended[i]);
        }
    }
    if (report->failure[0] != '\0') {
        printf("  the first that failed: ");
        say_text(stdout, report->failure);
        putchar('\n');
    }
}

void report_text(const struct report *report)
{
    const struct histogram *histogram = &report->histogram;

    printf("%s%" PRIu64 " calls in %.2f s: %.0f a second%s\n", colour_on(stdout, COLOUR_BOLD),
           report->n_measured, report->seconds, per_second(report), colour_off(stdout));
    if (report->n_messages > 0) {
        printf("%" PRIu64 " messages received\n", report->n_messages);
    }
    if (report->n_late > 0) {
        printf("%s%" PRIu64 " calls that were due had not begun: the server, or -c %u, is too slow "
               "for that rate%s\n",
               colour_on(stdout, COLOUR_YELLOW), report->n_late, report->options->concurrency,
               colour_off(stdout));
    }
    printf("\nstatuses\n");
    put_statuses(report);
    if (histogram->n == 0) {
        return;
    }
    printf("\nlatencies of those with OK%s\n",
           report->options->rate > 0 ? ", from when each should have begun" : "");
    printf("  min    ");
    put_time(stdout, histogram->least_ns);
    printf("\n  mean   ");
    put_time(stdout, (uint64_t)(histogram->sum_ns / (double)histogram->n));
    for (size_t i = 0; i < N_PERCENTILES; i++) {
        printf("\n  %-7s", percentiles[i].name);
        put_time(stdout, histogram_percentile(histogram, percentiles[i].percent));
    }
    printf("\n  max    ");
    put_time(stdout, histogram->most_ns);
    printf("\n\nhistogram, each row up to\n");
    put_histogram(report);
}

/* JSON */

static void put_latencies_json(const struct histogram *histogram)
{
    struct histogram_row rows[HISTOGRAM_ROWS];
    unsigned n = histogram_rows(histogram, rows);

    printf("\"latency_seconds\":{\"min\":%.9f,\"mean\":%.9f", (double)histogram->least_ns / 1e9,
           histogram->n > 0 ? histogram->sum_ns / (double)histogram->n / 1e9 : 0);
    for (size_t i = 0; i < N_PERCENTILES; i++) {
        printf(",\"%s\":%.9f", percentiles[i].name,
               (double)histogram_percentile(histogram, percentiles[i].percent) / 1e9);
    }
    printf(",\"max\":%.9f},\"histogram\":[", (double)histogram->most_ns / 1e9);
    for (unsigned i = 0; i < n; i++) {
        printf("%s{\"upto_seconds\":%.9f,\"count\":%" PRIu64 "}", i > 0 ? "," : "",
               (double)rows[i].upto_ns / 1e9, rows[i].count);
    }
    printf("]");
}

void report_json(const struct report *report)
{
    const char *separator = "";

    printf("{\"target\":");
    say_json_string(stdout, report->target, strlen(report->target));
    printf(",\"method\":\"%s\",\"seconds\":%.6f,\"calls\":%" PRIu64 ",\"calls_total\":%" PRIu64
           ",\"calls_per_second\":%.3f,\"messages\":%" PRIu64 ",\"late\":%" PRIu64
           ",\"rate\":%.3f,\"concurrency\":%u,\"connections\":%u,\"statuses\":{",
           report->method, report->seconds, report->n_measured, report->n_total, per_second(report),
           report->n_messages, report->n_late, report->options->rate, report->options->concurrency,
           report->options->connections);
    for (size_t i = 0; i < REPORT_CODES; i++) {
        if (report->n_ended[i] > 0) {
            printf("%s\"%s\":%" PRIu64, separator, code_name(i), report->n_ended[i]);
            separator = ",";
        }
    }
    printf("},");
    put_latencies_json(&report->histogram);
    printf("}\n");
}

/* A page */

static const char page_style[] =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;"
    "color:#1a1a1a;background:#fff}h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}"
    "table{border-collapse:collapse}td,th{padding:.2rem 1rem .2rem 0;text-align:left}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "svg{width:100%;height:auto}rect{fill:#2a7d5f}text{font:12px system-ui,sans-serif;fill:#444}"
    "@media(prefers-color-scheme:dark){body{background:#161616;color:#e8e8e8}text{fill:#bbb}}";

static void put_html(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        default:
            fputc(*text, file);
            break;
        }
    }
}

static void put_row(FILE *file, const char *name, uint64_t ns)
{
    fprintf(file, "<tr><td>%s</td><td class=\"n\">", name);
    put_time(file, ns);
    fprintf(file, "</td></tr>\n");
}

static void put_bars(FILE *file, const struct histogram *histogram)
{
    struct histogram_row rows[HISTOGRAM_ROWS];
    unsigned n = histogram_rows(histogram, rows);
    uint64_t most = most_in_row(rows, n);

    fprintf(file, "<svg viewBox=\"0 0 800 %u\" role=\"img\">\n", n * 24);
    for (unsigned i = 0; i < n; i++) {
        double width = (double)rows[i].count * 560 / (double)most;
        fprintf(file, "<text x=\"90\" y=\"%u\" text-anchor=\"end\">", i * 24 + 16);
        put_time(file, rows[i].upto_ns);
        fprintf(file,
                "</text><rect x=\"100\" y=\"%u\" width=\"%.1f\" height=\"18\"/>"
                "<text x=\"%.1f\" y=\"%u\">%" PRIu64 "</text>\n",
                i * 24 + 2, width, 106 + width, i * 24 + 16, rows[i].count);
    }
    fprintf(file, "</svg>\n");
}

static void put_page(const struct report *report, FILE *file)
{
    const struct histogram *histogram = &report->histogram;

    fprintf(file, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
                  "<meta name=\"viewport\" content=\"width=device-width\"><title>bowline bench: ");
    put_html(file, report->method);
    fprintf(file, "</title><style>%s</style>\n<h1>", page_style);
    put_html(file, report->method);
    fprintf(file, " at ");
    put_html(file, report->target);
    fprintf(file,
            "</h1>\n<p>%" PRIu64 " calls in %.2f s: <b>%.0f a second</b>, with %u at once over %u ",
            report->n_measured, report->seconds, per_second(report), report->options->concurrency,
            report->options->connections);
    fprintf(file, "%s.", report->options->connections == 1 ? "connection" : "connections");
    if (report->options->rate > 0) {
        fprintf(file,
                " %.0f a second were to begin; latencies count from when each should have; %" PRIu64
                " had not begun at the end.",
                report->options->rate, report->n_late);
    }
    fprintf(file, "</p>\n<h2>Statuses</h2><table>\n");
    for (size_t i = 0; i < REPORT_CODES; i++) {
        if (report->n_ended[i] > 0) {
            fprintf(file, "<tr><td>%s</td><td class=\"n\">%" PRIu64 "</td></tr>\n", code_name(i),
                    report->n_ended[i]);
        }
    }
    fprintf(file, "</table>\n<h2>Latencies</h2><table>\n");
    put_row(file, "min", histogram->least_ns);
    for (size_t i = 0; i < N_PERCENTILES; i++) {
        put_row(file, percentiles[i].name, histogram_percentile(histogram, percentiles[i].percent));
    }
    put_row(file, "max", histogram->most_ns);
    fprintf(file, "</table>\n<h2>Histogram</h2><p>Each bar counts the calls up to its time.</p>\n");
    put_bars(file, histogram);
    fprintf(file, "</html>\n");
}

int report_html(const struct report *report, const char *name)
{
    FILE *file = fopen(name, "we");

    if (file == NULL) {
        return say_failed(EXIT_FAILED, "%s: %s", name, strerror(errno));
    }
    put_page(report, file);
    if (fclose(file) != 0) {
        return say_failed(EXIT_FAILED, "%s: %s", name, strerror(errno));
    }
    return EXIT_OK;
}
