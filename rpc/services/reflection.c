/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Answers of reflection, one for each request, in their order. A file comes with those of its
 * imports that the call has not been sent yet, the way of gRPC's own servers in Go: whoever keeps
 * what comes has all of them, and whoever does not asks by name and gets what he names.
 *
 * While BOW_STREAM_WRITABLE_BYTES of answers wait for a client, nothing more is read of its
 * requests.
 */

#include "rpc/services/reflection.h"
#include "rpc/core/call/call.h"
#include "rpc/services/generated/grpc/reflection/v1/reflection.bow.h"
#include "rpc/services/generated/grpc/reflection/v1alpha/reflection.bow.h"

#include <bowline/status.h>
#include <errno.h>
#include <string.h>

#define SHOWN_NAME_BYTES 200u

typedef struct bow__reflection__server_reflection__server_reflection_info__call info_call;
typedef Bow__Reflection__ServerReflectionRequest request_type;
typedef Bow__Reflection__ServerReflectionResponse response_type;

struct bow__reflected_service {
    struct bow__reflected_service *next;
    Bow__Reflection__ServiceResponse response;
};

/* One call; in its memory. */
struct asking {
    const struct bow__reflection *reflection;
    bool *sent; /* of each file, by its index */
    const struct bow__reflected_file **queue;
    ProtobufCBinaryData *bytes; /* room for all files */
    int32_t *numbers;           /* room for all extensions */
};

/* What one answer is made of. */
struct answer {
    response_type response;
    Bow__Reflection__FileDescriptorResponse files;
    Bow__Reflection__ExtensionNumberResponse numbers;
    Bow__Reflection__ErrorResponse error;
    struct bow__text text;
};

/* Answers */

static void answer_error(struct answer *answer, enum bow_code code, const char *what,
                         const char *name)
{
    const struct bow_slice bytes = {(const uint8_t *)name, strlen(name)};

    bow__text_clear(&answer->text);
    bow__text_printf(&answer->text, "%s", what);
    bow__text_escape(&answer->text, bytes, SHOWN_NAME_BYTES);
    answer->error = (Bow__Reflection__ErrorResponse)BOW__REFLECTION__ERROR_RESPONSE__INIT;
    answer->error.error_code = (int32_t)code;
    answer->error.error_message = answer->text.bytes;
    answer->response.message_response_case =
        BOW__REFLECTION__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    answer->response.error_response = &answer->error;
}

static void put_file(struct asking *asking, struct answer *answer,
                     const struct bow__reflected_file *file)
{
    asking->sent[file->index] = true;
    asking->queue[answer->files.n_file_descriptor_proto] = file;
    /* Encoding reads it only. */
    asking->bytes[answer->files.n_file_descriptor_proto++] =
        (ProtobufCBinaryData){file->bytes.len, (uint8_t *)(uintptr_t)file->bytes.data};
}

static void answer_file(struct asking *asking, struct answer *answer,
                        const struct bow__reflected_file *file)
{
    answer->files =
        (Bow__Reflection__FileDescriptorResponse)BOW__REFLECTION__FILE_DESCRIPTOR_RESPONSE__INIT;
    answer->files.file_descriptor_proto = asking->bytes;
    put_file(asking, answer, file);
    for (size_t i = 0; i < answer->files.n_file_descriptor_proto; i++) {
        const struct bow__reflected_file *importer = asking->queue[i];
        for (uint32_t k = 0; k < importer->n_imports; k++) {
            if (!asking->sent[importer->imports[k]->index]) {
                put_file(asking, answer, importer->imports[k]);
            }
        }
    }
    answer->response.message_response_case =
        BOW__REFLECTION__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    answer->response.file_descriptor_response = &answer->files;
}

static void answer_by_filename(struct asking *asking, struct answer *answer, const char *name)
{
    const struct bow__reflected_file *file =
        bow__reflection_index_file(&asking->reflection->index, name);

    if (file == NULL) {
        answer_error(answer, BOW_NOT_FOUND,
                     "no such file is linked, or no service needs it: ", name);
        return;
    }
    answer_file(asking, answer, file);
}

static void answer_by_symbol(struct asking *asking, struct answer *answer, const char *name)
{
    const struct bow__reflected_symbol *symbol =
        bow__reflection_index_symbol(&asking->reflection->index, name);

    if (symbol == NULL) {
        answer_error(answer, BOW_NOT_FOUND, "no file of the services declares ", name);
        return;
    }
    answer_file(asking, answer, symbol->file);
}

static void answer_by_extension(struct asking *asking, struct answer *answer,
                                const Bow__Reflection__ExtensionRequest *request)
{
    const struct bow__reflected_extension *extension = bow__reflection_index_extension(
        &asking->reflection->index, request->containing_type, request->extension_number);

    if (extension == NULL) {
        answer_error(answer, BOW_NOT_FOUND, "no file of the services has that extension of ",
                     request->containing_type);
        return;
    }
    answer_file(asking, answer, extension->file);
}

static void answer_numbers(struct asking *asking, struct answer *answer, const char *name)
{
    const struct bow__reflection_index *index = &asking->reflection->index;
    const struct bow__reflected_symbol *symbol = bow__reflection_index_symbol(index, name);
    const struct bow_slice wanted = {(const uint8_t *)name, strlen(name)};
    const struct bow__reflected_extension *at = index->extensions;

    answer->numbers =
        (Bow__Reflection__ExtensionNumberResponse)BOW__REFLECTION__EXTENSION_NUMBER_RESPONSE__INIT;
    answer->numbers.base_type_name = name;
    answer->numbers.extension_number = asking->numbers;
    for (; at != NULL; at = at->next) {
        if (at->extendee.len == wanted.len &&
            memcmp(at->extendee.data, wanted.data, wanted.len) == 0) {
            asking->numbers[answer->numbers.n_extension_number++] = at->number;
        }
    }
    if (answer->numbers.n_extension_number == 0 && (symbol == NULL || !symbol->is_message)) {
        answer_error(answer, BOW_NOT_FOUND, "no file of the services declares a message ", name);
        return;
    }
    answer->response.message_response_case =
        BOW__REFLECTION__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
    answer->response.all_extension_numbers_response = &answer->numbers;
}

static void make_answer(struct asking *asking, const request_type *request, struct answer *answer)
{
    answer->response = (response_type)BOW__REFLECTION__SERVER_REFLECTION_RESPONSE__INIT;
    answer->response.valid_host = request->host;
    /* Encoding reads it only. */
    answer->response.original_request = (request_type *)(uintptr_t)request;
    switch (request->message_request_case) {
    case BOW__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        answer_by_filename(asking, answer, request->file_by_filename);
        break;
    case BOW__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        answer_by_symbol(asking, answer, request->file_containing_symbol);
        break;
    case BOW__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
        answer_by_extension(asking, answer, request->file_containing_extension);
        break;
    case BOW__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
        answer_numbers(asking, answer, request->all_extension_numbers_of_type);
        break;
    case BOW__REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        answer->response.message_response_case =
            BOW__REFLECTION__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
        answer->response.list_services_response = asking->reflection->listing;
        break;
    default:
        answer_error(answer, BOW_INVALID_ARGUMENT, "the request asks for nothing that is known",
                     "");
        break;
    }
}

/* Calls */

static void on_message(info_call handle, const request_type *request, void *user)
{
    struct asking *asking = user;
    struct answer answer;

    make_answer(asking, request, &answer);
    int rc = bow_call_send(handle.call, &answer.response.base);
    if (rc < 0 && rc != -ECANCELED) {
        (void)bow_call_fail(handle.call, BOW_RESOURCE_EXHAUSTED, "the answer cannot be sent");
    } else if (!bow_call_is_writable(handle.call)) {
        bow_call_pause(handle.call);
    }
}

static void on_writable(info_call handle, void *user)
{
    (void)user;
    bow_call_resume(handle.call);
}

static void on_half_close(info_call handle, void *user)
{
    (void)user;
    (void)bow_call_finish(handle.call);
}

static struct asking *make_asking(struct bow_call *call, const struct bow__reflection *reflection)
{
    const struct bow__reflection_index *index = &reflection->index;
    struct asking *asking = bow_call_alloc(call, sizeof(*asking));

    if (asking == NULL) {
        return NULL;
    }
    *asking = (struct asking){
        .reflection = reflection,
        .sent = bow_call_alloc(call, index->n_files * sizeof(*asking->sent)),
        .queue = bow_call_alloc(call, index->n_files * sizeof(const void *)),
        .bytes = bow_call_alloc(call, index->n_files * sizeof(*asking->bytes)),
        .numbers = bow_call_alloc(call, index->n_extensions * sizeof(*asking->numbers)),
    };
    if (asking->sent == NULL || asking->queue == NULL || asking->bytes == NULL ||
        asking->numbers == NULL) {
        return NULL;
    }
    memset(asking->sent, 0, index->n_files * sizeof(*asking->sent));
    return asking;
}

static void server_reflection_info(info_call handle, void *user)
{
    static const struct bow__reflection__server_reflection__server_reflection_info__call_events
        events = {
            .on_message = on_message,
            .on_half_close = on_half_close,
            .on_writable = on_writable,
        };
    struct asking *asking = make_asking(handle.call, user);

    if (asking == NULL) {
        (void)bow_call_fail(handle.call, BOW_RESOURCE_EXHAUSTED, "no memory to answer in");
        return;
    }
    (void)bow__reflection__server_reflection__server_reflection_info__listen(handle, &events,
                                                                             asking);
}

const void *bow__reflection_handlers(size_t *ret_size)
{
    static const struct bow__reflection__server_reflection__handlers handlers = {
        .server_reflection_info = server_reflection_info,
    };

    *ret_size = sizeof(handlers);
    return &handlers;
}

/* Before the start */

/* The same service under the name that older clients know. */
static void init_alpha(struct bow__reflection *reflection)
{
    struct bow_service *alpha = &reflection->services[1];

    *alpha = bow__reflection__server_reflection__service;
    reflection->alpha_method = alpha->methods[0];
    reflection->alpha_method.path =
        bow__reflection__alpha__server_reflection__service.methods[0].path;
    reflection->alpha_method.name =
        bow__reflection__alpha__server_reflection__service.methods[0].name;
    alpha->name = bow__reflection__alpha__server_reflection__service.name;
    alpha->methods = &reflection->alpha_method;
    alpha->file = bow__reflection__alpha__server_reflection__service.file;
}

void bow__reflection_init(struct bow__reflection *reflection, struct bow_context *context)
{
    *reflection = (struct bow__reflection){.context = context};
    bow__reflection_index_init(&reflection->index, context);
    reflection->services[0] = bow__reflection__server_reflection__service;
    init_alpha(reflection);
}

void bow__reflection_clear(struct bow__reflection *reflection)
{
    bow__reflection_index_fini(&reflection->index);
    bow__reflection_index_init(&reflection->index, reflection->context);
    reflection->served = NULL;
    reflection->n_served = 0;
    reflection->listing = NULL;
}

void bow__reflection_fini(struct bow__reflection *reflection)
{
    bow__reflection_index_fini(&reflection->index);
}

int bow__reflection_add(struct bow__reflection *reflection, const struct bow_service *service)
{
    struct bow__reflected_service *served =
        bow__arena_alloc(&reflection->index.arena, sizeof(*served));

    if (served == NULL) {
        return -ENOMEM;
    }
    *served = (struct bow__reflected_service){
        .next = reflection->served,
        .response = BOW__REFLECTION__SERVICE_RESPONSE__INIT,
    };
    served->response.name = service->name;
    reflection->served = served;
    reflection->n_served++;
    return bow__reflection_index_add(&reflection->index, service->file);
}

static int make_listing(struct bow__reflection *reflection)
{
    struct bow__arena *arena = &reflection->index.arena;
    Bow__Reflection__ListServiceResponse *listing = bow__arena_alloc(arena, sizeof(*listing));
    Bow__Reflection__ServiceResponse **names =
        bow__arena_alloc(arena, reflection->n_served * sizeof(*names));
    struct bow__reflected_service *served = reflection->served;

    if (listing == NULL || names == NULL) {
        return -ENOMEM;
    }
    *listing = (Bow__Reflection__ListServiceResponse)BOW__REFLECTION__LIST_SERVICE_RESPONSE__INIT;
    listing->service = names;
    for (; served != NULL; served = served->next) {
        names[listing->n_service++] = &served->response;
    }
    reflection->listing = listing;
    return 0;
}

int bow__reflection_seal(struct bow__reflection *reflection, const char **ret_bad)
{
    int rc = make_listing(reflection);

    return rc == 0 ? bow__reflection_index_seal(&reflection->index, ret_bad) : rc;
}
