/* SPDX-License-Identifier: 0BSD */
/* Sends the lines of standard input and prints what is said, in the blocking style: one thread
 * sends, another receives. Usage: room-client ADDRESS NAME */

#include "room.bow.h"
#include <bowline/context.h>
#include <bowline/loop.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *print_lines(void *user)
{
    struct demo__room__join__stream *stream = user;
    const Demo__Line *line;

    while (demo__room__join__stream_receive(*stream, BOW_NEVER, &line) > 0) {
        printf("%s: %s\n", line->from, line->text);
        fflush(stdout);
    }
    return NULL;
}

static int talk(struct demo__room__join__stream stream, char *name)
{
    char text[1000];
    int rc = 0;

    while (rc == 0 && fgets(text, sizeof(text), stdin) != NULL) {
        Demo__Line line = DEMO__LINE__INIT;
        text[strcspn(text, "\n")] = '\0';
        line.from = name;
        line.text = text;
        /* Waits while the server is not ready for more. */
        rc = demo__room__join__stream_write(stream, &line, UINT64_C(5000000000));
    }
    bow_stream_half_close(stream.stream);
    return rc;
}

static int visit(struct bow_client *client, char *name)
{
    struct demo__room__join__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    pthread_t printer;

    if (demo__room__join__open(client, NULL, NULL, NULL, &stream) < 0) {
        fprintf(stderr, "room-client: out of memory\n");
        return 1;
    }
    pthread_create(&printer, NULL, print_lines, &stream);
    talk(stream, name);
    pthread_join(printer, NULL);
    demo__room__join__stream_finish(stream, &result);
    int failed = result.status.code != BOW_OK;
    if (failed) {
        fprintf(stderr, "room-client: %s: %s\n", bow_code_name(result.status.code),
                result.status.message);
    }
    bow_result_fini(&result);
    return failed;
}

int main(int argc, char **argv)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error = {0};
    struct bow_client *client;

    options.target = argc > 2 ? argv[1] : NULL;
    options.error = &error;
    if (argc < 3 || bow_context_new(&context_options, &options.context) != 0 ||
        bow_loop_new(options.context, &loop_options, &options.loop) != 0 ||
        bow_client_new(&options, &client) != 0) {
        fprintf(stderr, "usage: %s ADDRESS NAME\n%s\n", argv[0], error.text);
        return 2;
    }
    int failed = visit(client, argv[2]);
    bow_client_free(client);
    bow_loop_unref(options.loop);
    bow_context_unref(options.context);
    return failed;
}
