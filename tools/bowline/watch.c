/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * `bowline watch`: what a server does now, by its operations listener, again and again.
 *
 * Each interval asks for /debug/all over a connection of its own, so that a server that was started
 * anew is found like the one before it. What is shown is the difference of the last two answers.
 * Who never answered is an error; who stops answering is asked again.
 *
 * Design: one thread, with a loop for the connection and one poll() for that loop, the keys and the
 * signals.
 */
#include "commands.h"
#include "http_get.h"
#include "picture_show.h"
#include "say.h"
#include "screen.h"
#include <bowline/context.h>
#include <bowline/timer.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define DEFAULT_INTERVAL_NS NS_PER_S
#define DEFAULT_TIMEOUT_NS (5 * NS_PER_S)
#define PLAIN_COLUMNS 120
#define MAX_TARGET 300
#define PATH "/debug/all?format=json"

struct watch {
    const struct options *options;
    char target[MAX_TARGET];
    uint64_t interval_ns, timeout_ns;
    enum watch_sort sort;
    bool is_terminal;
    struct screen screen;

    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_timer timer;
    int signal_fd;
    uint64_t asked_ns;

    struct sample then, now; /* `then` is empty before the second answer */
    struct picture picture;  /* of the two */
    char failure[800];       /* why the last interval has no answer; "" when it has one */
    uint64_t n_shown;
    bool is_ending;
    int rc;
};

static void end(struct watch *it, int rc)
{
    it->rc = rc;
    it->is_ending = true;
}

static double wall_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool has_picture(const struct watch *it)
{
    return it->picture.told != NULL;
}

/* On the terminal */

static void put_foot(const struct watch *it, FILE *file)
{
    if (it->failure[0] != '\0') {
        fprintf(file, "%sno answer: ", colour_on(stdout, COLOUR_RED));
        say_text(file, it->failure);
        fprintf(file, "; asking again%s", colour_off(stdout));
        return;
    }
    fprintf(file,
            "%severy %.3g s; q quits; order by r rate, e not OK, l p99, f in flight, n name%s",
            colour_on(stdout, COLOUR_DIM), (double)it->interval_ns / 1e9, colour_off(stdout));
}

static unsigned count_lines(const char *text, size_t len)
{
    unsigned n = 0;

    for (size_t i = 0; i < len; i++) {
        n += text[i] == '\n';
    }
    return n;
}

/* The foot stands in the last row, whatever is above it. */
static void draw(const struct watch *it)
{
    struct page page = {.has_colours = true};
    char *text = NULL;
    size_t len = 0;

    screen_size(&page.columns, &page.rows);
    unsigned rows = page.rows;
    page.rows = rows > 1 ? rows - 1 : 1;
    page.file = open_memstream(&text, &len);
    if (page.file == NULL) {
        return;
    }
    if (has_picture(it)) {
        picture_text(&it->picture, it->target, &page);
    } else {
        fprintf(page.file, "%s answers; numbers follow\n", it->target);
    }
    fflush(page.file);
    for (unsigned n = count_lines(text, len); n < page.rows; n++) {
        fputc('\n', page.file);
    }
    put_foot(it, page.file);
    if (fclose(page.file) == 0) {
        screen_draw(text, len);
    }
    free(text);
}

/* Elsewhere */

static void print(const struct watch *it)
{
    const struct page page = {.file = stdout, .columns = PLAIN_COLUMNS};
    time_t now = time(NULL);
    struct tm local;
    char clock[40];

    if (it->options->json) {
        picture_json(&it->picture, it->target, wall_s(), stdout);
        return;
    }
    localtime_r(&now, &local);
    strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M:%S", &local);
    printf("%s%s  ", it->n_shown > 0 ? "\n" : "", clock);
    picture_text(&it->picture, it->target, &page);
}

/* Intervals */

static void count_interval(struct watch *it, int rc)
{
    it->n_shown++;
    if (!it->is_terminal && fflush(stdout) != 0) {
        end(it, say_failed(EXIT_FAILED, "standard output: %s", strerror(errno)));
    } else if (it->options->count != 0 && it->n_shown >= it->options->count) {
        end(it, rc);
    }
}

static void show_failure(struct watch *it, const char *failure, int code)
{
    bool is_new = it->failure[0] == '\0';

    if (it->now.told == NULL) { /* there never was an answer */
        bool is_dead = code == exit_of(BOW_UNAVAILABLE);
        end(it, say_failed(code, "%s%s", failure,
                           is_dead ? "; a server has no operations listener without "
                                     "options.operations_listen"
                                   : ""));
        return;
    }
    snprintf(it->failure, sizeof(it->failure), "%s", failure);
    if (it->is_terminal) {
        draw(it);
    } else if (it->options->json) {
        picture_json_failed(failure, it->target, wall_s(), stdout);
    } else if (is_new) {
        (void)say_failed(code, "%s; asking again", failure);
    }
    count_interval(it, code);
}

static void make_picture(struct watch *it)
{
    picture_fini(&it->picture);
    if (it->then.told == NULL) {
        return;
    }
    if (picture_make(&it->then, &it->now, it->sort, &it->picture) < 0) {
        end(it, say_failed(EXIT_FAILED, "no memory"));
    }
}

/* Takes `sample`. */
static void show_sample(struct watch *it, struct sample *sample)
{
    picture_fini(&it->picture);
    sample_fini(&it->then);
    it->then = it->now;
    it->now = *sample;
    it->failure[0] = '\0';
    if (it->then.told != NULL && picture_is_restart(&it->then, &it->now)) {
        sample_fini(&it->then);
    }
    make_picture(it);
    if (it->is_terminal && !it->is_ending) {
        if (!it->screen.is_open) {
            screen_open(&it->screen);
        }
        draw(it);
    } else if (has_picture(it)) {
        print(it);
    }
    if (has_picture(it)) {
        count_interval(it, EXIT_OK);
    }
}

static const char *advice_for(int status)
{
    switch (status) {
    case 421:
        return ": name it by its number, or list the name in the server's options.operations_hosts";
    case 503:
        return ": it has no memory for the answer";
    default:
        return ": is that a port for calls? The operations listener is at the address of the "
               "server's options.operations_listen";
    }
}

static void show_answer(struct watch *it, const struct http_answer *answer)
{
    struct sample sample;
    char reason[400];
    char failure[800];

    if (answer->status != 200) {
        snprintf(failure, sizeof(failure), "%s answers %d to %s%s", it->target, answer->status,
                 PATH, advice_for(answer->status));
        show_failure(it, failure, EXIT_FAILED);
    } else if (sample_read(answer->body, clock_ns(), &sample, reason, sizeof(reason)) < 0) {
        snprintf(failure, sizeof(failure), "%s answers, and not as an operations listener does: %s",
                 it->target, reason);
        show_failure(it, failure, EXIT_FAILED);
    } else {
        show_sample(it, &sample);
    }
}

static void on_answer(const struct http_answer *answer, const char *failure, int code, void *user)
{
    struct watch *it = user;

    if (it->is_ending) {
        return;
    }
    if (answer != NULL) {
        show_answer(it, answer);
    } else {
        show_failure(it, failure, code);
    }
    bow_timer_start_at(&it->timer, it->asked_ns + it->interval_ns);
}

static void ask(struct watch *it)
{
    it->asked_ns = bow_loop_now(it->loop);
    int rc = http_get(it->loop, it->target, PATH, it->timeout_ns, on_answer, it);
    if (rc != EXIT_OK) {
        end(it, rc);
    }
}

static void on_time(struct bow_timer *timer, void *user)
{
    (void)timer;
    ask(user);
}

/* Keys and signals */

static void sort_by(struct watch *it, enum watch_sort sort)
{
    it->sort = sort;
    make_picture(it);
    draw(it);
}

static void take_key(struct watch *it, char key)
{
    switch (key) {
    case 'q':
        end(it, EXIT_OK);
        break;
    case 'r':
        sort_by(it, WATCH_BY_RATE);
        break;
    case 'e':
        sort_by(it, WATCH_BY_ERRORS);
        break;
    case 'l':
        sort_by(it, WATCH_BY_P99);
        break;
    case 'f':
        sort_by(it, WATCH_BY_IN_FLIGHT);
        break;
    case 'n':
        sort_by(it, WATCH_BY_NAME);
        break;
    default:
        break;
    }
}

static void take_keys(struct watch *it)
{
    char keys[64];
    ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
        end(it, EXIT_OK); /* the terminal is gone */
    }
    for (ssize_t i = 0; i < n && !it->is_ending; i++) {
        take_key(it, keys[i]);
    }
}

static void take_signal(struct watch *it)
{
    struct signalfd_siginfo info;

    if (read(it->signal_fd, &info, sizeof(info)) != sizeof(info)) {
        return;
    }
    if (info.ssi_signo == SIGWINCH) {
        if (it->screen.is_open) {
            draw(it);
        }
    } else if (info.ssi_signo == SIGTSTP) {
        bool was_open = it->screen.is_open;
        screen_close(&it->screen);
        raise(SIGSTOP); /* until SIGCONT */
        if (was_open) {
            screen_open(&it->screen);
            draw(it);
        }
    } else {
        end(it, EXIT_OK);
    }
}

/* Signals come by a descriptor; threads that are made later have them blocked, too. */
static int open_signals(struct watch *it)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    if (it->is_terminal) {
        sigaddset(&set, SIGWINCH);
        sigaddset(&set, SIGTSTP);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    it->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return it->signal_fd >= 0 ? EXIT_OK
                              : say_failed(EXIT_FAILED, "no signalfd: %s", strerror(errno));
}

/* Running */

static int timeout_ms(uint64_t ns)
{
    const uint64_t most = 3600 * UINT64_C(1000);
    uint64_t ms = ns / 1000000 + (ns % 1000000 != 0);

    return (int)(ms < most ? ms : most);
}

static void run(struct watch *it)
{
    ask(it);
    while (!it->is_ending) {
        int rc = bow_loop_run_once(it->loop, 0);
        if (rc < 0) {
            end(it, say_failed(EXIT_FAILED, "the event loop: %s", strerror(-rc)));
        }
        if (it->is_ending) {
            return;
        }
        struct pollfd wait[] = {
            {.fd = bow_loop_fd(it->loop), .events = POLLIN},
            {.fd = it->signal_fd, .events = POLLIN},
            {.fd = it->screen.is_open && it->screen.has_keys ? STDIN_FILENO : -1, .events = POLLIN},
        };
        (void)poll(wait, 3, timeout_ms(bow_loop_next_timeout(it->loop)));
        if (wait[1].revents != 0) {
            take_signal(it);
        }
        if (wait[2].revents != 0) {
            take_keys(it);
        }
    }
}

/* "http://HOST:PORT/" is what a browser has. */
static int read_target(struct watch *it, const char *given)
{
    const char *at = given;

    if (strncmp(at, "grpc:", 5) == 0 || strncmp(at, "https://", 8) == 0) {
        return say_failed(EXIT_USAGE,
                          "\"%s\": an operations listener speaks HTTP without TLS, and is named by "
                          "HOST:PORT or unix:PATH",
                          given);
    }
    bool is_url = strncmp(at, "http://", 7) == 0;
    at += is_url ? 7 : 0;
    size_t len = is_url ? strcspn(at, "/?#") : strlen(at);
    if (len == 0 || len >= sizeof(it->target) || strcspn(at, "\r\n \t") < len) {
        return say_failed(EXIT_USAGE, "\"%s\" is no HOST:PORT and no unix:PATH", given);
    }
    snprintf(it->target, sizeof(it->target), "%.*s", (int)len, at);
    return EXIT_OK;
}

static int prepare(struct watch *it)
{
    struct bow_loop_options loop = BOW_LOOP_OPTIONS_INIT;
    const struct options *options = it->options;

    it->is_terminal = !options->json && isatty(STDOUT_FILENO);
    it->interval_ns = options->interval_ns != 0 ? options->interval_ns : DEFAULT_INTERVAL_NS;
    it->timeout_ns =
        options->connect_timeout_ns != 0 ? options->connect_timeout_ns : DEFAULT_TIMEOUT_NS;
    it->sort = options->sort;
    int rc = read_target(it, options->args[0]);
    if (rc == EXIT_OK) {
        rc = open_signals(it);
    }
    if (rc != EXIT_OK) {
        return rc;
    }
    loop.thread = BOW_LOOP_OWNER;
    if (bow_context_new(NULL, &it->context) < 0 ||
        bow_loop_new(it->context, &loop, &it->loop) < 0) {
        return say_failed(EXIT_FAILED, "no memory, or no descriptors, for an event loop");
    }
    bow_timer_init(&it->timer, it->loop, on_time, it);
    return EXIT_OK;
}

int command_watch(const struct options *options)
{
    struct watch it = {.options = options, .signal_fd = -1};

    int rc = prepare(&it);
    if (rc == EXIT_OK) {
        run(&it);
        rc = it.rc;
    }
    screen_close(&it.screen);
    it.is_ending = true;
    bow_loop_unref(it.loop);
    bow_context_unref(it.context);
    picture_fini(&it.picture);
    sample_fini(&it.then);
    sample_fini(&it.now);
    if (it.signal_fd >= 0) {
        close(it.signal_fd);
    }
    return rc;
}
