/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SCHEMA_MESSAGE_TYPE_H
#define BOWLINE_RPC_SCHEMA_MESSAGE_TYPE_H

#include "rpc/schema/schema.h"

/**
 * Fill in the descriptor of a message and what it does not say, `symbol->made` and
 * `symbol->info`; all types are declared by now. Returns 0; -EBADMSG; -ENOMEM, -EMSGSIZE.
 */
int bow__schema_make_message(struct bow_schema *schema, struct bow__schema_symbol *symbol,
                             struct bow__text *reason);

#endif
