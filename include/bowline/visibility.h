/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_VISIBILITY_H
#define BOWLINE_VISIBILITY_H

/**
 * BOW_EXPORT marks what the shared library shows; everything else is hidden.
 * BOW_MUST_USE marks results whose loss is a bug. BOW_PRINTF names the format
 * argument and the first one it consumes.
 */
#if defined(__GNUC__) || defined(__clang__)
#define BOW_EXPORT __attribute__((visibility("default")))
#define BOW_MUST_USE __attribute__((warn_unused_result))
#define BOW_PRINTF(format_at, first_at) __attribute__((__format__(__printf__, format_at, first_at)))
#else
#define BOW_EXPORT
#define BOW_MUST_USE
#define BOW_PRINTF(format_at, first_at)
#endif

/*
 * What an options struct begins with: its size, zeros, and the fields that BOW__SET names. By name
 * in both languages, though C++ has no designated initialisers before C++20.
 */
#ifdef __cplusplus
#define BOW__INIT(type, ...)                                                                       \
    ([] {                                                                                          \
        type bow__made = {};                                                                       \
        bow__made.size = sizeof(type);                                                             \
        __VA_ARGS__                                                                                \
        return bow__made;                                                                          \
    }())
#define BOW__SET(field, value) bow__made.field = value;
#else
#define BOW__INIT(type, ...)                                                                       \
    {                                                                                              \
        __VA_ARGS__.size = sizeof(type)                                                            \
    }
#define BOW__SET(field, value) .field = value,
#endif

#endif
