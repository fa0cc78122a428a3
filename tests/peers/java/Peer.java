// SPDX-License-Identifier: Apache-2.0 OR MIT

import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

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

    private static void serve(int maxAgeMs) throws IOException {
        NettyServerBuilder builder =
            NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0));
        builder.addService(ServerServiceDefinition.builder("peers.Echo")
            .addMethod(SAY, ServerCalls.asyncUnaryCall((request, reply) -> {
                reply.onNext(request);
                reply.onCompleted();
            }))
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

        Run(String target, int inFlight, int size, double seconds) {
            channel = NettyChannelBuilder.forTarget(target).usePlaintext().build();
            left = new CountDownLatch(inFlight);
            // A machine that has just started takes its time for the first.
            ClientCalls.blockingUnaryCall(channel, SAY, CallOptions.DEFAULT, message(0, size));
            start = System.nanoTime();
            end = start + (long) (seconds * 1e9);
            watch();
            for (int i = 0; i < inFlight; i++) {
                call(message(i, size));
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

    public static void main(String[] words) throws Exception {
        if (words[0].equals("server")) {
            serve(Integer.parseInt(words[1]));
        } else {
            new Run(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]),
                Double.parseDouble(words[4])).report();
        }
        System.exit(0);
    }

    private Peer() {
    }
}
