/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Timestamp and Duration as numbers of C. Knows nothing of calendars. */
#include "rpc/well_known/known_type.h"
#include <bowline/well_known.h>
#include <errno.h>

#define SECOND_NS INT64_C(1000000000)

int bow_timestamp_get(const ProtobufCMessage *timestamp, struct timespec *ret_time)
{
    if (!bow__known_is(timestamp, BOW__KNOWN_TIMESTAMP)) {
        return -EINVAL;
    }
    int64_t seconds = bow__known_seconds(timestamp);
    int32_t nanos = bow__known_nanos(timestamp);
    if (!bow__known_timestamp_is_valid(seconds, nanos) || seconds != (time_t)seconds) {
        return -ERANGE;
    }
    *ret_time = (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = nanos};
    return 0;
}

int bow_timestamp_set(ProtobufCMessage *timestamp, const struct timespec *time)
{
    if (!bow__known_is(timestamp, BOW__KNOWN_TIMESTAMP) || time == NULL) {
        return -EINVAL;
    }
    if (time->tv_nsec < 0 || time->tv_nsec > BOW__NANOS_MAX ||
        !bow__known_timestamp_is_valid(time->tv_sec, (int32_t)time->tv_nsec)) {
        return -ERANGE;
    }
    bow__known_set_time(timestamp, time->tv_sec, (int32_t)time->tv_nsec);
    return 0;
}

int bow_duration_get_ns(const ProtobufCMessage *duration, int64_t *ret_ns)
{
    int64_t ns;

    if (!bow__known_is(duration, BOW__KNOWN_DURATION)) {
        return -EINVAL;
    }
    int64_t seconds = bow__known_seconds(duration);
    int32_t nanos = bow__known_nanos(duration);
    if (!bow__known_duration_is_valid(seconds, nanos)) {
        return -ERANGE;
    }
    /* Of INT64_MIN ns the seconds alone fit, and so with all that is nearer to 0. */
    if (__builtin_mul_overflow(seconds, SECOND_NS, &ns) || __builtin_add_overflow(ns, nanos, &ns)) {
        return -ERANGE;
    }
    *ret_ns = ns;
    return 0;
}

int bow_duration_set_ns(ProtobufCMessage *duration, int64_t ns)
{
    if (!bow__known_is(duration, BOW__KNOWN_DURATION)) {
        return -EINVAL;
    }
    bow__known_set_time(duration, ns / SECOND_NS, (int32_t)(ns % SECOND_NS));
    return 0;
}
