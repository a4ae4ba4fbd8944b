// SPDX-License-Identifier: MIT
// What Go programs do with connections. server: prints its port and does what each client asks for. client ADDRESS: asks for
// all of it, and prints what came. soak ADDRESS SECONDS: connections under signals, garbage collections and threads that end.
// relay ADDRESS: what passes through the server, from one connection to another. pings ADDRESS CONNECTIONS SECONDS: round trips a second. With NOISE set, the server has the signals, too.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const tail = 305000 // written right before the end of the process

func pattern(count int, seed byte) []byte {
	all := make([]byte, count)
	value := uint32(seed) + 1
	for i := range all {
		value = value*1664525 + 1013904223
		all[i] = byte(value >> 24)
	}
	return all
}

func hash(all []byte) string {
	return fmt.Sprintf("%d bytes, %x", len(all), sha256.Sum256(all))[:40]
}

func must(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// --- the server ---

func echo(connection net.Conn, from io.Reader) {
	all := make([]byte, 65536)
	for {
		n, err := from.Read(all)
		if _, failed := connection.Write(all[:n]); err != nil || failed != nil {
			return
		}
	}
}

func sendFile(connection net.Conn, count int) {
	file, err := os.CreateTemp("", "go")
	must(err)
	defer os.Remove(file.Name())
	file.Write(pattern(count, 3))
	file.Seek(0, io.SeekStart)
	io.Copy(connection, file)
	file.Close()
}

// A child has the connection as its descriptor 3.
func giveAway(connection *net.TCPConn) {
	file, err := connection.File()
	must(err)
	child := exec.Command(os.Args[0], "child")
	child.ExtraFiles = []*os.File{file}
	child.Stderr = os.Stderr
	must(child.Run())
	file.Close()
}

func child() {
	connection, err := net.FileConn(os.NewFile(3, "given"))
	must(err)
	fmt.Fprintf(connection, "the child has it\n")
	all, err := io.ReadAll(connection)
	must(err)
	fmt.Fprintf(connection, "%s\n", hash(all))
	connection.Close()
}

func serve(connection *net.TCPConn) {
	defer connection.Close()
	reader := bufio.NewReader(connection)
	line, err := reader.ReadString('\n')
	if err != nil {
		return
	}
	words := strings.Fields(line)
	count, _ := strconv.Atoi(words[1])
	switch words[0] {
	case "echo":
		echo(connection, reader)
	case "copy": // by splice(2), where nothing is buffered
		io.CopyN(connection, reader, int64(reader.Buffered()))
		io.Copy(connection, connection)
	case "relay": // from one connection to another and back, by splice(2) as well
		behind := dial(connection.LocalAddr().String(), "echo", 0)
		io.CopyN(behind, reader, int64(reader.Buffered()))
		go func() {
			io.Copy(behind, connection)
			behind.CloseWrite()
		}()
		io.Copy(connection, behind)
	case "hash":
		all, _ := io.ReadAll(reader)
		fmt.Fprintln(connection, hash(all))
	case "file":
		sendFile(connection, count)
	case "vector":
		var parts net.Buffers
		for i := 0; i < count; i++ {
			parts = append(parts, pattern(1000+i, byte(i)))
		}
		parts.WriteTo(connection)
	case "give":
		giveAway(connection)
	case "run":
		out, err := exec.Command("/bin/echo", "a", "child").CombinedOutput()
		fmt.Fprintf(connection, "%s %v\n", out, err)
	case "twice": // both ends come while the first is still sending
		connection.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		for err == nil {
			_, err = connection.Write(pattern(100000, 4))
		}
		go func() {
			time.Sleep(300 * time.Millisecond)
			os.Exit(4)
		}()
		os.Exit(3)
	case "exit":
		connection.Write(pattern(tail, 9))
		os.Exit(0)
	}
}

func server() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	web, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go http.Serve(web, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, _ := io.ReadAll(r.Body)
		count, _ := strconv.Atoi(r.URL.Path[1:])
		w.Header().Set("Hash", hash(all))
		w.Write(pattern(count, 7))
	}))
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port, web.Addr().(*net.TCPAddr).Port)
	if os.Getenv("NOISE") != "" {
		noise()
	}
	for {
		connection, err := listener.Accept()
		must(err)
		go serve(connection.(*net.TCPConn))
	}
}

// --- the client ---

func dial(address, what string, count int) *net.TCPConn {
	connection, err := net.Dial("tcp", address)
	must(err)
	fmt.Fprintf(connection, "%s %d\n", what, count)
	return connection.(*net.TCPConn)
}

func rest(connection net.Conn) []byte {
	all, err := io.ReadAll(connection)
	must(err)
	connection.Close()
	return all
}

// Small messages to and fro, of many sizes.
func pingPong(address, what string) {
	connection := dial(address, what, 0)
	all := pattern(3000, 1)
	got := make([]byte, 3000)
	for size := 1; size <= 3000; size += 7 {
		_, err := connection.Write(all[:size])
		must(err)
		_, err = io.ReadFull(connection, got[:size])
		must(err)
		if !bytes.Equal(got[:size], all[:size]) {
			fmt.Println(what, "other bytes of", size)
		}
	}
	connection.CloseWrite()
	fmt.Println(what, len(rest(connection)))
}

// Sent and read at once.
func stream(address, what string, count int) {
	connection := dial(address, what, 0)
	all := pattern(count, 2)
	go func() {
		connection.Write(all)
		connection.CloseWrite()
	}()
	fmt.Println(what, hash(rest(connection)))
}

func asked(address, what string, count int) {
	fmt.Println(what, hash(rest(dial(address, what, count))))
}

func crowd(address string, clients int) {
	var group sync.WaitGroup
	var good int32
	for i := 0; i < clients; i++ {
		group.Add(1)
		go func(seed byte) {
			defer group.Done()
			connection := dial(address, "echo", 0)
			all := pattern(100000, seed)
			go func() {
				connection.Write(all)
				connection.CloseWrite()
			}()
			if bytes.Equal(rest(connection), all) {
				atomic.AddInt32(&good, 1)
			}
		}(byte(i))
	}
	group.Wait()
	fmt.Println("crowd", good)
}

func give(address string) {
	connection := dial(address, "give", 0)
	reader := bufio.NewReader(connection)
	line, err := reader.ReadString('\n')
	must(err)
	fmt.Print("give ", line)
	connection.Write(pattern(300000, 5))
	connection.CloseWrite()
	line, err = reader.ReadString('\n')
	must(err)
	fmt.Print("give ", line)
	connection.Close()
}

func deadline(address string) {
	connection := dial(address, "echo", 0)
	one := make([]byte, 1)
	connection.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, err := connection.Read(one)
	fmt.Println("deadline", os.IsTimeout(err))
	connection.SetReadDeadline(time.Time{})
	connection.Write([]byte("x"))
	_, err = io.ReadFull(connection, one)
	fmt.Println("deadline", string(one), err)
	connection.Close()
}

func refused() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	address := listener.Addr().String()
	listener.Close()
	_, err = net.Dial("tcp", address)
	fmt.Println("refused", err != nil && strings.Contains(err.Error(), "connection refused"))
	context, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = (&net.Dialer{}).DialContext(context, "tcp", address)
	fmt.Println("canceled", err != nil)
}

func web(address string) {
	client := &http.Client{}
	for _, count := range []int{0, 1, 512, 70000, 1 << 20} {
		answer, err := client.Post(fmt.Sprintf("http://%s/%d", address, count), "x/y", bytes.NewReader(pattern(count/2, 8)))
		must(err)
		all, err := io.ReadAll(answer.Body)
		must(err)
		answer.Body.Close()
		fmt.Println("web", answer.Header.Get("Hash"), "and", hash(all))
	}
}

func client(address, webAddress string) {
	pingPong(address, "echo")
	pingPong(address, "copy")
	stream(address, "echo", 5000000)
	stream(address, "copy", 5000000)
	stream(address, "relay", 5000000)
	stream(address, "hash", 5000000)
	asked(address, "file", 3000000)
	asked(address, "vector", 300)
	asked(address, "run", 0)
	crowd(address, 30)
	give(address)
	deadline(address)
	refused()
	web(webAddress)
	asked(address, "exit", 0)
}

// --- signals and threads meanwhile ---

func noise() {
	caught := make(chan os.Signal, 100)
	signal.Notify(caught, syscall.SIGUSR1)
	go func() {
		for range caught {
		}
	}()
	pprof.StartCPUProfile(io.Discard)
	go func() { // goroutines that spin are preempted by SIGURG
		for {
			for until := time.Now().Add(20 * time.Millisecond); time.Now().Before(until); {
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	go func() {
		all := make([]byte, 1<<20)
		for {
			syscall.Kill(os.Getpid(), syscall.SIGUSR1)
			runtime.Stack(all, true)
			time.Sleep(time.Millisecond)
		}
	}()
	go func() {
		for {
			runtime.GC()
			go runtime.LockOSThread() // the thread ends with the goroutine
			time.Sleep(5 * time.Millisecond)
		}
	}()
}

func soak(address string, seconds int) {
	var group sync.WaitGroup
	var trips, wrong int64
	noise()
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func(seed byte) {
			defer group.Done()
			all := pattern(20000, seed)
			got := make([]byte, len(all))
			connection := dial(address, []string{"echo", "copy"}[seed%2], 0)
			for n := 0; time.Now().Before(until); n++ {
				size := 1 + n*37%len(all)
				connection.Write(all[:size])
				_, err := io.ReadFull(connection, got[:size])
				if err != nil || !bytes.Equal(got[:size], all[:size]) {
					fmt.Println("wrong:", err)
					atomic.AddInt64(&wrong, 1)
					return
				}
				atomic.AddInt64(&trips, 1)
			}
			connection.Close()
		}(byte(i))
	}
	group.Wait()
	fmt.Println("soak", trips > 0, wrong)
}

// --- for benchmarks ---

func pings(address string, connections, seconds int) {
	var group sync.WaitGroup
	var trips int64
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	for i := 0; i < connections; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			connection := dial(address, "echo", 0)
			message, mine := make([]byte, 64), int64(0)
			for time.Now().Before(until) {
				connection.Write(message)
				_, err := io.ReadFull(connection, message)
				must(err)
				mine++
			}
			atomic.AddInt64(&trips, mine)
		}()
	}
	group.Wait()
	fmt.Println(trips / int64(seconds))
}

func main() {
	switch os.Args[1] {
	case "server":
		server()
	case "child":
		child()
	case "twice": // reads when the server has had the time to end twice
		connection := dial(os.Args[2], "twice", 0)
		time.Sleep(1500 * time.Millisecond)
		fmt.Println("twice", len(rest(connection)) > 0)
	case "client":
		client(os.Args[2], os.Args[3])
	case "relay":
		stream(os.Args[2], "relay", 40000000)
		asked(os.Args[2], "exit", 0)
	case "soak":
		seconds, _ := strconv.Atoi(os.Args[3])
		soak(os.Args[2], seconds)
	case "pings":
		connections, _ := strconv.Atoi(os.Args[3])
		seconds, _ := strconv.Atoi(os.Args[4])
		pings(os.Args[2], connections, seconds)
	}
}
