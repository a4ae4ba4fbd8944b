% SPDX-License-Identifier: MIT
%% echo:server([Port]): sends back what comes. echo:client([Port, Clients]): clients that check what comes back.
-module(echo).
-export([server/1, client/1]).

server([Port]) ->
    Options = [binary, {active, false}, {ip, {127, 0, 0, 1}}, {backlog, 100}, {exit_on_close, false}, {reuseaddr, true}],
    {ok, Listener} = gen_tcp:listen(number(Port), Options),
    accept(Listener).

accept(Listener) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Pid = spawn(fun() -> receive go -> serve(Socket) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    accept(Listener).

serve(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Data} ->
            case gen_tcp:send(Socket, Data) of
                ok -> serve(Socket);
                _ -> gen_tcp:close(Socket)
            end;
        _ -> gen_tcp:close(Socket)
    end.

client([Port, Clients]) ->
    Self = self(),
    Count = number(Clients),
    [spawn_link(fun() -> Self ! one(number(Port), N) end) || N <- lists:seq(1, Count)],
    Done = [receive ok -> 1 end || _ <- lists:seq(1, Count)],
    io:format("~p clients~n", [lists:sum(Done)]),
    halt(0).

%% Active mode: what comes arrives as messages.
one(Port, N) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, true}]),
    Sent = binary:copy(<<"client ", (integer_to_binary(N))/binary, ". ">>, 100000),
    Sender = spawn_link(fun() -> ok = gen_tcp:send(Socket, Sent), ok = gen_tcp:shutdown(Socket, write), receive stop -> ok end end),
    Sent = gather(Socket, byte_size(Sent), []),
    Sender ! stop,
    ok.

gather(Socket, 0, Parts) ->
    receive {tcp_closed, Socket} -> iolist_to_binary(lists:reverse(Parts)) end;
gather(Socket, Left, Parts) ->
    receive {tcp, Socket, Data} -> gather(Socket, Left - byte_size(Data), [Data | Parts]) end.

number(Atom) -> list_to_integer(atom_to_list(Atom)).
