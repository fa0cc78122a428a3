/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Running protoc-gen-c. Request and response go through files in memory and not
 * through pipes, so neither side waits for the other.
 */

#include "codegen/child.h"
#include "codegen/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define INSTALL_HINT                                                                               \
    "install protobuf-c's compiler (Debian: protobuf-c-compiler), or name it with "                \
    "--bowline_opt=protoc_gen_c=PATH or in the environment as BOWLINE_PROTOC_GEN_C"

extern char **environ;

static int write_all(int fd, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        bytes += n;
        len -= (size_t)n;
    }
    return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int write_request(struct memory *memory, int fd, const Bowline__Codegen__Request *request)
{
    size_t len = protobuf_c_message_get_packed_size(&request->base);
    uint8_t *bytes = memory_alloc(memory, len);

    protobuf_c_message_pack(&request->base, bytes);
    return write_all(fd, bytes, len);
}

static int read_all(struct memory *memory, int fd, struct bow_slice *ret_bytes)
{
    struct stat info;
    size_t n_read = 0;

    if (fstat(fd, &info) < 0) {
        return -errno;
    }
    size_t len = (size_t)info.st_size;
    uint8_t *bytes = memory_alloc(memory, len);
    while (n_read < len) {
        ssize_t n = pread(fd, bytes + n_read, len - n_read, (off_t)n_read);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : -EIO;
        }
        n_read += (size_t)n;
    }
    *ret_bytes = (struct bow_slice){.data = bytes, .len = len};
    return 0;
}

static int spawn(const char *program, int in, int out, pid_t *ret_pid)
{
    char *argv[] = {(char *)(uintptr_t)program, NULL};
    posix_spawn_file_actions_t actions;

    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0) {
        return -rc;
    }
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    rc = posix_spawnp(ret_pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

static int wait_for(pid_t pid)
{
    int state = 0;

    while (waitpid(pid, &state, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return state;
}

/* How the child ended, when that was not well; else NULL. */
static const char *describe_end(struct memory *memory, const char *program, int state)
{
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) {
        return NULL;
    }
    if (WIFEXITED(state) && WEXITSTATUS(state) == 127) {
        return memory_printf(memory, "%s cannot be run: " INSTALL_HINT, program);
    }
    if (WIFSIGNALED(state)) {
        return memory_printf(memory,
                             "%s crashed with signal %d (%s) on these files: it does not "
                             "understand something in them; run it on them one by one with "
                             "protoc --c_out to find out which; or " INSTALL_HINT,
                             program, WTERMSIG(state), strsignal(WTERMSIG(state)));
    }
    return memory_printf(memory, "%s exited with status %d (its message is above): " INSTALL_HINT,
                         program, WEXITSTATUS(state));
}

static Bowline__Codegen__Response *decode(struct memory *memory, struct bow_slice bytes)
{
    const ProtobufCMessageDescriptor *descriptor = &bowline__codegen__response__descriptor;

    if (!wire_is_safe(descriptor, bytes)) {
        return NULL;
    }
    return (Bowline__Codegen__Response *)protobuf_c_message_unpack(descriptor, &memory->allocator,
                                                                   bytes.len, bytes.data);
}

static Bowline__Codegen__Response *talk(struct memory *memory, const char *program, int in, int out,
                                        const Bowline__Codegen__Request *request,
                                        const char **ret_error)
{
    struct bow_slice bytes = {0};
    pid_t pid = -1;

    int rc = write_request(memory, in, request);
    if (rc < 0) {
        *ret_error = memory_printf(memory, "no room for %s's request: %s", program, strerror(-rc));
        return NULL;
    }
    rc = spawn(program, in, out, &pid);
    if (rc < 0) {
        *ret_error =
            memory_printf(memory, "%s cannot be run: %s: " INSTALL_HINT, program, strerror(-rc));
        return NULL;
    }
    *ret_error = describe_end(memory, program, wait_for(pid));
    if (*ret_error != NULL) {
        return NULL;
    }
    rc = read_all(memory, out, &bytes);
    Bowline__Codegen__Response *response = rc == 0 ? decode(memory, bytes) : NULL;
    if (response == NULL) {
        *ret_error = memory_printf(
            memory,
            "what %s answered is not a plugin's response: is it protoc-gen-c? " INSTALL_HINT,
            program);
    }
    return response;
}

Bowline__Codegen__Response *child_run(struct memory *memory, const char *program,
                                      const Bowline__Codegen__Request *request,
                                      const char **ret_error)
{
    Bowline__Codegen__Response *response = NULL;
    int in = memfd_create("protoc-gen-c request", MFD_CLOEXEC);
    int out = memfd_create("protoc-gen-c response", MFD_CLOEXEC);

    if (in < 0 || out < 0) {
        *ret_error = memory_printf(memory, "no memory file for %s: %s", program, strerror(errno));
    } else {
        response = talk(memory, program, in, out, request, ret_error);
    }
    if (in >= 0) {
        close(in);
    }
    if (out >= 0) {
        close(out);
    }
    return response;
}
