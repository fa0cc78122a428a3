/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_TIME_TEXT_H
#define BOWLINE_RPC_JSON_TIME_TEXT_H

/*
 * Points in time by RFC 3339 and spans in seconds, as JSON has Timestamp and Duration. Knows
 * nothing of their messages.
 */

#include <bowline/slice.h>
#include <stdbool.h>

/** Room that the writers need at most. */
#define BOW__TIME_TEXT_BYTES 40

/** Write "2024-02-29T12:00:00.5Z" and the like, with 0, 3, 6 or 9 digits behind the point. The time
 * has to be within the range of a Timestamp. Returns the first character after. */
char *bow__time_write_timestamp(char *to, int64_t seconds, int32_t nanos);
/** Write "-1.5s" and the like; of a Duration's range. */
char *bow__time_write_duration(char *to, int64_t seconds, int32_t nanos);

/** Read all of `text`: any offset from UTC, 1 to 9 digits behind the point. False: it is none, or
 * is out of range. */
bool bow__time_read_timestamp(struct bow_slice text, int64_t *ret_seconds, int32_t *ret_nanos);
bool bow__time_read_duration(struct bow_slice text, int64_t *ret_seconds, int32_t *ret_nanos);

#endif
