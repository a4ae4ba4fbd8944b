# SPDX-License-Identifier: MIT
# echo.rb PORT: sends back what comes. echo.rb PORT CLIENTS: clients that check each line.
require 'socket'
port = ARGV[0].to_i

if ARGV.size == 1
  trap('TERM') { exit! 0 }
  Socket.tcp_server_loop('127.0.0.1', port) do |socket, _|
    Thread.new { IO.copy_stream(socket, socket) rescue nil; socket.close }
  end
end

count = ARGV[1].to_i
clients = (1..count).map do |number|
  Thread.new do
    socket = TCPSocket.new('127.0.0.1', port)
    sender = Thread.new do
      2000.times { |i| socket.puts("client #{number} line #{i} " + 'x' * (i % 500)) }
      socket.close_write
    end
    2000.times { |i| raise "line #{i}" unless socket.gets == "client #{number} line #{i} " + 'x' * (i % 500) + "\n" }
    raise 'no end' unless socket.gets.nil?
    sender.join
    socket.close
    2000
  end
end
puts clients.sum(&:value)
