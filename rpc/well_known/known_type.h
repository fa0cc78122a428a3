/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WELL_KNOWN_KNOWN_TYPE_H
#define BOWLINE_RPC_WELL_KNOWN_KNOWN_TYPE_H

/*
 * Which of protobuf's own types (google/protobuf/X.proto) a descriptor is of. Each program
 * generates them for itself, so the structs are reached by descriptor: its full name says which
 * type it is, and its fields are looked at, so that a type of that name with other fields is none
 * of them.
 */

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <string.h>

enum bow__known_type {
    BOW__KNOWN_NONE,
    BOW__KNOWN_ANY,
    BOW__KNOWN_DURATION,
    BOW__KNOWN_FIELD_MASK,
    BOW__KNOWN_LIST_VALUE,
    BOW__KNOWN_STRUCT,
    BOW__KNOWN_TIMESTAMP,
    BOW__KNOWN_VALUE,
    BOW__KNOWN_WRAPPER, /* DoubleValue to BytesValue */
};

/* Fields by their index in the descriptor. */
enum { BOW__ANY_TYPE_URL, BOW__ANY_VALUE };
enum { BOW__TIME_SECONDS, BOW__TIME_NANOS };
enum {
    BOW__VALUE_NULL,
    BOW__VALUE_NUMBER,
    BOW__VALUE_STRING,
    BOW__VALUE_BOOL,
    BOW__VALUE_STRUCT,
    BOW__VALUE_LIST,
};

/** bow__known_type() of a type whose full name begins with "google.protobuf.". */
enum bow__known_type bow__known_google_type(const ProtobufCMessageDescriptor *type);

static inline enum bow__known_type bow__known_type(const ProtobufCMessageDescriptor *type)
{
    static const char package[] = "google.protobuf.";

    return type->name != NULL && strncmp(type->name, package, sizeof package - 1) == 0
               ? bow__known_google_type(type)
               : BOW__KNOWN_NONE;
}

/** Whether `message` (NULL is allowed, and one without a descriptor) is one of `kind`. */
static inline bool bow__known_is(const ProtobufCMessage *message, enum bow__known_type kind)
{
    return message != NULL && message->descriptor != NULL &&
           bow__known_type(message->descriptor) == kind;
}

/** Whether `type` is google.protobuf.NullValue. */
static inline bool bow__known_null_value(const ProtobufCEnumDescriptor *type)
{
    return type != NULL && type->name != NULL &&
           strcmp(type->name, "google.protobuf.NullValue") == 0;
}

/** The member of a field that is not repeated. */
static inline void *bow__known_member(const ProtobufCMessage *message, unsigned index)
{
    return (char *)(uintptr_t)message + message->descriptor->fields[index].offset;
}

/** Seconds and nanoseconds of a Timestamp or Duration. */
static inline int64_t bow__known_seconds(const ProtobufCMessage *time)
{
    return *(const int64_t *)bow__known_member(time, BOW__TIME_SECONDS);
}

static inline int32_t bow__known_nanos(const ProtobufCMessage *time)
{
    return *(const int32_t *)bow__known_member(time, BOW__TIME_NANOS);
}

static inline void bow__known_set_time(ProtobufCMessage *time, int64_t seconds, int32_t nanos)
{
    *(int64_t *)bow__known_member(time, BOW__TIME_SECONDS) = seconds;
    *(int32_t *)bow__known_member(time, BOW__TIME_NANOS) = nanos;
}

/* What their definitions allow. */
#define BOW__TIMESTAMP_MIN INT64_C(-62135596800) /* 0001-01-01T00:00:00Z */
#define BOW__TIMESTAMP_MAX INT64_C(253402300799) /* 9999-12-31T23:59:59Z */
#define BOW__DURATION_MAX INT64_C(315576000000)  /* seconds; some 10,000 years */
#define BOW__NANOS_MAX 999999999

static inline bool bow__known_timestamp_is_valid(int64_t seconds, int32_t nanos)
{
    return seconds >= BOW__TIMESTAMP_MIN && seconds <= BOW__TIMESTAMP_MAX && nanos >= 0 &&
           nanos <= BOW__NANOS_MAX;
}

static inline bool bow__known_duration_is_valid(int64_t seconds, int32_t nanos)
{
    return seconds >= -BOW__DURATION_MAX && seconds <= BOW__DURATION_MAX &&
           nanos >= -BOW__NANOS_MAX && nanos <= BOW__NANOS_MAX && !(seconds > 0 && nanos < 0) &&
           !(seconds < 0 && nanos > 0);
}

/** The type that an Any says it holds: what follows the last '/' of its URL; "" when there is none.
 */
static inline const char *bow__known_any_name(const char *url)
{
    const char *slash = url != NULL ? strrchr(url, '/') : NULL;
    return slash != NULL ? slash + 1 : "";
}

#endif
