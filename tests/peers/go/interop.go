// SPDX-License-Identifier: Apache-2.0 OR MIT

// gRPC's implementation for Go in the public interoperability cases:
//
//	interop server --port=N [--use_tls=true --cert_file=FILE --key_file=FILE]
//	interop client --server_host=HOST --server_port=N --test_case=NAME [--use_tls=true
//	        --ca_file=FILE --server_host_override=NAME]
//
// A server prints its port and ends with its standard input. What Go's server cannot choose is
// whether it compresses: it answers as the request came.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/golang/protobuf/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	pb "grpc_testing"
)

const (
	initialKey  = "x-grpc-test-echo-initial"
	trailingKey = "x-grpc-test-echo-trailing-bin"
	loadKey     = "endpoint-load-metrics-bin"
	patience    = 20 * time.Second
)

type flags map[string]string

func zeros(size int) *pb.Payload {
	return &pb.Payload{Body: make([]byte, size)}
}

// How messages come

// arrival tells of the last message of a call, in whose context it is.
type arrival struct{ compressed bool }

type arrivalKey struct{}

func withArrival(ctx context.Context) context.Context {
	return context.WithValue(ctx, arrivalKey{}, new(arrival))
}

func arrivalOf(ctx context.Context) *arrival {
	last, _ := ctx.Value(arrivalKey{}).(*arrival)
	return last
}

// The bytes in front of each message.
const prefixLen = 5

// watch is told how long each message is, and how long it was on its way.
type watch struct{}

func (watch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if arrivalOf(ctx) != nil {
		return ctx // a client looks at its own
	}
	return withArrival(ctx)
}

func (watch) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if message, ok := event.(*stats.InPayload); ok {
		arrivalOf(ctx).compressed = message.WireLength != prefixLen+message.Length
	}
}

func (watch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (watch) HandleConn(context.Context, stats.ConnStats)                       {}

// The server

// What nobody serves is left to what it embeds.
type server struct {
	pb.UnimplementedTestServiceServer
}

func echoMetadata(ctx context.Context) {
	sent, _ := metadata.FromIncomingContext(ctx)
	for _, value := range sent.Get(initialKey) {
		grpc.SetHeader(ctx, metadata.Pairs(initialKey, value))
	}
	for _, value := range sent.Get(trailingKey) {
		grpc.SetTrailer(ctx, metadata.Pairs(trailingKey, value))
	}
}

// asked returns the error that is asked for, nil for a status of OK or none.
func asked(echo *pb.EchoStatus) error {
	return status.Error(codes.Code(echo.GetCode()), echo.GetMessage())
}

// cameAsSaid returns an error when the call's last message came otherwise than it says of itself.
func cameAsSaid(ctx context.Context, said *pb.BoolValue) error {
	if said == nil || said.Value == arrivalOf(ctx).compressed {
		return nil
	}
	return status.Error(codes.InvalidArgument, "the message came otherwise than it says")
}

func reportOf(load *pb.TestOrcaReport) *pb.LoadReport {
	return &pb.LoadReport{
		CpuUtilization: load.CpuUtilization,
		MemUtilization: load.MemoryUtilization,
		RequestCost:    load.RequestCost,
		Utilization:    load.Utilization,
	}
}

func (server) EmptyCall(ctx context.Context, request *pb.Empty) (*pb.Empty, error) {
	echoMetadata(ctx)
	return request, nil
}

func (server) UnaryCall(ctx context.Context,
	request *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	echoMetadata(ctx)
	if err := cameAsSaid(ctx, request.ExpectCompressed); err != nil {
		return nil, err
	}
	if err := asked(request.ResponseStatus); err != nil {
		return nil, err
	}
	if load := request.OrcaPerQueryReport; load != nil {
		report, err := proto.Marshal(reportOf(load))
		if err != nil {
			return nil, err
		}
		grpc.SetTrailer(ctx, metadata.Pairs(loadKey, string(report)))
	}
	response := &pb.SimpleResponse{Payload: zeros(int(request.ResponseSize))}
	response.Hostname, _ = os.Hostname()
	if request.FillServerId {
		response.ServerId = fmt.Sprintf("go-%d", os.Getpid())
	}
	return response, nil
}

func (s server) CacheableUnaryCall(ctx context.Context,
	request *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	grpc.SetHeader(ctx, metadata.Pairs("cache-control", "max-age=60, public"))
	return s.UnaryCall(ctx, request)
}

// pour sends what a request asks for.
func pour(stream grpc.ServerStream, request *pb.StreamingOutputCallRequest) error {
	if err := asked(request.ResponseStatus); err != nil {
		return err
	}
	for _, parameters := range request.ResponseParameters {
		time.Sleep(time.Duration(parameters.IntervalUs) * time.Microsecond)
		response := &pb.StreamingOutputCallResponse{Payload: zeros(int(parameters.Size))}
		if err := stream.SendMsg(response); err != nil {
			return err
		}
	}
	return nil
}

func (server) StreamingOutputCall(request *pb.StreamingOutputCallRequest,
	stream pb.TestService_StreamingOutputCallServer) error {
	echoMetadata(stream.Context())
	return pour(stream, request)
}

func (server) StreamingInputCall(stream pb.TestService_StreamingInputCallServer) error {
	echoMetadata(stream.Context())
	size := 0
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(
				&pb.StreamingInputCallResponse{AggregatedPayloadSize: int32(size)})
		}
		if err == nil {
			err = cameAsSaid(stream.Context(), request.ExpectCompressed)
		}
		if err != nil {
			return err
		}
		size += len(request.GetPayload().GetBody())
	}
}

func (server) FullDuplexCall(stream pb.TestService_FullDuplexCallServer) error {
	echoMetadata(stream.Context())
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = pour(stream, request)
		}
		if err != nil {
			return err
		}
	}
}

func (server) HalfDuplexCall(stream pb.TestService_HalfDuplexCallServer) error {
	echoMetadata(stream.Context())
	var requests []*pb.StreamingOutputCallRequest
	request, err := stream.Recv()
	for ; err == nil; request, err = stream.Recv() {
		requests = append(requests, request)
	}
	if err != io.EOF {
		return err
	}
	for _, request := range requests {
		if err := pour(stream, request); err != nil {
			return err
		}
	}
	return nil
}

func serve(flags flags) error {
	options := []grpc.ServerOption{grpc.StatsHandler(watch{})}
	if flags["use_tls"] == "true" {
		secure, err := credentials.NewServerTLSFromFile(flags["cert_file"], flags["key_file"])
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(secure))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+flags["port"])
	if err != nil {
		return err
	}
	running := grpc.NewServer(options...)
	pb.RegisterTestServiceServer(running, &server{})
	signal.Ignore(syscall.SIGTERM) // the input ends as well
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		running.Stop()
	}()
	return running.Serve(listener)
}

// The client

type client struct {
	pb.TestServiceClient
	conn  *grpc.ClientConn
	flags flags
}

func expect(isMet bool, format string, args ...interface{}) {
	if !isMet {
		fmt.Fprintf(os.Stderr, "expected "+format+"\n", args...)
		os.Exit(1)
	}
}

func expectCode(err error, code codes.Code) {
	expect(status.Code(err) == code, "code %v, not: %v", code, err)
}

func expectOK(err error) {
	expectCode(err, codes.OK)
}

func expectUnknown(err error, message string) {
	expectCode(err, codes.Unknown)
	said := status.Convert(err).Message()
	expect(said == message, "the words %q, not %q", message, said)
}

func expectZeros(payload *pb.Payload, size int) {
	expect(bytes.Equal(payload.GetBody(), make([]byte, size)), "%d zeros, not %d bytes", size,
		len(payload.GetBody()))
}

func expectEnd(stream pb.TestService_FullDuplexCallClient) {
	expectOK(stream.CloseSend())
	_, err := stream.Recv()
	expect(err == io.EOF, "no more, not: %v", err)
}

// begin returns the context of a call, with metadata of keys and values in turn.
func begin(metadataSent ...string) (context.Context, context.CancelFunc) {
	ctx := withArrival(context.Background())
	return context.WithTimeout(metadata.AppendToOutgoingContext(ctx, metadataSent...), patience)
}

// beginTakingGzip is for a call that sends nothing compressed, of which the library says nothing.
func beginTakingGzip() (context.Context, context.CancelFunc) {
	return begin("grpc-accept-encoding", gzip.Name)
}

func emptyUnary(c *client) {
	ctx, cancel := begin()
	defer cancel()
	_, err := c.EmptyCall(ctx, new(pb.Empty))
	expectOK(err)
}

func large() *pb.SimpleRequest {
	return &pb.SimpleRequest{ResponseSize: 314159, Payload: zeros(271828)}
}

func callLarge(ctx context.Context, c *client, request *pb.SimpleRequest,
	options ...grpc.CallOption) {
	response, err := c.UnaryCall(ctx, request, options...)
	expectOK(err)
	expectZeros(response.Payload, 314159)
}

func largeUnary(c *client) {
	ctx, cancel := begin()
	defer cancel()
	callLarge(ctx, c, large())
}

func cacheableUnary(c *client) {
	request := &pb.SimpleRequest{
		ResponseSize: 10,
		Payload:      &pb.Payload{Body: []byte(fmt.Sprint(time.Now().UnixNano()))},
	}
	var responses [2]*pb.SimpleResponse
	for i := range responses {
		ctx, cancel := begin("x-user-ip", "1.2.3.4")
		defer cancel()
		var header metadata.MD
		response, err := c.CacheableUnaryCall(ctx, request, grpc.Header(&header))
		expectOK(err)
		expect(len(header.Get("cache-control")) == 1, "cache-control, not %v", header)
		responses[i] = response
	}
	expect(proto.Equal(responses[0].Payload, responses[1].Payload), "two equal payloads")
}

func clientCompressedUnary(c *client) {
	ctx, cancel := begin()
	defer cancel()
	request := large()
	request.ExpectCompressed = &pb.BoolValue{Value: true}
	_, err := c.UnaryCall(ctx, request)
	expectCode(err, codes.InvalidArgument)
	callLarge(ctx, c, request, grpc.UseCompressor(gzip.Name))
	request.ExpectCompressed = new(pb.BoolValue)
	callLarge(ctx, c, request)
}

func expectArrival(ctx context.Context, said *pb.BoolValue) {
	came := arrivalOf(ctx).compressed
	expect(came == said.Value, "a response of which compressed is %v, not %v", said.Value, came)
}

func serverCompressedUnary(c *client) {
	ctx, cancel := beginTakingGzip()
	defer cancel()
	for _, compressed := range []bool{true, false} {
		request := large()
		request.ResponseCompressed = &pb.BoolValue{Value: compressed}
		callLarge(ctx, c, request)
		expectArrival(ctx, request.ResponseCompressed)
	}
}

func input(size int) *pb.StreamingInputCallRequest {
	return &pb.StreamingInputCallRequest{Payload: zeros(size)}
}

func expectSum(stream pb.TestService_StreamingInputCallClient, sum int32) {
	response, err := stream.CloseAndRecv()
	expectOK(err)
	expect(response.AggregatedPayloadSize == sum, "%d bytes in all, not %d", sum,
		response.AggregatedPayloadSize)
}

func clientStreaming(c *client) {
	ctx, cancel := begin()
	defer cancel()
	stream, err := c.StreamingInputCall(ctx)
	expectOK(err)
	for _, size := range []int{27182, 8, 1828, 45904} {
		expectOK(stream.Send(input(size)))
	}
	expectSum(stream, 74922)
}

// sayCompressed sends a message that says whether it is compressed. The library compresses all of a
// stream or nothing; but a message may be encoded for another stream than the one that it goes on.
func sayCompressed(stream, encodes grpc.ClientStream, size int, says bool) {
	request := input(size)
	request.ExpectCompressed = &pb.BoolValue{Value: says}
	var encoded grpc.PreparedMsg
	expectOK(encoded.Encode(encodes, request))
	expectOK(stream.SendMsg(&encoded))
}

func clientCompressedStreaming(c *client) {
	ctx, cancel := begin()
	defer cancel()
	plain, err := c.StreamingInputCall(ctx)
	expectOK(err)
	lies, err := c.StreamingInputCall(ctx, grpc.UseCompressor(gzip.Name))
	expectOK(err)
	sayCompressed(lies, plain, 27182, true)
	_, err = lies.CloseAndRecv()
	expectCode(err, codes.InvalidArgument)
	stream, err := c.StreamingInputCall(ctx, grpc.UseCompressor(gzip.Name))
	expectOK(err)
	sayCompressed(stream, stream, 27182, true)
	sayCompressed(stream, plain, 45904, false)
	expectSum(stream, 73086)
	expectSum(plain, 0)
}

func output(sizes ...int32) *pb.StreamingOutputCallRequest {
	request := new(pb.StreamingOutputCallRequest)
	for _, size := range sizes {
		request.ResponseParameters = append(request.ResponseParameters,
			&pb.ResponseParameters{Size: size})
	}
	return request
}

func expectOutput(ctx context.Context, c *client, request *pb.StreamingOutputCallRequest) {
	stream, err := c.StreamingOutputCall(ctx, request)
	expectOK(err)
	for _, parameters := range request.ResponseParameters {
		response, err := stream.Recv()
		expectOK(err)
		expectZeros(response.Payload, int(parameters.Size))
		if parameters.Compressed != nil {
			expectArrival(ctx, parameters.Compressed)
		}
	}
	_, err = stream.Recv()
	expect(err == io.EOF, "no more, not: %v", err)
}

func serverStreaming(c *client) {
	ctx, cancel := begin()
	defer cancel()
	expectOutput(ctx, c, output(31415, 9, 2653, 58979))
}

func serverCompressedStreaming(c *client) {
	ctx, cancel := beginTakingGzip()
	defer cancel()
	request := output(31415, 92653)
	request.ResponseParameters[0].Compressed = &pb.BoolValue{Value: true}
	request.ResponseParameters[1].Compressed = new(pb.BoolValue)
	expectOutput(ctx, c, request)
}

func exchange(stream pb.TestService_FullDuplexCallClient, sent int, size int32) {
	request := output(size)
	request.Payload = zeros(sent)
	expectOK(stream.Send(request))
	response, err := stream.Recv()
	expectOK(err)
	expectZeros(response.Payload, int(size))
}

func pingPong(c *client) {
	ctx, cancel := begin()
	defer cancel()
	stream, err := c.FullDuplexCall(ctx)
	expectOK(err)
	exchange(stream, 27182, 31415)
	exchange(stream, 8, 9)
	exchange(stream, 1828, 2653)
	exchange(stream, 45904, 58979)
	expectEnd(stream)
}

func emptyStream(c *client) {
	ctx, cancel := begin()
	defer cancel()
	stream, err := c.FullDuplexCall(ctx)
	expectOK(err)
	expectEnd(stream)
}

func expectMetadata(came metadata.MD, key, value string) {
	values := came.Get(key)
	expect(len(values) == 1 && values[0] == value, "%s to come back, not %v", key, came)
}

func customMetadata(c *client) {
	const initial, trailing = "test_initial_metadata_value", "\xab\xab\xab"
	ctx, cancel := begin(initialKey, initial, trailingKey, trailing)
	defer cancel()
	var header, trailer metadata.MD
	callLarge(ctx, c, large(), grpc.Header(&header), grpc.Trailer(&trailer))
	expectMetadata(header, initialKey, initial)
	expectMetadata(trailer, trailingKey, trailing)
	stream, err := c.FullDuplexCall(ctx)
	expectOK(err)
	exchange(stream, 271828, 314159)
	expectEnd(stream)
	header, err = stream.Header()
	expectOK(err)
	expectMetadata(header, initialKey, initial)
	expectMetadata(stream.Trailer(), trailingKey, trailing)
}

func failUnary(c *client, message string) {
	ctx, cancel := begin()
	defer cancel()
	_, err := c.UnaryCall(ctx, &pb.SimpleRequest{
		ResponseStatus: &pb.EchoStatus{Code: int32(codes.Unknown), Message: message},
	})
	expectUnknown(err, message)
}

func statusCodeAndMessage(c *client) {
	const message = "test status message"
	failUnary(c, message)
	ctx, cancel := begin()
	defer cancel()
	stream, err := c.FullDuplexCall(ctx)
	expectOK(err)
	expectOK(stream.Send(&pb.StreamingOutputCallRequest{
		ResponseStatus: &pb.EchoStatus{Code: int32(codes.Unknown), Message: message},
	}))
	_, err = stream.Recv()
	expectUnknown(err, message)
}

func specialStatusMessage(c *client) {
	failUnary(c, "\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \U0001f608\t\n")
}

func unimplementedMethod(c *client) {
	ctx, cancel := begin()
	defer cancel()
	_, err := c.UnimplementedCall(ctx, new(pb.Empty))
	expectCode(err, codes.Unimplemented)
}

func unimplementedService(c *client) {
	ctx, cancel := begin()
	defer cancel()
	_, err := pb.NewUnimplementedServiceClient(c.conn).UnimplementedCall(ctx, new(pb.Empty))
	expectCode(err, codes.Unimplemented)
}

func cancelAfterBegin(c *client) {
	ctx, cancel := begin()
	stream, err := c.StreamingInputCall(ctx)
	expectOK(err)
	cancel()
	_, err = stream.CloseAndRecv()
	expectCode(err, codes.Canceled)
}

func cancelAfterFirstResponse(c *client) {
	ctx, cancel := begin()
	stream, err := c.FullDuplexCall(ctx)
	expectOK(err)
	exchange(stream, 27182, 31415)
	cancel()
	_, err = stream.Recv()
	expectCode(err, codes.Canceled)
}

func timeoutOnSleepingServer(c *client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	stream, err := c.FullDuplexCall(ctx)
	if err == nil {
		stream.Send(&pb.StreamingOutputCallRequest{Payload: zeros(27182)}) // or the time is over
		_, err = stream.Recv()
	}
	expectCode(err, codes.DeadlineExceeded)
}

func pickFirstUnary(c *client) {
	ctx, cancel := begin()
	defer cancel()
	ids := map[string]bool{}
	for i := 0; i < 100; i++ {
		response, err := c.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: 1, FillServerId: true})
		expectOK(err)
		ids[response.ServerId] = true
	}
	expect(len(ids) == 1 && !ids[""], "one server, not %v", ids)
}

func orcaPerRPC(c *client) {
	ctx, cancel := begin()
	defer cancel()
	load := &pb.TestOrcaReport{
		CpuUtilization:    0.8210,
		MemoryUtilization: 0.5847,
		RequestCost:       []*pb.NamedValue{{Key: "cost", Value: 3456.32}},
		Utilization:       []*pb.NamedValue{{Key: "util", Value: 0.30499}},
	}
	var trailer metadata.MD
	_, err := c.UnaryCall(ctx, &pb.SimpleRequest{OrcaPerQueryReport: load}, grpc.Trailer(&trailer))
	expectOK(err)
	reports := trailer.Get(loadKey)
	expect(len(reports) == 1, "one report, not %v", trailer)
	var report pb.LoadReport
	expectOK(proto.Unmarshal([]byte(reports[0]), &report))
	expect(proto.Equal(&report, reportOf(load)), "%v, not %v", reportOf(load), &report)
}

const soakCalls = 10

func rpcSoak(c *client) {
	for i := 0; i < soakCalls; i++ {
		largeUnary(c)
	}
}

func channelSoak(c *client) {
	for i := 0; i < soakCalls; i++ {
		one := connect(c.flags)
		largeUnary(one)
		one.conn.Close()
	}
}

var cases = []struct {
	name string
	run  func(*client)
}{
	{"empty_unary", emptyUnary},
	{"large_unary", largeUnary},
	{"cacheable_unary", cacheableUnary},
	{"client_compressed_unary", clientCompressedUnary},
	{"server_compressed_unary", serverCompressedUnary},
	{"client_streaming", clientStreaming},
	{"client_compressed_streaming", clientCompressedStreaming},
	{"server_streaming", serverStreaming},
	{"server_compressed_streaming", serverCompressedStreaming},
	{"ping_pong", pingPong},
	{"empty_stream", emptyStream},
	{"custom_metadata", customMetadata},
	{"status_code_and_message", statusCodeAndMessage},
	{"special_status_message", specialStatusMessage},
	{"unimplemented_method", unimplementedMethod},
	{"unimplemented_service", unimplementedService},
	{"cancel_after_begin", cancelAfterBegin},
	{"cancel_after_first_response", cancelAfterFirstResponse},
	{"timeout_on_sleeping_server", timeoutOnSleepingServer},
	{"pick_first_unary", pickFirstUnary},
	{"orca_per_rpc", orcaPerRPC},
	{"rpc_soak", rpcSoak},
	{"channel_soak", channelSoak},
}

// connect waits for the connection, so that a short deadline reaches the server.
func connect(flags flags) *client {
	secure := grpc.WithInsecure()
	if flags["use_tls"] == "true" {
		trusts, err := credentials.NewClientTLSFromFile(flags["ca_file"],
			flags["server_host_override"])
		expectOK(err)
		secure = grpc.WithTransportCredentials(trusts)
	}
	ctx, cancel := begin()
	defer cancel()
	conn, err := grpc.DialContext(ctx, flags["server_host"]+":"+flags["server_port"], secure,
		grpc.WithStatsHandler(watch{}), grpc.WithBlock())
	expectOK(err)
	return &client{pb.NewTestServiceClient(conn), conn, flags}
}

func runCase(flags flags) error {
	name := flags["test_case"]
	for _, one := range cases {
		if name == "list" {
			fmt.Println(one.name)
		} else if name == one.name {
			c := connect(flags)
			one.run(c)
			return c.conn.Close()
		}
	}
	if name == "list" {
		return nil
	}
	return fmt.Errorf("%s is no case", name)
}

func main() {
	flags := flags{}
	for _, word := range os.Args[2:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		flags[name] = value
	}
	run := runCase
	if os.Args[1] == "server" {
		run = serve
	}
	if err := run(flags); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
