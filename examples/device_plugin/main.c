/* SPDX-License-Identifier: 0BSD */
/* The program: its arguments, and the poll in which Bowline's loop, inotify and signals meet. */

#include "changes.h"
#include "kubelet.h"
#include "plugin.h"
#include <bowline/context.h>
#include <bowline/loop.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: device-plugin [-d FOLDER] [-m PATH] RESOURCE PATTERN\n"
    "  RESOURCE is what pods ask for, as example.com/serial\n"
    "  PATTERN  is of the device nodes' names, as '/dev/ttyUSB*'; in the last part only\n"
    "  -d       kubelet's folder of sockets (/var/lib/kubelet/device-plugins)\n"
    "  -m       a file or folder that each container gets to read, at the same place\n";

struct program {
    struct devices devices;
    struct changes changes;
    struct kubelet kubelet;
    struct plugin plugin;
    const char *resource;
    const char *folder;
    char endpoint[100]; /* the name of its socket */
    char socket[200];   /* the same with the folder */
    char env[100];
    sigset_t waiting; /* the mask of signals, while it waits */
    bool refused;     /* by kubelet */
};

static volatile sig_atomic_t is_told_to_stop;

static void on_signal(int number)
{
    (void)number;
    is_told_to_stop = 1;
}

/* SIGTERM and SIGINT come while the program waits with `*ret_waiting`, and at no other time. */
static void take_signals(sigset_t *ret_waiting)
{
    const struct sigaction action = {.sa_handler = on_signal};
    sigset_t mine;

    sigemptyset(&mine);
    sigaddset(&mine, SIGTERM);
    sigaddset(&mine, SIGINT);
    sigprocmask(SIG_BLOCK, &mine, ret_waiting);
    sigdelset(ret_waiting, SIGTERM);
    sigdelset(ret_waiting, SIGINT);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

static void on_told(const struct bow_status *refusal, void *user)
{
    struct program *program = user;

    if (refusal == NULL) {
        printf("registered as %s\n", program->resource);
        return;
    }
    /* It will not think better of it: the contract says to end, and whoever started us sees why. */
    fprintf(stderr, "device-plugin: kubelet refuses %s: %s\n", program->resource, refusal->message);
    program->refused = true;
}

static int fail(const char *what, const char *folder, int rc)
{
    fprintf(stderr, "device-plugin: %s %s: %s\n", what, folder, strerror(-rc));
    return rc;
}

static int look_at_devices(struct program *program)
{
    int rc = devices_scan(&program->devices);

    if (rc < 0) {
        return fail("cannot read", program->devices.folder, rc);
    }
    plugin_tell(&program->plugin);
    return 0;
}

static int greet_kubelet(struct program *program)
{
    if (!plugin_is_reachable(&program->plugin)) {
        int rc = plugin_listen(&program->plugin);
        if (rc < 0) {
            return rc;
        }
    }
    kubelet_register(&program->kubelet);
    return 0;
}

/* Returns: 0, or a negative errno when there is no point in going on. */
static int look(struct program *program)
{
    unsigned changes = changes_take(&program->changes);
    int rc = 0;

    if ((changes & CHANGE_LOST) != 0) {
        return fail("lost sight of", "a folder", -ENOENT);
    }
    if ((changes & CHANGE_DEVICES) != 0) {
        rc = look_at_devices(program);
    }
    if (rc == 0 && (changes & CHANGE_KUBELET) != 0) {
        rc = greet_kubelet(program);
    }
    return rc;
}

static int serve(struct program *program)
{
    struct pollfd entries[] = {
        {.fd = bow_loop_fd(program->plugin.loop), .events = POLLIN},
        {.fd = program->changes.fd, .events = POLLIN},
    };
    int rc = 0;

    while (rc == 0 && !is_told_to_stop && !program->refused) {
        if (ppoll(entries, 2, NULL, &program->waiting) < 0 && errno != EINTR) {
            return fail("cannot wait for", "events", -errno);
        }
        rc = look(program);
        if (rc == 0) { /* behind it, so that what was begun there is on its way */
            rc = bow_loop_run_once(program->plugin.loop, 0);
        }
    }
    return program->refused ? -EACCES : rc;
}

static void end(struct program *program)
{
    plugin_stop(&program->plugin);
    /* A turn first: a loop that was never run is nobody's, and asking would wait for its owner. */
    int rc = bow_loop_run_once(program->plugin.loop, 0);
    while (rc == 0 && !plugin_has_stopped(&program->plugin)) {
        rc = bow_loop_run_once(program->plugin.loop, BOW_NEVER);
    }
}

static int open_kubelet(struct program *program)
{
    struct bow_transport_error error = {.text = "out of memory"};
    const struct kubelet_options options = {
        .context = program->plugin.context,
        .loop = program->plugin.loop,
        .folder = program->folder,
        .endpoint = program->endpoint,
        .resource = program->resource,
        .told = on_told,
        .user = program,
    };

    int rc = kubelet_open(&program->kubelet, &options, &error);
    if (rc < 0) {
        fprintf(stderr, "device-plugin: %s\n", error.text);
    }
    return rc;
}

/* Listening comes before registering: kubelet calls back before it answers. */
static int run(struct program *program)
{
    const char *folder;

    int rc = changes_open(&program->changes, program->devices.folder, program->folder, &folder);
    if (rc < 0) {
        return fail("cannot watch", folder, rc);
    }
    rc = look_at_devices(program);
    if (rc == 0) {
        rc = plugin_listen(&program->plugin);
    }
    if (rc == 0) {
        rc = open_kubelet(program);
    }
    if (rc == 0) {
        kubelet_register(&program->kubelet);
        rc = serve(program);
        kubelet_close(&program->kubelet);
        end(program);
    }
    plugin_free(&program->plugin);
    changes_close(&program->changes);
    return rc;
}

static int run_on_a_loop(struct program *program)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;

    take_signals(&program->waiting);
    options.thread = BOW_LOOP_OWNER;
    int rc = bow_context_new(NULL, &program->plugin.context);
    if (rc == 0) {
        rc = bow_loop_new(program->plugin.context, &options, &program->plugin.loop);
    }
    if (rc < 0) {
        fprintf(stderr, "device-plugin: out of memory or descriptors\n");
    } else {
        rc = run(program);
    }
    bow_loop_unref(program->plugin.loop);
    bow_context_unref(program->plugin.context);
    return rc;
}

/* Of "example.com/serial": "example.com-serial.sock" is the socket, EXAMPLE_COM_SERIAL the
 * variable. */
static bool set_names(struct program *program)
{
    const char *slash = strchr(program->resource, '/');

    int n = snprintf(program->endpoint, sizeof(program->endpoint), "%s.sock", program->resource);
    if (slash == NULL || strchr(slash + 1, '/') != NULL || n < 0 ||
        (size_t)n >= sizeof(program->endpoint)) {
        return false;
    }
    program->endpoint[slash - program->resource] = '-';
    for (size_t i = 0; program->resource[i] != '\0'; i++) {
        unsigned char c = (unsigned char)program->resource[i];
        program->env[i] = isalnum(c) ? (char)toupper(c) : '_';
    }
    n = snprintf(program->socket, sizeof(program->socket), "%s/%s", program->folder,
                 program->endpoint);
    return n > 0 && (size_t)n < sizeof(program->socket);
}

/* Folder and pattern of the nodes, which are one word. */
static bool set_devices(struct devices *devices, char *word)
{
    char *slash = strrchr(word, '/');

    if (slash == NULL || slash[1] == '\0') {
        return false;
    }
    *slash = '\0';
    devices->folder = word;
    devices->pattern = slash + 1;
    devices->revision = 1;
    return strpbrk(word, "*?[") == NULL;
}

int main(int argc, char **argv)
{
    struct program program = {.folder = "/var/lib/kubelet/device-plugins"};
    int option;

    setvbuf(stdout, NULL, _IOLBF, 0);
    while ((option = getopt(argc, argv, "d:m:")) != -1) {
        if (option == 'd') {
            program.folder = optarg;
        } else if (option == 'm') {
            program.plugin.allocate.mount = optarg;
        }
    }
    program.resource = argv[optind];
    if (argc - optind != 2 || !set_names(&program) ||
        !set_devices(&program.devices, argv[optind + 1])) {
        fputs(usage, stderr);
        return 2;
    }
    program.plugin.devices = &program.devices;
    program.plugin.socket = program.socket;
    program.plugin.allocate.env = program.env;
    return run_on_a_loop(&program) == 0 ? 0 : 1;
}
