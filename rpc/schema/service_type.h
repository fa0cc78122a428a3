/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SCHEMA_SERVICE_TYPE_H
#define BOWLINE_RPC_SCHEMA_SERVICE_TYPE_H

#include "rpc/schema/schema.h"

/** Fill in a service, `symbol->made`, and its methods; all types are declared by now. Returns 0;
 * -EBADMSG; -ENOMEM, -EMSGSIZE. */
int bow__schema_make_service(struct bow_schema *schema, struct bow__schema_symbol *symbol,
                             struct bow__text *reason);

#endif
