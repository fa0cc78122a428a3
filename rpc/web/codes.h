/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_CODES_H
#define BOWLINE_RPC_WEB_CODES_H

/* How Connect names the codes of statuses, and the status of HTTP that goes with each. */

#include <bowline/status.h>

/** "not_found"; "unknown" for OK and for what is no code. */
const char *bow__connect_code_name(enum bow_code code);
/** "404"; "500" for OK and for what is no code. */
const char *bow__connect_http_status(enum bow_code code);

#endif
