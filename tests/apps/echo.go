// SPDX-License-Identifier: MIT
// echo ADDRESS: sends back what comes. echo ADDRESS CLIENTS: clients that check each byte.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func serve(address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		os.Exit(0)
	}()
	for {
		connection, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			io.Copy(connection, connection)
			connection.Close()
		}()
	}
}

func client(address string, number int) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	sent := bytes.Repeat([]byte(fmt.Sprintf("client %d. ", number)), 100000)
	go func() {
		connection.Write(sent)
		connection.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(connection)
	if err == nil && !bytes.Equal(got, sent) {
		err = fmt.Errorf("client %d got other bytes", number)
	}
	return err
}

func main() {
	if len(os.Args) == 2 {
		serve(os.Args[1])
	}
	count, _ := strconv.Atoi(os.Args[2])
	errors := make(chan error)
	for i := 0; i < count; i++ {
		go func(number int) { errors <- client(os.Args[1], number) }(i)
	}
	for i := 0; i < count; i++ {
		if err := <-errors; err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println(count, "clients")
}
