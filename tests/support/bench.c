/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What tests of handlers have in common; see the header. */

#include "tests/support/bench.h"

#include <string.h>

static int add_handlers(struct bow_channel *channel, void *user)
{
    struct bench *bench = user;

    for (int i = 0; i < BENCH_MAX_HANDLERS && bench->handlers[i] != NULL; i++) {
        bow_channel_add_last(channel, bench->handlers[i]);
    }
    bow_channel_add_last(channel, &bench->probe.handler);
    return 0;
}

void bench_prepare(struct bench *bench)
{
    memset(bench, 0, sizeof(*bench));
    loops_begin_real(&bench->t);
    probe_init(&bench->probe, NULL);
    bench->probe.keeps = true;
    bench->options = (struct bow_embedded_options)BOW_EMBEDDED_OPTIONS_INIT;
    bench->options.channel.on_channel = add_handlers;
    bench->options.channel.user = bench;
}

void bench_open(struct bench *bench)
{
    assert_int_equal(bow_embedded_new(bench->t.context, &bench->options, &bench->embedded), 0);
    bench->channel = bow_embedded_channel(bench->embedded);
}

void bench_end(struct bench *bench)
{
    bow_embedded_free(bench->embedded);
    probe_fini(&bench->probe);
    loops_end(&bench->t);
}

void bench_feed_bytes(struct bench *bench, const void *bytes, size_t len)
{
    assert_int_equal(bow_embedded_feed(bench->embedded, bytes, len), 0);
}

void bench_feed(struct bench *bench, const char *text)
{
    bench_feed_bytes(bench, text, strlen(text));
}

void bench_assert_output(struct bench *bench, const char *text)
{
    struct bow_slice output = bow_embedded_output(bench->embedded);

    assert_int_equal(output.len, strlen(text));
    assert_memory_equal(output.data, text, output.len);
    bow_embedded_consume(bench->embedded, output.len);
}

void bench_assert_read(struct bench *bench, const char *text)
{
    assert_int_equal(bench->probe.n_bytes, strlen(text));
    assert_memory_equal(bench->probe.bytes, text, strlen(text));
}

void bench_run(struct bench *bench)
{
    assert_int_equal(bow_embedded_run(bench->embedded), 0);
}

void bench_advance(struct bench *bench, uint64_t by_ns)
{
    assert_int_equal(bow_embedded_advance(bench->embedded, by_ns), 0);
}

size_t bench_echo(struct probe *probe, const struct bow_buf *bytes)
{
    assert_int_equal(bow_channel_write_and_flush(probe->handler.channel, bytes, probe_done, probe),
                     0);
    return bytes->len;
}
