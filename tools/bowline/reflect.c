/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Questions to a server's reflection. What is made of the files is none of this file's business. */
#include "reflect.h"
#include "grpc/reflection/v1/reflection.bow.h"
#include "say.h"

#include <errno.h>
#include <string.h>

#define PATIENCE_NS (UINT64_C(10) * 1000000000u)

typedef Bow__Reflection__ServerReflectionRequest request_type;
typedef Bow__Reflection__ServerReflectionResponse response_type;

void reflect_init(struct reflect *reflect, struct peer *peer)
{
    *reflect = (struct reflect){.peer = peer};
}

void reflect_fini(struct reflect *reflect)
{
    struct bow_result result = BOW_RESULT_INIT;

    if (reflect->stream != NULL) {
        bow_stream_cancel(reflect->stream);
        (void)bow_stream_finish(reflect->stream, &result);
        bow_result_fini(&result);
        reflect->stream = NULL;
    }
}

static int open_stream(struct reflect *reflect)
{
    static const char alpha[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    static struct bow_method older;
    const struct bow_method *method = &bow__reflection__server_reflection__service.methods[0];

    older = *method;
    older.path = alpha;
    older.name = strrchr(alpha, '/') + 1;
    options.timeout_ns = PATIENCE_NS;
    int rc = bow_client_open(reflect->peer->client, reflect->is_alpha ? &older : method, NULL,
                             &options, NULL, NULL, &reflect->stream);
    return rc == 0 ? EXIT_OK : say_failed(EXIT_FAILED, "%s", strerror(-rc));
}

static int ask_once(struct reflect *reflect, const request_type *request,
                    const response_type **ret_response)
{
    const ProtobufCMessage *message = NULL;

    if (reflect->stream == NULL) {
        int rc = open_stream(reflect);
        if (rc != EXIT_OK) {
            return rc;
        }
    }
    (void)!bow_stream_write(reflect->stream, &request->base, PATIENCE_NS);
    if (bow_stream_receive(reflect->stream, PATIENCE_NS, &message) == 1) {
        reflect->has_answered = true;
        *ret_response = (const response_type *)message;
        return EXIT_OK;
    }
    *ret_response = NULL;
    return EXIT_OK;
}

/* How the stream ended that brought no answer. */
static int ended(struct reflect *reflect, bool *ret_again)
{
    struct bow_result result = BOW_RESULT_INIT;
    int rc = EXIT_OK;

    (void)bow_stream_finish(reflect->stream, &result);
    reflect->stream = NULL;
    if (result.status.code == BOW_UNIMPLEMENTED && !reflect->has_answered && !reflect->is_alpha) {
        reflect->is_alpha = true;
        *ret_again = true;
    } else if (result.status.code == BOW_UNIMPLEMENTED) {
        rc = say_failed(exit_of(BOW_UNIMPLEMENTED),
                        "%s has no reflection, so it does not say what its methods are: name them "
                        "with --proto FILE or --protoset FILE",
                        reflect->peer->target);
    } else if (result.status.code == BOW_OK) {
        rc = say_failed(EXIT_FAILED, "the server's reflection ended without an answer");
    } else {
        rc = peer_failed(reflect->peer, &result.status);
    }
    bow_result_fini(&result);
    return rc;
}

static int ask(struct reflect *reflect, const request_type *request,
               const response_type **ret_response)
{
    bool again = false;

    do {
        again = false;
        int rc = ask_once(reflect, request, ret_response);
        if (rc == EXIT_OK && *ret_response == NULL) {
            rc = ended(reflect, &again);
        }
        if (rc != EXIT_OK) {
            return rc;
        }
    } while (again);
    return EXIT_OK;
}

/* Files */

static bool is_files(const response_type *response)
{
    return response->message_response_case ==
           BOW__REFLECTION__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
}

static int add_files(struct reflect *reflect, const response_type *response,
                     struct bow_schema *schema, bool *ret_unknown)
{
    char reason[400];

    if (!is_files(response)) {
        *ret_unknown = true;
        if (response->message_response_case ==
            BOW__REFLECTION__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE) {
            snprintf(reflect->said, sizeof(reflect->said), "%s",
                     response->error_response->error_message);
        }
        return EXIT_OK;
    }
    const Bow__Reflection__FileDescriptorResponse *files = response->file_descriptor_response;
    for (size_t i = 0; i < files->n_file_descriptor_proto; i++) {
        struct bow_slice bytes = {files->file_descriptor_proto[i].data,
                                  files->file_descriptor_proto[i].len};
        int rc = bow_schema_add(schema, bytes, reason, sizeof(reason));
        if (rc < 0 && rc != -EEXIST) {
            return say_failed(EXIT_FAILED, "what the server's reflection says: %s", reason);
        }
    }
    return EXIT_OK;
}

int reflect_symbol(struct reflect *reflect, const char *symbol, struct bow_schema *schema,
                   bool *ret_unknown)
{
    request_type request = BOW__REFLECTION__SERVER_REFLECTION_REQUEST__INIT;
    const response_type *response = NULL;

    request.message_request_case =
        BOW__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL;
    request.file_containing_symbol = symbol;
    *ret_unknown = false;
    int rc = ask(reflect, &request, &response);
    return rc == EXIT_OK ? add_files(reflect, response, schema, ret_unknown) : rc;
}

int reflect_imports(struct reflect *reflect, struct bow_schema *schema)
{
    size_t n_absent = 0; /* the server has not got them: they come first among those missing */
    const char *name;

    while ((name = bow_schema_missing(schema, n_absent)) != NULL) {
        request_type request = BOW__REFLECTION__SERVER_REFLECTION_REQUEST__INIT;
        const response_type *response = NULL;
        bool unknown = false;

        request.message_request_case =
            BOW__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME;
        request.file_by_filename = name;
        int rc = ask(reflect, &request, &response);
        if (rc == EXIT_OK) {
            rc = add_files(reflect, response, schema, &unknown);
        }
        if (rc != EXIT_OK) {
            return rc;
        }
        const char *now = bow_schema_missing(schema, n_absent);
        n_absent += unknown || now == name; /* a file of another name came */
    }
    return EXIT_OK;
}

int reflect_services(struct reflect *reflect, int (*add)(const char *name, void *user), void *user)
{
    request_type request = BOW__REFLECTION__SERVER_REFLECTION_REQUEST__INIT;
    const response_type *response = NULL;

    request.message_request_case =
        BOW__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES;
    request.list_services = "*";
    int rc = ask(reflect, &request, &response);
    if (rc != EXIT_OK) {
        return rc;
    }
    if (response->message_response_case !=
        BOW__REFLECTION__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE) {
        return say_failed(EXIT_FAILED, "the server's reflection does not list its services");
    }
    const Bow__Reflection__ListServiceResponse *list = response->list_services_response;
    for (size_t i = 0; i < list->n_service && rc == EXIT_OK; i++) {
        rc = add(list->service[i]->name, user);
    }
    return rc;
}
