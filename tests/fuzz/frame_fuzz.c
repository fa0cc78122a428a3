/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Length-field framing over any options and any bytes: what is found lies within
 * the bytes and within the maximum, and more bytes never change the answer. The first
 * sixteen bytes of the input choose the options.
 */

#include "transport/handlers/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define N_OPTION_BYTES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static struct bow_frame_codec_options choose(const uint8_t *data)
{
    static const uint32_t lengths[] = {1, 2, 3, 4, 8, 5};
    struct bow_frame_codec_options options = {
        .max_frame_bytes = (size_t)data[0] << (data[1] % 57),
        .length_offset = data[2],
        .length_bytes = lengths[data[3] % 6],
        .strip_bytes = data[4],
        .little_endian = (data[5] & 1) != 0,
    };

    memcpy(&options.adjustment, data + 8, sizeof(options.adjustment));
    if ((data[5] & 2) != 0) {
        options.adjustment %= 64; /* as in earnest */
    }
    return options;
}

static void check_found(const struct bow_frame_codec_options *options, struct bow_slice bytes,
                        size_t frame_bytes)
{
    size_t again = 0;

    check(frame_bytes <= bytes.len);
    check(frame_bytes <= options->max_frame_bytes);
    check(frame_bytes >= options->length_offset + options->length_bytes);
    check(frame_bytes >= options->strip_bytes);
    /* Exactly the frame is enough, a byte less is not. */
    check(bow__frame_next(options, (struct bow_slice){bytes.data, frame_bytes}, &again) == 0);
    check(again == frame_bytes);
    check(bow__frame_next(options, (struct bow_slice){bytes.data, frame_bytes - 1}, &again) ==
          -EAGAIN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bow_frame_codec codec;

    if (size < N_OPTION_BYTES) {
        return 0;
    }
    const struct bow_frame_codec_options options = choose(data);
    if (bow_frame_codec_init(&codec, &options) < 0) {
        return 0;
    }
    struct bow_slice rest = {data + N_OPTION_BYTES, size - N_OPTION_BYTES};
    while (rest.len > 0) {
        size_t frame_bytes = 0;
        int rc = bow__frame_next(&codec.options, rest, &frame_bytes);
        if (rc < 0) {
            check(rc == -EAGAIN || rc == -EMSGSIZE || rc == -EBADMSG);
            break;
        }
        check_found(&codec.options, rest, frame_bytes);
        rest.data += frame_bytes;
        rest.len -= frame_bytes;
    }
    return 0;
}
