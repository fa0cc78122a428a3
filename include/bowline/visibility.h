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

#endif
