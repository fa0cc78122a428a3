/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_MODEL_MEMBERS_H
#define BOWLINE_CODEGEN_MODEL_MEMBERS_H

/*
 * The members of the emitted structs: which names they get, and that no two of one
 * struct are the same. One rule: a name that is reserved or taken gets '_' after it,
 * until it is neither. First come the struct's own members (base, the cases of
 * oneofs), then the fields in the order of the .proto.
 */

#include "codegen/model.h"

/** Name the members of each message's struct and of each service's handlers. */
void model_members_name(struct model *model);

#endif
