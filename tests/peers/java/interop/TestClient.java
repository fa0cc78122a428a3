// SPDX-License-Identifier: Apache-2.0 OR MIT

package interop;

import static interop.Methods.*;

import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import grpc.testing.Testing.EchoStatus;
import grpc.testing.Testing.Empty;
import grpc.testing.Testing.LoadReport;
import grpc.testing.Testing.NamedValue;
import grpc.testing.Testing.Payload;
import grpc.testing.Testing.ResponseParameters;
import grpc.testing.Testing.SimpleRequest;
import grpc.testing.Testing.SimpleResponse;
import grpc.testing.Testing.StreamingInputCallRequest;
import grpc.testing.Testing.StreamingInputCallResponse;
import grpc.testing.Testing.StreamingOutputCallRequest;
import grpc.testing.Testing.StreamingOutputCallResponse;
import grpc.testing.Testing.TestOrcaReport;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.io.File;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import javax.net.ssl.SSLException;

/** The client, with a channel of its own: each case is one of its functions. */
public final class TestClient {
    private static final Metadata.Key<String> USER_IP =
        Metadata.Key.of("x-user-ip", Metadata.ASCII_STRING_MARSHALLER);
    private static final long PATIENCE_S = 20;
    private static final int LARGE_RESPONSE = 314159;
    private static final int SOAK_CALLS = 10;

    private final Map<String, String> flags;
    private final ManagedChannel channel;

    private TestClient(Map<String, String> flags) throws SSLException {
        NettyChannelBuilder builder = NettyChannelBuilder.forAddress(
            flags.get("server_host"), Integer.parseInt(flags.get("server_port")));
        if ("true".equals(flags.get("use_tls"))) {
            builder.overrideAuthority(flags.get("server_host_override"))
                .sslContext(GrpcSslContexts.forClient()
                    .trustManager(new File(flags.get("ca_file")))
                    .build());
        } else {
            builder.usePlaintext();
        }
        this.flags = flags;
        channel = builder.build();
    }

    private static void expect(boolean isMet, String what, Object... arguments) {
        if (!isMet) {
            throw new AssertionError("expected " + String.format(what, arguments));
        }
    }

    private static void expectCode(Status status, Status.Code code) {
        expect(status.getCode() == code, "%s, not %s", code, status);
    }

    private static void expectUnknown(Status status, String message) {
        expectCode(status, Status.Code.UNKNOWN);
        expect(message.equals(status.getDescription()), "the words %s, not %s", message, status);
    }

    private static void expectZeros(Payload payload, int size) {
        expect(payload.getBody().equals(zeros(size).getBody()), "%d zeros, not %d bytes", size,
            payload.getBody().size());
    }

    private static CallOptions options() {
        return CallOptions.DEFAULT.withDeadlineAfter(PATIENCE_S, TimeUnit.SECONDS);
    }

    private <Q, R> R call(MethodDescriptor<Q, R> method, Q request) {
        return ClientCalls.blockingUnaryCall(channel, method, options(), request);
    }

    private <Q, R> Status failure(MethodDescriptor<Q, R> method, Q request) {
        try {
            call(method, request);
        } catch (StatusRuntimeException error) {
            return error.getStatus();
        }
        return Status.OK;
    }

    /** What comes on a stream, to be waited for one by one. */
    private static final class Responses<R> implements StreamObserver<R> {
        private final Arrival arrival = new Arrival();
        private final BlockingQueue<Optional<R>> events = new LinkedBlockingQueue<>();
        private final BlockingQueue<Boolean> compressed = new LinkedBlockingQueue<>();
        private volatile Status status;

        CallOptions watched(CallOptions options) {
            return arrival.of(options);
        }

        @Override
        public void onNext(R response) {
            compressed.add(arrival.wasCompressed());
            events.add(Optional.of(response));
        }

        @Override
        public void onError(Throwable error) {
            status = Status.fromThrowable(error);
            events.add(Optional.empty());
        }

        @Override
        public void onCompleted() {
            status = Status.OK;
            events.add(Optional.empty());
        }

        private Optional<R> take() throws InterruptedException {
            Optional<R> event = events.poll(2 * PATIENCE_S, TimeUnit.SECONDS);
            expect(event != null, "a response or the end");
            return event;
        }

        R next() throws InterruptedException {
            Optional<R> event = take();
            expect(event.isPresent(), "a response, not the end: %s", status);
            return event.get();
        }

        /** Of the response that was taken last. */
        boolean wasCompressed() {
            return compressed.remove();
        }

        Status end() throws InterruptedException {
            expect(take().isEmpty(), "the end, not a response");
            return status;
        }
    }

    private void emptyUnary() {
        call(EMPTY_CALL, Empty.getDefaultInstance());
    }

    private static SimpleRequest.Builder large() {
        return SimpleRequest.newBuilder().setResponseSize(LARGE_RESPONSE).setPayload(zeros(271828));
    }

    private static void largeUnary(Channel channel, CallOptions options) {
        SimpleResponse response =
            ClientCalls.blockingUnaryCall(channel, UNARY_CALL, options, large().build());
        expectZeros(response.getPayload(), LARGE_RESPONSE);
    }

    private void cacheableUnary() {
        Metadata sent = new Metadata();
        sent.put(USER_IP, "1.2.3.4");
        AtomicReference<Metadata> headers = new AtomicReference<>();
        SimpleRequest request = SimpleRequest.newBuilder()
            .setResponseSize(10)
            .setPayload(Payload.newBuilder()
                .setBody(ByteString.copyFromUtf8(Long.toString(System.nanoTime()))))
            .build();
        Channel user = ClientInterceptors.intercept(channel,
            MetadataUtils.newAttachHeadersInterceptor(sent),
            MetadataUtils.newCaptureMetadataInterceptor(headers, new AtomicReference<>()));
        SimpleResponse one =
            ClientCalls.blockingUnaryCall(user, CACHEABLE_UNARY_CALL, options(), request);
        SimpleResponse other =
            ClientCalls.blockingUnaryCall(user, CACHEABLE_UNARY_CALL, options(), request);
        expect(one.getPayload().equals(other.getPayload()), "two equal payloads");
        expect(headers.get().containsKey(CACHE_CONTROL), "cache-control, not %s", headers);
    }

    private void clientCompressedUnary() {
        SimpleRequest compressed = large().setExpectCompressed(is(true)).build();
        SimpleRequest plain = large().setExpectCompressed(is(false)).build();
        expectCode(failure(UNARY_CALL, compressed), Status.Code.INVALID_ARGUMENT);
        SimpleResponse response = ClientCalls.blockingUnaryCall(
            channel, UNARY_CALL, options().withCompression(GZIP), compressed);
        expectZeros(response.getPayload(), LARGE_RESPONSE);
        expectZeros(call(UNARY_CALL, plain).getPayload(), LARGE_RESPONSE);
    }

    private void serverCompressedUnary() {
        for (boolean compressed : new boolean[] {true, false}) {
            Arrival arrival = new Arrival();
            SimpleResponse response = ClientCalls.blockingUnaryCall(channel, UNARY_CALL,
                arrival.of(options()), large().setResponseCompressed(is(compressed)).build());
            expectZeros(response.getPayload(), LARGE_RESPONSE);
            expect(arrival.wasCompressed() == compressed, "compressed to be %b", compressed);
        }
    }

    private ClientCallStreamObserver<StreamingInputCallRequest> openInput(CallOptions options,
        Responses<StreamingInputCallResponse> responses) {
        return (ClientCallStreamObserver<StreamingInputCallRequest>)
            ClientCalls.asyncClientStreamingCall(
                channel.newCall(STREAMING_INPUT_CALL, options), responses);
    }

    private static void expectSum(Responses<StreamingInputCallResponse> responses, int sum)
        throws InterruptedException {
        int size = responses.next().getAggregatedPayloadSize();
        expect(size == sum, "%d bytes in all, not %d", sum, size);
        expectCode(responses.end(), Status.Code.OK);
    }

    private void clientStreaming() throws InterruptedException {
        Responses<StreamingInputCallResponse> responses = new Responses<>();
        StreamObserver<StreamingInputCallRequest> requests = openInput(options(), responses);
        for (int size : new int[] {27182, 8, 1828, 45904}) {
            requests.onNext(StreamingInputCallRequest.newBuilder().setPayload(zeros(size)).build());
        }
        requests.onCompleted();
        expectSum(responses, 74922);
    }

    private static void send(ClientCallStreamObserver<StreamingInputCallRequest> requests, int size,
        boolean says, boolean compressed) {
        requests.setMessageCompression(compressed);
        requests.onNext(StreamingInputCallRequest.newBuilder()
            .setPayload(zeros(size))
            .setExpectCompressed(is(says))
            .build());
    }

    private void clientCompressedStreaming() throws InterruptedException {
        Responses<StreamingInputCallResponse> refusal = new Responses<>();
        send(openInput(options().withCompression(GZIP), refusal), 27182, true, false);
        expectCode(refusal.end(), Status.Code.INVALID_ARGUMENT);
        Responses<StreamingInputCallResponse> responses = new Responses<>();
        ClientCallStreamObserver<StreamingInputCallRequest> requests =
            openInput(options().withCompression(GZIP), responses);
        send(requests, 27182, true, true);
        send(requests, 45904, false, false);
        requests.onCompleted();
        expectSum(responses, 73086);
    }

    private static ResponseParameters.Builder size(int size) {
        return ResponseParameters.newBuilder().setSize(size);
    }

    private void expectOutput(ResponseParameters.Builder... parameters)
        throws InterruptedException {
        StreamingOutputCallRequest.Builder request = StreamingOutputCallRequest.newBuilder();
        for (ResponseParameters.Builder one : parameters) {
            request.addResponseParameters(one);
        }
        Responses<StreamingOutputCallResponse> responses = new Responses<>();
        ClientCalls.asyncServerStreamingCall(
            channel.newCall(STREAMING_OUTPUT_CALL, responses.watched(options())), request.build(),
            responses);
        for (ResponseParameters.Builder one : parameters) {
            expectZeros(responses.next().getPayload(), one.getSize());
            boolean compressed = responses.wasCompressed();
            expect(!one.hasCompressed() || one.getCompressed().getValue() == compressed,
                "compressed to be %b", !compressed);
        }
        expectCode(responses.end(), Status.Code.OK);
    }

    private void serverStreaming() throws InterruptedException {
        expectOutput(size(31415), size(9), size(2653), size(58979));
    }

    private void serverCompressedStreaming() throws InterruptedException {
        expectOutput(size(31415).setCompressed(is(true)), size(92653).setCompressed(is(false)));
    }

    /** A FullDuplexCall whose requests are sent one by one. */
    private static final class Duplex {
        private final Responses<StreamingOutputCallResponse> responses = new Responses<>();
        private final ClientCallStreamObserver<StreamingOutputCallRequest> requests;

        Duplex(Channel channel, CallOptions options) {
            requests = (ClientCallStreamObserver<StreamingOutputCallRequest>)
                ClientCalls.asyncBidiStreamingCall(
                    channel.newCall(FULL_DUPLEX_CALL, options), responses);
        }

        void exchange(int sent, int asked) throws InterruptedException {
            requests.onNext(StreamingOutputCallRequest.newBuilder()
                .setPayload(zeros(sent))
                .addResponseParameters(size(asked))
                .build());
            expectZeros(responses.next().getPayload(), asked);
        }

        void expectEnd() throws InterruptedException {
            requests.onCompleted();
            expectCode(responses.end(), Status.Code.OK);
        }
    }

    private void pingPong() throws InterruptedException {
        Duplex duplex = new Duplex(channel, options());
        duplex.exchange(27182, 31415);
        duplex.exchange(8, 9);
        duplex.exchange(1828, 2653);
        duplex.exchange(45904, 58979);
        duplex.expectEnd();
    }

    private void emptyStream() throws InterruptedException {
        new Duplex(channel, options()).expectEnd();
    }

    private void customMetadata() throws InterruptedException {
        String initial = "test_initial_metadata_value";
        byte[] trailing = {(byte) 0xab, (byte) 0xab, (byte) 0xab};
        Metadata sent = new Metadata();
        sent.put(INITIAL, initial);
        sent.put(TRAILING, trailing);
        AtomicReference<Metadata> headers = new AtomicReference<>();
        AtomicReference<Metadata> trailers = new AtomicReference<>();
        Channel echoed = ClientInterceptors.intercept(channel,
            MetadataUtils.newAttachHeadersInterceptor(sent),
            MetadataUtils.newCaptureMetadataInterceptor(headers, trailers));
        largeUnary(echoed, options());
        expect(initial.equals(headers.getAndSet(null).get(INITIAL)), "%s to come back", INITIAL);
        expect(Arrays.equals(trailing, trailers.getAndSet(null).get(TRAILING)), "%s to come back",
            TRAILING);
        Duplex duplex = new Duplex(echoed, options());
        duplex.exchange(271828, LARGE_RESPONSE);
        duplex.expectEnd();
        expect(initial.equals(headers.get().get(INITIAL)), "%s to come back", INITIAL);
        expect(Arrays.equals(trailing, trailers.get().get(TRAILING)), "%s to come back", TRAILING);
    }

    private static EchoStatus.Builder unknown(String message) {
        return EchoStatus.newBuilder().setCode(Status.Code.UNKNOWN.value()).setMessage(message);
    }

    private void failUnary(String message) {
        expectUnknown(failure(UNARY_CALL,
            SimpleRequest.newBuilder().setResponseStatus(unknown(message)).build()), message);
    }

    private void statusCodeAndMessage() throws InterruptedException {
        String message = "test status message";
        failUnary(message);
        Duplex duplex = new Duplex(channel, options());
        duplex.requests.onNext(StreamingOutputCallRequest.newBuilder()
            .setResponseStatus(unknown(message))
            .build());
        expectUnknown(duplex.responses.end(), message);
    }

    private void specialStatusMessage() {
        failUnary("\t\ntest with whitespace\r\n"
            + "and Unicode BMP \u263a and non-BMP \ud83d\ude08\t\n");
    }

    private void unimplemented(MethodDescriptor<Empty, Empty> method) {
        expectCode(failure(method, Empty.getDefaultInstance()), Status.Code.UNIMPLEMENTED);
    }

    private void cancelAfterBegin() throws InterruptedException {
        Responses<StreamingInputCallResponse> responses = new Responses<>();
        openInput(options(), responses).cancel("as the case asks for", null);
        expectCode(responses.end(), Status.Code.CANCELLED);
    }

    private void cancelAfterFirstResponse() throws InterruptedException {
        Duplex duplex = new Duplex(channel, options());
        duplex.exchange(27182, 31415);
        duplex.requests.cancel("as the case asks for", null);
        expectCode(duplex.responses.end(), Status.Code.CANCELLED);
    }

    private void timeoutOnSleepingServer() throws InterruptedException {
        emptyUnary(); // so that there is a connection, and the time not over before that
        Duplex duplex = new Duplex(channel,
            CallOptions.DEFAULT.withDeadlineAfter(1, TimeUnit.MILLISECONDS));
        duplex.requests.onNext(
            StreamingOutputCallRequest.newBuilder().setPayload(zeros(27182)).build());
        expectCode(duplex.responses.end(), Status.Code.DEADLINE_EXCEEDED);
    }

    private void pickFirstUnary() {
        SimpleRequest request =
            SimpleRequest.newBuilder().setResponseSize(1).setFillServerId(true).build();
        Set<String> ids = new HashSet<>();
        for (int i = 0; i < 100; i++) {
            ids.add(call(UNARY_CALL, request).getServerId());
        }
        expect(ids.size() == 1 && !ids.contains(""), "one server, not %s", ids);
    }

    private void orcaPerRpc() throws InvalidProtocolBufferException {
        TestOrcaReport load = TestOrcaReport.newBuilder()
            .setCpuUtilization(0.8210)
            .setMemoryUtilization(0.5847)
            .addRequestCost(NamedValue.newBuilder().setKey("cost").setValue(3456.32))
            .addUtilization(NamedValue.newBuilder().setKey("util").setValue(0.30499))
            .build();
        AtomicReference<Metadata> trailers = new AtomicReference<>();
        Channel told = ClientInterceptors.intercept(channel,
            MetadataUtils.newCaptureMetadataInterceptor(new AtomicReference<>(), trailers));
        ClientCalls.blockingUnaryCall(told, UNARY_CALL, options(),
            SimpleRequest.newBuilder().setOrcaPerQueryReport(load).build());
        expect(trailers.get().containsKey(LOAD), "a report, not %s", trailers);
        LoadReport report = LoadReport.parseFrom(trailers.get().get(LOAD));
        expect(report.equals(reportOf(load)), "%s, not %s", reportOf(load), report);
    }

    private void rpcSoak() {
        for (int i = 0; i < SOAK_CALLS; i++) {
            largeUnary(channel, options());
        }
    }

    private void channelSoak() throws SSLException {
        for (int i = 0; i < SOAK_CALLS; i++) {
            TestClient one = new TestClient(flags);
            largeUnary(one.channel, options());
            one.channel.shutdownNow();
        }
    }

    private interface Case {
        void run(TestClient client) throws Exception;
    }

    private static Map<String, Case> cases() {
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put("empty_unary", TestClient::emptyUnary);
        cases.put("large_unary", client -> largeUnary(client.channel, options()));
        cases.put("cacheable_unary", TestClient::cacheableUnary);
        cases.put("client_compressed_unary", TestClient::clientCompressedUnary);
        cases.put("server_compressed_unary", TestClient::serverCompressedUnary);
        cases.put("client_streaming", TestClient::clientStreaming);
        cases.put("client_compressed_streaming", TestClient::clientCompressedStreaming);
        cases.put("server_streaming", TestClient::serverStreaming);
        cases.put("server_compressed_streaming", TestClient::serverCompressedStreaming);
        cases.put("ping_pong", TestClient::pingPong);
        cases.put("empty_stream", TestClient::emptyStream);
        cases.put("custom_metadata", TestClient::customMetadata);
        cases.put("status_code_and_message", TestClient::statusCodeAndMessage);
        cases.put("special_status_message", TestClient::specialStatusMessage);
        cases.put("unimplemented_method", client -> client.unimplemented(UNIMPLEMENTED_CALL));
        cases.put("unimplemented_service", client -> client.unimplemented(UNIMPLEMENTED_SERVICE));
        cases.put("cancel_after_begin", TestClient::cancelAfterBegin);
        cases.put("cancel_after_first_response", TestClient::cancelAfterFirstResponse);
        cases.put("timeout_on_sleeping_server", TestClient::timeoutOnSleepingServer);
        cases.put("pick_first_unary", TestClient::pickFirstUnary);
        cases.put("orca_per_rpc", TestClient::orcaPerRpc);
        cases.put("rpc_soak", TestClient::rpcSoak);
        cases.put("channel_soak", TestClient::channelSoak);
        return cases;
    }

    /** Runs one, or prints the names of all. */
    public static void runCase(Map<String, String> flags) throws Exception {
        String name = flags.get("test_case");
        if (name.equals("list")) {
            cases().keySet().forEach(System.out::println);
            return;
        }
        TestClient client = new TestClient(flags);
        cases().get(name).run(client);
        client.channel.shutdownNow();
    }
}
