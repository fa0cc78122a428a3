/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Length-field framing: a pure function that finds the next frame, and the
 * handler around it. A length is checked before anything is done with it.
 */

#include "transport/channel/channel.h"
#include "transport/handlers/frame.h"

#include <bowline/frame_codec.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

static uint64_t read_length(const struct bow_frame_codec_options *options, const uint8_t *field)
{
    uint64_t length = 0;

    /* The usual width at once: byte by byte it was a sixth of our work for a small frame. */
    if (options->length_bytes == sizeof(uint32_t)) {
        uint32_t raw;
        memcpy(&raw, field, sizeof(raw));
        return options->little_endian ? le32toh(raw) : be32toh(raw);
    }
    for (uint32_t i = 0; i < options->length_bytes; i++) {
        uint32_t at = options->little_endian ? options->length_bytes - 1 - i : i;
        length = length << 8 | field[at];
    }
    return length;
}

int bow__frame_next(const struct bow_frame_codec_options *options, struct bow_slice bytes,
                    size_t *ret_frame_bytes)
{
    size_t header_bytes = options->length_offset + options->length_bytes;
    int64_t body_bytes = 0;

    if (bytes.len < header_bytes) {
        return -EAGAIN;
    }
    uint64_t length = read_length(options, bytes.data + options->length_offset);
    if (length > INT64_MAX ||
        __builtin_add_overflow((int64_t)length, options->adjustment, &body_bytes)) {
        return -EMSGSIZE;
    }
    if (body_bytes < 0) {
        return -EBADMSG;
    }
    if ((uint64_t)body_bytes > options->max_frame_bytes - header_bytes) {
        return -EMSGSIZE;
    }
    size_t frame_bytes = header_bytes + (size_t)body_bytes;
    if (frame_bytes < options->strip_bytes) {
        return -EBADMSG;
    }
    if (bytes.len < frame_bytes) {
        return -EAGAIN;
    }
    *ret_frame_bytes = frame_bytes;
    return 0;
}

/* Not when the bytes are to wait, or to go to somebody else. */
static void fail_if_ours(struct bow_frame_codec *codec, int error)
{
    struct bow_handler *handler = &codec->handler;

    if (error == -EAGAIN || !bow_handler_can_fire_read(handler)) {
        return;
    }
    bow_handler_fire_error(handler, error);
    bow_handler_close(handler, error);
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow_frame_codec *codec = (struct bow_frame_codec *)(void *)handler;
    const struct bow_frame_codec_options *options = &codec->options;
    size_t done = 0;

    while (done < bytes->len) {
        size_t frame_bytes = 0;
        int rc = bow__frame_next(options, (struct bow_slice){bytes->data + done, bytes->len - done},
                                 &frame_bytes);
        if (rc < 0) {
            fail_if_ours(codec, rc);
            break;
        }
        const struct bow_buf frame = {bytes->data + done + options->strip_bytes,
                                      frame_bytes - options->strip_bytes, bytes->block};
        if (!bow__pipeline_fire(handler, &frame)) {
            break; /* the receiver paused, or took us out: the rest is not ours to cut */
        }
        done += frame_bytes;
    }
    codec->n_unread = bytes->len - done;
    return done;
}

static void on_eof(struct bow_handler *handler)
{
    const struct bow_frame_codec *codec = (struct bow_frame_codec *)(void *)handler;

    if (codec->n_unread > 0) {
        bow_handler_fire_error(handler, -EBADMSG);
    }
    bow_handler_fire_eof(handler);
}

static const struct bow_handler_ops codec_ops = {
    .name = "frame codec",
    .on_read = on_read,
    .on_eof = on_eof,
};

int bow_frame_codec_init(struct bow_frame_codec *codec,
                         const struct bow_frame_codec_options *options)
{
    uint32_t n = options->length_bytes;
    size_t header_bytes = 0;

    if (n != 1 && n != 2 && n != 3 && n != 4 && n != 8) {
        return -EINVAL;
    }
    if (__builtin_add_overflow(options->length_offset, (size_t)n, &header_bytes) ||
        header_bytes > options->max_frame_bytes ||
        options->strip_bytes > options->max_frame_bytes) {
        return -EINVAL;
    }
    memset(codec, 0, sizeof(*codec));
    codec->options = *options;
    codec->handler.ops = &codec_ops;
    return 0;
}
