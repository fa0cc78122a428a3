/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_MODEL_SERVICE_H
#define BOWLINE_CODEGEN_MODEL_SERVICE_H

/*
 * The seam between the two files that build a model: model.c and model_service.c.
 */

#include "codegen/model.h"

/** Adds an error and returns false when `name` cannot be a name in C. */
bool model_check_name(struct errors *errors, struct place place, const char *name);

/** `full_name` as the file's c_package option changes it. */
const char *model_effective_name(struct memory *memory, const struct model_file *file,
                                 const char *full_name);

/** The message that `type_name` (with a dot in front) names, or NULL. */
const struct model_message *model_find_message(const struct model *model, const char *type_name);

/** Fill `*ret_service`; false (and an error) when it has no usable name. */
bool model_add_service(struct model *model, struct errors *errors, const struct model_file *file,
                       struct place place, const Google__Protobuf__ServiceDescriptorProto *proto,
                       struct model_service *ret_service);

/** Over all that the layout of the handlers struct depends on, by the names that it has now. */
uint64_t model_hash_service(const struct model_service *service);

#endif
