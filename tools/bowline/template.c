/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* {{word}} in a text. What the text is, is none of this file's business. */
#include "template.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_VALUE 80

static void put_seq(char *value, uint64_t seq)
{
    snprintf(value, MAX_VALUE, "%" PRIu64, seq);
}

static void put_time(char *value, uint64_t seq)
{
    struct timespec now;

    (void)seq;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(value, MAX_VALUE, "%lld%09ld", (long long)now.tv_sec, now.tv_nsec);
}

static void put_random(char *value, uint64_t seq)
{
    (void)seq;
    snprintf(value, MAX_VALUE, "%ld", random());
}

static unsigned bits(unsigned n)
{
    return (unsigned)random() & ((1u << n) - 1);
}

static void put_uuid(char *value, uint64_t seq)
{
    (void)seq;
    snprintf(value, MAX_VALUE, "%04x%04x-%04x-4%03x-%04x-%04x%04x%04x", bits(16), bits(16),
             bits(16), bits(12), 0x8000u | bits(14), bits(16), bits(16), bits(16));
}

static const struct {
    const char *word;
    void (*put)(char *value, uint64_t seq);
} words[] = {{"{{seq}}", put_seq},
             {"{{time_ns}}", put_time},
             {"{{random}}", put_random},
             {"{{uuid}}", put_uuid}};
#define N_WORDS (sizeof(words) / sizeof(words[0]))

/* The word that begins at `at`, or N_WORDS. */
static size_t word_at(struct bow_slice text, size_t at)
{
    for (size_t i = 0; i < N_WORDS; i++) {
        size_t len = strlen(words[i].word);
        if (text.len - at >= len && memcmp(text.data + at, words[i].word, len) == 0) {
            return i;
        }
    }
    return N_WORDS;
}

bool template_is(struct bow_slice text)
{
    return text.len > 0 && memmem(text.data, text.len, "{{", 2) != NULL;
}

bool template_check(struct bow_slice text, char unknown[41])
{
    for (size_t at = 0; at + 1 < text.len; at++) {
        if (text.data[at] == '{' && text.data[at + 1] == '{' && word_at(text, at) == N_WORDS) {
            snprintf(unknown, 41, "%.*s", (int)(text.len - at < 20 ? text.len - at : 20),
                     (const char *)text.data + at);
            return false;
        }
    }
    return true;
}

struct bow_slice template_fill(struct bow_slice text, uint64_t seq, struct bow_arena *arena)
{
    size_t n_words = 0;
    size_t len = 0;

    for (size_t at = 0; at < text.len; at++) {
        n_words += word_at(text, at) < N_WORDS;
    }
    char *filled = bow_arena_alloc(arena, text.len + n_words * MAX_VALUE + 1);
    for (size_t at = 0; filled != NULL && at < text.len;) {
        size_t word = word_at(text, at);
        if (word == N_WORDS) {
            filled[len++] = (char)text.data[at++];
            continue;
        }
        words[word].put(filled + len, seq);
        len += strlen(filled + len);
        at += strlen(words[word].word);
    }
    return (struct bow_slice){(const uint8_t *)filled, len};
}
