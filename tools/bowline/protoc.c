/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* protoc as a child: its descriptor set comes by a pipe. */
#include "protoc.h"
#include "bytes.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define FIXED_ARGS 4

/* Where a file lies, for who gives no -I. */
static char *import_of_file(const char *file)
{
    const char *slash = strrchr(file, '/');
    char *argument = NULL;

    if (slash == NULL) {
        return strdup("-I.");
    }
    if (asprintf(&argument, "-I%.*s", slash == file ? 1 : (int)(slash - file), file) < 0) {
        return NULL;
    }
    return argument;
}

/* Where it lies in one of the -I already, protoc finds it there. */
static const char *shown_file(const struct options *options, const char *file)
{
    const char *slash = strrchr(file, '/');

    if (options->import_dirs.n > 0 || slash == NULL) {
        return file;
    }
    return slash + 1;
}

static size_t make_args(const struct options *options, char **args)
{
    size_t n = 0;

    args[n++] = strdup("protoc");
    args[n++] = strdup("--include_imports");
    args[n++] = strdup("--descriptor_set_out=/dev/stdout");
    for (size_t i = 0; i < options->import_dirs.n; i++) {
        if (asprintf(&args[n++], "-I%s", options->import_dirs.values[i]) < 0) {
            args[n - 1] = NULL;
        }
    }
    for (size_t i = 0; options->import_dirs.n == 0 && i < options->protos.n; i++) {
        args[n++] = import_of_file(options->protos.values[i]);
    }
    for (size_t i = 0; i < options->protos.n; i++) {
        args[n++] = strdup(shown_file(options, options->protos.values[i]));
    }
    args[n] = NULL;
    return n;
}

static int spawn(char **args, int out, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;

    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0) {
        return rc;
    }
    rc = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (rc == 0) {
        rc = posix_spawnp(ret_pid, "protoc", &actions, NULL, args, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static int run(char **args, struct bow_slice *ret_set)
{
    int ends[2];
    int status = 0;
    pid_t pid = 0;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        return say_failed(EXIT_FAILED, "%s", strerror(errno));
    }
    int rc = spawn(args, ends[1], &pid);
    close(ends[1]);
    FILE *file = rc == 0 ? fdopen(ends[0], "rbe") : NULL;
    if (file == NULL) {
        close(ends[0]);
        return say_failed(EXIT_FAILED,
                          "protoc, which --proto needs, cannot be run: %s; install it, or give "
                          "--protoset FILE",
                          strerror(rc != 0 ? rc : errno));
    }
    bool is_read = bytes_read(file, ret_set);
    fclose(file);
    if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        if (is_read) {
            bytes_free(ret_set);
        }
        return say_failed(EXIT_USAGE, "protoc does not take the .proto; -I DIR says where imports "
                                      "lie");
    }
    return is_read ? EXIT_OK : say_failed(EXIT_FAILED, "no memory for what protoc says");
}

int protoc_run(const struct options *options, struct bow_slice *ret_set)
{
    char *args[FIXED_ARGS + 3 * MAX_REPEATED];
    size_t n = make_args(options, args);
    bool is_whole = true;
    int rc = EXIT_OK;

    for (size_t i = 0; i < n; i++) {
        is_whole = is_whole && args[i] != NULL;
    }
    rc = is_whole ? run(args, ret_set) : say_failed(EXIT_FAILED, "no memory");
    for (size_t i = 0; i < n; i++) {
        free(args[i]);
    }
    return rc;
}
