// SPDX-License-Identifier: Apache-2.0 OR MIT

// gRPC's implementation for Go as a peer of Bowline, for peers.py: see its top for the arguments.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"
)

const path = "/peers.Echo/Say"

const (
	talkPath       = "/peers.Echo/Talk"
	maxOutstanding = 16 // messages of a stream that have not come back yet
)

var talkDesc = grpc.StreamDesc{
	StreamName: "Talk", Handler: talk, ServerStreams: true, ClientStreams: true}

// Messages stay the bytes that they travel as.
type plain struct{}

func (plain) Marshal(value interface{}) ([]byte, error) {
	return *value.(*[]byte), nil
}

func (plain) Unmarshal(data []byte, value interface{}) error {
	*value.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func (plain) Name() string   { return "proto" }
func (plain) String() string { return "proto" }

// A Message as it travels: field 1, its length, its body.
func message(slot, size int) []byte {
	var length [binary.MaxVarintLen64]byte
	body := append([]byte(fmt.Sprintf("%010d", slot)), bytes.Repeat([]byte("x"), size)...)[:size]
	encoded := append([]byte{10}, length[:binary.PutUvarint(length[:], uint64(size))]...)
	return append(encoded, body...)
}

func say(_ interface{}, ctx context.Context, decode func(interface{}) error,
	_ grpc.UnaryServerInterceptor) (interface{}, error) {
	var request []byte
	if err := decode(&request); err != nil {
		return nil, err
	}
	return &request, nil
}

func talk(_ interface{}, stream grpc.ServerStream) error {
	for {
		var message []byte
		err := stream.RecvMsg(&message)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = stream.SendMsg(&message)
		}
		if err != nil {
			return err
		}
	}
}

func serve(maxAge time.Duration) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	options := []grpc.ServerOption{grpc.CustomCodec(plain{})}
	if maxAge > 0 {
		age := keepalive.ServerParameters{MaxConnectionAge: maxAge}
		options = append(options, grpc.KeepaliveParams(age))
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "peers.Echo",
		HandlerType: (*interface{})(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Say", Handler: say}},
		Streams:     []grpc.StreamDesc{talkDesc},
	}, nil)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		server.Stop()
	}()
	return server.Serve(listener)
}

type run struct {
	sync.Mutex
	calls, failed, ended int
	err                  string
}

func (r *run) note(text string) {
	r.Lock()
	defer r.Unlock()
	r.calls++
	if text == "" {
		return
	}
	if r.failed++; r.err == "" {
		r.err = text
	}
}

// once returns what was wrong with a call, or "".
func once(conn *grpc.ClientConn, request []byte) string {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var reply []byte
	if err := conn.Invoke(ctx, path, &request, &reply, grpc.ForceCodec(plain{})); err != nil {
		return err.Error()
	}
	if !bytes.Equal(reply, request) {
		return "the reply is another call's"
	}
	return ""
}

// send sends what there is time for, with at most as many messages outstanding as window takes, and
// returns how many they were.
func send(stream grpc.ClientStream, messages [][]byte, window chan struct{}, end time.Time) int {
	defer stream.CloseSend()
	for sent := range messages {
		if sent > 0 && !time.Now().Before(end) {
			return sent
		}
		select {
		case window <- struct{}{}:
		case <-stream.Context().Done():
			return sent
		}
		if stream.SendMsg(&messages[sent]) != nil { // RecvMsg says why
			return sent
		}
	}
	return len(messages)
}

// stream returns what was wrong with a stream on which messages are to come back, or "".
func (r *run) stream(conn *grpc.ClientConn, messages [][]byte, end time.Time) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stream, err := conn.NewStream(ctx, &talkDesc, talkPath, grpc.ForceCodec(plain{}))
	if err != nil {
		return err.Error()
	}
	window := make(chan struct{}, maxOutstanding)
	sent := make(chan int, 1)
	go func() { sent <- send(stream, messages, window, end) }()
	for back := 0; ; back++ {
		var reply []byte
		err := stream.RecvMsg(&reply)
		if err == io.EOF && back == <-sent {
			return ""
		}
		if err == io.EOF {
			return "messages did not come back"
		}
		if err != nil {
			return err.Error()
		}
		if back == len(messages) || !bytes.Equal(reply, messages[back]) {
			return "the message is another one"
		}
		<-window
		r.note("")
	}
}

// streams opens one stream after the other until end.
func (r *run) streams(conn *grpc.ClientConn, messages [][]byte, end time.Time) {
	for time.Now().Before(end) {
		if wrong := r.stream(conn, messages, end); wrong != "" {
			r.note(wrong)
		}
	}
}

// watch counts how often the connection was ready and then was not, until ctx is done.
func (r *run) watch(ctx context.Context, conn *grpc.ClientConn) {
	for state := conn.GetState(); conn.WaitForStateChange(ctx, state); state = conn.GetState() {
		if state == connectivity.Ready {
			r.Lock()
			r.ended++
			r.Unlock()
		}
	}
}

// call makes unary calls, or streams of n messages when n is not 0.
func call(target string, inFlight, size int, seconds float64, n int) error {
	conn, err := grpc.Dial(target, grpc.WithInsecure())
	if err != nil {
		return err
	}
	var r run
	ctx, cancel := context.WithCancel(context.Background())
	var watching, slots sync.WaitGroup
	watching.Add(1)
	go func() {
		r.watch(ctx, conn)
		watching.Done()
	}()
	var streams [][][]byte // the messages of each
	for i := 0; i < inFlight && n > 0; i++ {
		var messages [][]byte
		for k := 0; k < n; k++ {
			messages = append(messages, message(i*n+k, size))
		}
		streams = append(streams, messages)
	}
	start := time.Now()
	end := start.Add(time.Duration(seconds * float64(time.Second)))
	for _, messages := range streams {
		slots.Add(1)
		go func(messages [][]byte) {
			r.streams(conn, messages, end)
			slots.Done()
		}(messages)
	}
	for i := 0; i < inFlight && n == 0; i++ {
		slots.Add(1)
		go func(request []byte) {
			for time.Now().Before(end) {
				r.note(once(conn, request))
			}
			slots.Done()
		}(message(i, size))
	}
	slots.Wait()
	took := time.Since(start).Seconds()
	cancel()
	watching.Wait()
	conn.Close()
	fmt.Println(r.calls, r.failed, r.ended, took, r.err)
	return nil
}

// window makes one call after the other with a pause, for so many seconds.
func (r *run) window(conn *grpc.ClientConn, request []byte, seconds float64) {
	r.Lock()
	ended := r.ended
	r.calls, r.failed, r.err = 0, 0, ""
	r.Unlock()
	var took []int64
	start := time.Now()
	end := start.Add(time.Duration(seconds * float64(time.Second)))
	for time.Now().Before(end) {
		begin := time.Now()
		r.note(once(conn, request))
		took = append(took, time.Since(begin).Microseconds())
		time.Sleep(time.Millisecond)
	}
	r.Lock()
	defer r.Unlock()
	fmt.Println(r.calls, r.failed, r.ended-ended, time.Since(start).Seconds(), r.err)
	fmt.Println(strings.Trim(fmt.Sprint(took), "[]"))
}

// pace runs a window for each line of standard input.
func pace(target string, size int) error {
	conn, err := grpc.Dial(target, grpc.WithInsecure())
	if err != nil {
		return err
	}
	var r run
	go r.watch(context.Background(), conn)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		seconds, err := strconv.ParseFloat(lines.Text(), 64)
		if err != nil {
			return err
		}
		r.window(conn, message(0, size), seconds)
	}
	return nil
}

func main() {
	var err error
	words := os.Args[1:]
	if len(words) > 0 && words[0] == "ready" {
		fmt.Println("ready")
		fmt.Scanln()
		words = words[1:]
	}
	if len(words) == 2 && words[0] == "server" {
		ms, _ := strconv.Atoi(words[1])
		err = serve(time.Duration(ms) * time.Millisecond)
	} else if len(words) == 3 && words[0] == "paced" {
		size, _ := strconv.Atoi(words[2])
		err = pace(words[1], size)
	} else if len(words) == 5 && words[0] == "client" {
		inFlight, _ := strconv.Atoi(words[2])
		size, _ := strconv.Atoi(words[3])
		seconds, _ := strconv.ParseFloat(words[4], 64)
		err = call(words[1], inFlight, size, seconds, 0)
	} else if len(words) == 6 && words[0] == "streams" {
		inFlight, _ := strconv.Atoi(words[2])
		size, _ := strconv.Atoi(words[3])
		seconds, _ := strconv.ParseFloat(words[4], 64)
		n, _ := strconv.Atoi(words[5])
		err = call(words[1], inFlight, size, seconds, n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
