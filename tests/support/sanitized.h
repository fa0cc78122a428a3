/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_SANITIZED_H
#define BOWLINE_TESTS_SUPPORT_SANITIZED_H

/*
 * Whether a sanitizer watches. Each step is then looked at, and takes several times as long: tests
 * that repeat what is the same each time, to meet a rare order of events, repeat it less. And the
 * one that looks at threads lets none start in a child of a process that has some.
 */

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_IS_SANITIZED 1
#else
#define TEST_IS_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define TEST_IS_SANITIZED_FOR_THREADS 1
#else
#define TEST_IS_SANITIZED_FOR_THREADS 0
#endif

#endif
