// SPDX-License-Identifier: Apache-2.0 OR MIT

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** gRPC's implementation for Java as a peer of Bowline, for peers.py: see its top for the arguments. */
public final class Peer {
    /** Messages stay the bytes that they travel as. */
    private static final class Plain implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    private static final MethodDescriptor<byte[], byte[]> SAY =
        MethodDescriptor.<byte[], byte[]>newBuilder(new Plain(), new Plain())
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName("peers.Echo/Say")
            .build();

    private static final MethodDescriptor<byte[], byte[]> TALK =
        MethodDescriptor.<byte[], byte[]>newBuilder(new Plain(), new Plain())
            .setType(MethodDescriptor.MethodType.BIDI_STREAMING)
            .setFullMethodName("peers.Echo/Talk")
            .build();

    /** Messages of a stream that have not come back yet. */
    private static final int MAX_OUTSTANDING = 16;

    /** A Message as it travels: field 1, its length, its body. */
    private static byte[] message(int slot, int size) {
        ByteArrayOutputStream encoded = new ByteArrayOutputStream();
        encoded.write(10);
        int length = size;
        for (; length > 127; length >>= 7) {
            encoded.write(length & 127 | 128);
        }
        encoded.write(length);
        byte[] number = String.format("%010d", slot).getBytes();
        for (int i = 0; i < size; i++) {
            encoded.write(i < number.length ? number[i] : 'x');
        }
        return encoded.toByteArray();
    }

    /** A call of Talk on the server: each message goes back. */
    private static final class Echoer implements StreamObserver<byte[]> {
        private final StreamObserver<byte[]> replies;

        Echoer(StreamObserver<byte[]> replies) {
            this.replies = replies;
        }

        @Override
        public void onNext(byte[] message) {
            replies.onNext(message);
        }

        @Override
        public void onError(Throwable error) {
            // It was cancelled: there is nobody to answer.
        }

        @Override
        public void onCompleted() {
            replies.onCompleted();
        }
    }

    private static void serve(int maxAgeMs) throws IOException {
        NettyServerBuilder builder =
            NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0));
        builder.addService(ServerServiceDefinition.builder("peers.Echo")
            .addMethod(SAY, ServerCalls.asyncUnaryCall((request, reply) -> {
                reply.onNext(request);
                reply.onCompleted();
            }))
            .addMethod(TALK, ServerCalls.asyncBidiStreamingCall(Echoer::new))
            .build());
        if (maxAgeMs > 0) {
            builder.maxConnectionAge(maxAgeMs, TimeUnit.MILLISECONDS);
        }
        Server server = builder.build().start();
        System.out.println(server.getPort());
        while (System.in.read() >= 0) {
            continue;
        }
        server.shutdownNow();
    }

    /** What the calls of one client come to. */
    private static final class Run {
        private final ManagedChannel channel;
        private final CountDownLatch left;
        private final long start;
        private final long end;
        private long calls;
        private long failed;
        private long ended;
        private String error = "";

        /** Makes unary calls, or streams of n messages when n is not 0. */
        Run(String target, int inFlight, int size, double seconds, int n) {
            channel = NettyChannelBuilder.forTarget(target).usePlaintext().build();
            left = new CountDownLatch(inFlight);
            // A machine that has just started takes its time for the first.
            ClientCalls.blockingUnaryCall(channel, SAY, CallOptions.DEFAULT, message(0, size));
            byte[][][] messages = new byte[inFlight][n][];
            for (int i = 0; i < inFlight; i++) {
                for (int k = 0; k < n; k++) {
                    messages[i][k] = message(i * n + k, size);
                }
            }
            start = System.nanoTime();
            end = start + (long) (seconds * 1e9);
            watch();
            for (int i = 0; i < inFlight; i++) {
                if (n > 0) {
                    stream(messages[i]);
                } else {
                    call(message(i, size));
                }
            }
        }

        /** Counts how often the channel was ready and then was not. */
        private void watch() {
            ConnectivityState before = channel.getState(false);
            channel.notifyWhenStateChanged(before, () -> {
                if (left.getCount() == 0) {
                    return;
                }
                if (before == ConnectivityState.READY) {
                    ended++;
                }
                watch();
            });
        }

        private void call(byte[] request) {
            if (System.nanoTime() >= end) {
                left.countDown();
                return;
            }
            ClientCall<byte[], byte[]> call = channel.newCall(
                SAY, CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS));
            ClientCalls.asyncUnaryCall(call, request, new StreamObserver<byte[]>() {
                @Override
                public void onNext(byte[] reply) {
                    if (!Arrays.equals(reply, request)) {
                        note("the reply is another call's", 0);
                    }
                }

                @Override
                public void onError(Throwable error) {
                    note(error.toString(), 1);
                    call(request);
                }

                @Override
                public void onCompleted() {
                    note("", 1);
                    call(request);
                }
            });
        }

        private void stream(byte[][] messages) {
            if (System.nanoTime() >= end) {
                left.countDown();
                return;
            }
            ClientCall<byte[], byte[]> call = channel.newCall(
                TALK, CallOptions.DEFAULT.withDeadlineAfter(60, TimeUnit.SECONDS));
            call.start(new Talker(call, messages), new Metadata());
            call.request(1);
        }

        /** A stream on which messages are to come back, as many as there is time for. */
        private final class Talker extends ClientCall.Listener<byte[]> {
            private final ClientCall<byte[], byte[]> call;
            private final byte[][] messages;
            private int sent;
            private int back;
            private boolean halfClosed;

            Talker(ClientCall<byte[], byte[]> call, byte[][] messages) {
                this.call = call;
                this.messages = messages;
            }

            /** Of all that is called here only one thing is at a time. */
            private void send() {
                while (!halfClosed) {
                    boolean late = sent > 0 && System.nanoTime() >= end;
                    if (late || sent == messages.length) {
                        halfClosed = true;
                        call.halfClose();
                    } else if (sent - back < MAX_OUTSTANDING && call.isReady()) {
                        call.sendMessage(messages[sent++]);
                    } else {
                        return;
                    }
                }
            }

            @Override
            public void onReady() {
                send();
            }

            @Override
            public void onMessage(byte[] message) {
                boolean right = back < sent && Arrays.equals(message, messages[back]);
                note(right ? "" : "the message is another one", 1);
                back++;
                call.request(1);
                send();
            }

            @Override
            public void onClose(Status status, Metadata trailers) {
                if (!status.isOk()) {
                    note(status.toString(), 0);
                } else if (back != sent) {
                    note("messages did not come back", 0);
                }
                stream(messages);
            }
        }

        private synchronized void note(String wrong, int n) {
            calls += n;
            if (!wrong.isEmpty() && failed++ == 0) {
                error = wrong.replace('\n', ' ');
            }
        }

        void report() throws InterruptedException {
            left.await();
            double seconds = (System.nanoTime() - start) / 1e9;
            channel.shutdownNow();
            System.out.printf("%d %d %d %.3f %s%n", calls, failed, ended, seconds, error);
        }
    }

    /** One call after the other with a pause, for each line of so many seconds. */
    private static void pace(String target, int size) throws Exception {
        ManagedChannel channel = NettyChannelBuilder.forTarget(target).usePlaintext().build();
        AtomicLong ended = new AtomicLong();
        watch(channel, ended);
        byte[] request = message(0, size);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            window(channel, ended, request, Double.parseDouble(line));
        }
    }

    private static void watch(ManagedChannel channel, AtomicLong ended) {
        ConnectivityState before = channel.getState(false);
        channel.notifyWhenStateChanged(before, () -> {
            if (before == ConnectivityState.READY) {
                ended.incrementAndGet();
            }
            watch(channel, ended);
        });
    }

    private static void window(ManagedChannel channel, AtomicLong ended, byte[] request,
        double seconds) throws InterruptedException {
        long endedBefore = ended.get();
        long failed = 0;
        long calls = 0;
        String error = "";
        StringBuilder took = new StringBuilder();
        long start = System.nanoTime();
        while (System.nanoTime() < start + (long) (seconds * 1e9)) {
            long begin = System.nanoTime();
            String wrong = once(channel, request);
            took.append((System.nanoTime() - begin) / 1000).append(' ');
            calls++;
            if (!wrong.isEmpty() && failed++ == 0) {
                error = wrong;
            }
            Thread.sleep(1);
        }
        System.out.printf("%d %d %d %.3f %s%n", calls, failed, ended.get() - endedBefore,
            (System.nanoTime() - start) / 1e9, error);
        System.out.println(took);
    }

    /** Returns what was wrong with a call, or "". */
    private static String once(ManagedChannel channel, byte[] request) {
        try {
            byte[] reply = ClientCalls.blockingUnaryCall(channel, SAY,
                CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS), request);
            return Arrays.equals(reply, request) ? "" : "the reply is another call's";
        } catch (StatusRuntimeException failure) {
            return failure.toString().replace('\n', ' ');
        }
    }

    public static void main(String[] words) throws Exception {
        if (words[0].equals("ready")) {
            System.out.println("ready");
            while (System.in.read() > '\n') {
                continue;
            }
            words = Arrays.copyOfRange(words, 1, words.length);
        }
        if (words[0].equals("server")) {
            serve(Integer.parseInt(words[1]));
        } else if (words[0].equals("paced")) {
            pace(words[1], Integer.parseInt(words[2]));
        } else {
            new Run(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]),
                Double.parseDouble(words[4]),
                words[0].equals("streams") ? Integer.parseInt(words[5]) : 0).report();
        }
        System.exit(0);
    }

    private Peer() {
    }
}
