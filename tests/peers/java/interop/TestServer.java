// SPDX-License-Identifier: Apache-2.0 OR MIT

package interop;

import static interop.Methods.*;

import com.google.common.util.concurrent.Uninterruptibles;
import grpc.testing.Testing.BoolValue;
import grpc.testing.Testing.EchoStatus;
import grpc.testing.Testing.LoadReport;
import grpc.testing.Testing.ResponseParameters;
import grpc.testing.Testing.SimpleRequest;
import grpc.testing.Testing.SimpleResponse;
import grpc.testing.Testing.StreamingInputCallRequest;
import grpc.testing.Testing.StreamingInputCallResponse;
import grpc.testing.Testing.StreamingOutputCallRequest;
import grpc.testing.Testing.StreamingOutputCallResponse;
import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import sun.misc.Signal;
import sun.misc.SignalHandler;

/** The server: it does what each call asks for. */
public final class TestServer {
    /** What a call sends beside its messages. */
    private static final class Beside {
        private final Metadata initial = new Metadata();
        private final Metadata trailing = new Metadata();
    }

    private static final Context.Key<Beside> BESIDE = Context.key("beside");

    /** Sends back the metadata that is to come back, and what a handler puts beside it. */
    private static final class EchoMetadata implements ServerInterceptor {
        private static <T> void copy(Metadata from, Metadata.Key<T> key, Metadata to) {
            if (from.containsKey(key)) {
                to.put(key, from.get(key));
            }
        }

        @Override
        public <Q, R> ServerCall.Listener<Q> interceptCall(ServerCall<Q, R> call, Metadata sent,
            ServerCallHandler<Q, R> next) {
            Beside beside = new Beside();
            copy(sent, INITIAL, beside.initial);
            copy(sent, TRAILING, beside.trailing);
            ServerCall<Q, R> echoing = new SimpleForwardingServerCall<Q, R>(call) {
                @Override
                public void sendHeaders(Metadata headers) {
                    headers.merge(beside.initial);
                    super.sendHeaders(headers);
                }

                @Override
                public void close(Status status, Metadata trailers) {
                    trailers.merge(beside.trailing);
                    super.close(status, trailers);
                }
            };
            return Contexts.interceptCall(
                Context.current().withValue(BESIDE, beside), echoing, sent, next);
        }
    }

    /** What is asked for: OK, if nothing is. */
    private static Status asked(EchoStatus status) {
        return Status.fromCodeValue(status.getCode()).withDescription(status.getMessage());
    }

    /** OK, unless the call's last message came otherwise than it says of itself. */
    private static Status cameAsSaid(boolean says, BoolValue compressed) {
        return !says || compressed.getValue() == Arrival.current().wasCompressed() ? Status.OK
            : Status.INVALID_ARGUMENT.withDescription("the message came otherwise than it says");
    }

    private static void compress(StreamObserver<?> responses) {
        ((ServerCallStreamObserver<?>) responses).setCompression(GZIP);
    }

    private static <R> void reply(StreamObserver<R> responses, R response) {
        responses.onNext(response);
        responses.onCompleted();
    }

    private static String hostname() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (IOException error) {
            return "";
        }
    }

    private static void unaryCall(SimpleRequest request, StreamObserver<SimpleResponse> responses) {
        Status status = cameAsSaid(request.hasExpectCompressed(), request.getExpectCompressed());
        if (status.isOk()) {
            status = asked(request.getResponseStatus());
        }
        if (!status.isOk()) {
            responses.onError(status.asRuntimeException());
            return;
        }
        if (request.hasOrcaPerQueryReport()) {
            LoadReport report = reportOf(request.getOrcaPerQueryReport());
            BESIDE.get().trailing.put(LOAD, report.toByteArray());
        }
        if (request.getResponseCompressed().getValue()) {
            compress(responses);
        }
        reply(responses, SimpleResponse.newBuilder()
            .setPayload(zeros(request.getResponseSize()))
            .setHostname(hostname())
            .setServerId(request.getFillServerId() ? "java-" + ProcessHandle.current().pid() : "")
            .build());
    }

    private static void cacheableUnaryCall(SimpleRequest request,
        StreamObserver<SimpleResponse> responses) {
        BESIDE.get().initial.put(CACHE_CONTROL, "max-age=60, public");
        unaryCall(request, responses);
    }

    private static void pour(StreamingOutputCallRequest request,
        StreamObserver<StreamingOutputCallResponse> responses) {
        for (ResponseParameters parameters : request.getResponseParametersList()) {
            Uninterruptibles.sleepUninterruptibly(
                parameters.getIntervalUs(), TimeUnit.MICROSECONDS);
            ((ServerCallStreamObserver<?>) responses)
                .setMessageCompression(parameters.getCompressed().getValue());
            responses.onNext(StreamingOutputCallResponse.newBuilder()
                .setPayload(zeros(parameters.getSize()))
                .build());
        }
    }

    private static void streamingOutputCall(StreamingOutputCallRequest request,
        StreamObserver<StreamingOutputCallResponse> responses) {
        Status status = asked(request.getResponseStatus());
        if (!status.isOk()) {
            responses.onError(status.asRuntimeException());
            return;
        }
        if (request.getResponseParametersList().stream()
                .anyMatch(parameters -> parameters.getCompressed().getValue())) {
            compress(responses);
        }
        pour(request, responses);
        responses.onCompleted();
    }

    private static final class StreamingInputCall
        implements StreamObserver<StreamingInputCallRequest> {
        private final StreamObserver<StreamingInputCallResponse> responses;
        private int size;
        private boolean over;

        StreamingInputCall(StreamObserver<StreamingInputCallResponse> responses) {
            this.responses = responses;
        }

        @Override
        public void onNext(StreamingInputCallRequest request) {
            Status status =
                cameAsSaid(request.hasExpectCompressed(), request.getExpectCompressed());
            size += request.getPayload().getBody().size();
            if (!status.isOk() && !over) {
                over = true;
                responses.onError(status.asRuntimeException());
            }
        }

        @Override
        public void onError(Throwable cancelled) {
            over = true;
        }

        @Override
        public void onCompleted() {
            if (!over) {
                reply(responses, StreamingInputCallResponse.newBuilder()
                    .setAggregatedPayloadSize(size)
                    .build());
            }
        }
    }

    /** FullDuplexCall, and HalfDuplexCall, which answers nothing before its client has said all. */
    private static final class DuplexCall implements StreamObserver<StreamingOutputCallRequest> {
        private final StreamObserver<StreamingOutputCallResponse> responses;
        private final boolean holds;
        private final List<StreamingOutputCallRequest> held = new ArrayList<>();
        private boolean over;

        DuplexCall(StreamObserver<StreamingOutputCallResponse> responses, boolean holds) {
            this.responses = responses;
            this.holds = holds;
        }

        private void answer(StreamingOutputCallRequest request) {
            Status status = asked(request.getResponseStatus());
            if (over) {
                return;
            }
            if (status.isOk()) {
                pour(request, responses);
                return;
            }
            over = true;
            responses.onError(status.asRuntimeException());
        }

        @Override
        public void onNext(StreamingOutputCallRequest request) {
            if (holds) {
                held.add(request);
            } else {
                answer(request);
            }
        }

        @Override
        public void onError(Throwable cancelled) {
            over = true;
        }

        @Override
        public void onCompleted() {
            held.forEach(this::answer);
            if (!over) {
                responses.onCompleted();
            }
        }
    }

    private static ServerServiceDefinition service() {
        return ServerServiceDefinition.builder("grpc.testing.TestService")
            .addMethod(EMPTY_CALL, ServerCalls.asyncUnaryCall(
                (request, responses) -> reply(responses, request)))
            .addMethod(UNARY_CALL, ServerCalls.asyncUnaryCall(TestServer::unaryCall))
            .addMethod(CACHEABLE_UNARY_CALL,
                ServerCalls.asyncUnaryCall(TestServer::cacheableUnaryCall))
            .addMethod(STREAMING_OUTPUT_CALL,
                ServerCalls.asyncServerStreamingCall(TestServer::streamingOutputCall))
            .addMethod(STREAMING_INPUT_CALL,
                ServerCalls.asyncClientStreamingCall(StreamingInputCall::new))
            .addMethod(FULL_DUPLEX_CALL, ServerCalls.asyncBidiStreamingCall(
                responses -> new DuplexCall(responses, false)))
            .addMethod(HALF_DUPLEX_CALL, ServerCalls.asyncBidiStreamingCall(
                responses -> new DuplexCall(responses, true)))
            .build();
    }

    /** Serves until the standard input ends. */
    public static void serve(Map<String, String> flags) throws IOException {
        NettyServerBuilder builder = NettyServerBuilder.forAddress(
            new InetSocketAddress("127.0.0.1", Integer.parseInt(flags.get("port"))));
        if ("true".equals(flags.get("use_tls"))) {
            builder.useTransportSecurity(
                new File(flags.get("cert_file")), new File(flags.get("key_file")));
        }
        Server server = builder.addService(service())
            .intercept(new EchoMetadata())
            .addStreamTracerFactory(Arrival.ofCalls())
            .build()
            .start();
        Signal.handle(new Signal("TERM"), SignalHandler.SIG_IGN); // the input ends as well
        System.out.println(server.getPort());
        while (System.in.read() >= 0) {
            continue;
        }
        server.shutdownNow();
    }

    private TestServer() {
    }
}
