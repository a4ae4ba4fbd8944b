# SPDX-License-Identifier: MIT
# The shunt command and the scripts around the tree.
bin_PROGRAMS += tools/shunt
tools_shunt_SOURCES = \
	tools/shunt.c tools/shunt.h tools/output.c tools/output.h \
	tools/library.c tools/program.c tools/program_go.c tools/door.c tools/door.h tools/door_users.c tools/guard.c tools/guard.h tools/budget.c tools/budget.h tools/enter.c tools/absence.c tools/seconds.c \
	tools/variables.c \
	tools/ask.c tools/ask.h \
	tools/proc.c tools/proc.h tools/findings.c tools/findings.h \
	tools/devices.c tools/devices.h tools/devices_read.c tools/devices_verbs.c tools/devices_judge.c \
	tools/doctor.c tools/doctor.h tools/doctor_run.c tools/doctor_machine.c tools/doctor_kernel.c \
	tools/doctor_devices.c tools/doctor_settings.c tools/doctor_program.c tools/doctor_process.c \
	tools/doctor_ward.c tools/doctor_streams.c tools/doctor_peer.c tools/sockets.c tools/sockets.h \
	tools/advice.c tools/advice.h \
	tools/report.c tools/report.h tools/report_files.c tools/archive.c tools/archive.h \
	tools/anonymous.c tools/anonymous.h \
	tools/service/service.c tools/service/unit_file.c tools/service/unit_file.h tools/service/drop_in.c tools/service/drop_in.h \
	tools/service/cluster.c tools/service/cluster.h \
	tools/run.c tools/adm.c tools/adm_who.c tools/adm_who.h \
	tools/config.c tools/complete.c \
	tools/log.c \
	tools/stat.c tools/stat.h tools/stat_fetch.c tools/stat_rate.c tools/stat_show.c tools/stat_brief.c tools/stat_tcp.c \
	tools/trace.c tools/trace.h tools/trace_ask.c tools/trace_perfetto.c tools/trace_show.c \
	tools/metrics.c tools/metrics.h tools/metrics_row.c tools/metrics_table.c tools/metrics_text.c \
	tools/view_exec.c \
	tools/bench.h tools/bench_child.c tools/bench_said.c tools/bench_scratch.c \
	tools/bench_share.c tools/bench_figure.c \
	tools/compare.c tools/compare.h tools/compare_work.c tools/compare_measure.c \
	tools/compare_report.c tools/compare_html.c tools/chart.c tools/chart.h tools/html_page.c \
	tools/advise.c tools/advise.h tools/advise_metric.c tools/advise_verdict.c tools/advise_tree.c \
	tools/advise_server.c tools/advise_run.c tools/advise_pairs.c tools/advise_cause.c tools/advise_table.h \
	tools/advise_try.c tools/advise_show.c tools/advise_json.c tools/advise_html.c tools/advise_watch.c \
	tools/perf.c tools/perf.h tools/perf_options.c tools/perf_options.h tools/perf_model.c tools/perf_transport.c tools/perf_measure.c \
	tools/perf_cluster.c tools/perf_result.c tools/perf_table.c tools/perf_files.c \
	tools/perf_plot.c tools/perf_html.c \
	tools/perf_end.c tools/perf_end.h tools/perf_flow.c tools/perf_pattern.c \
	tools/perf_samples.c tools/perf_server.c tools/perf_server.h \
	tools/perf_server_talk.c tools/perf_client.c tools/perf_client.h \
	tools/perf_worker.c tools/perf_work.c tools/perf_work.h tools/perf_touch.c \
	tools/perf_talk.c tools/perf_talk.h tools/perf_machine.c tools/perf_machine.h \
	tools/perf_pin.c tools/perf_open.c tools/perf_open.h tools/perf_serve.c tools/perf_remote.c \
	tools/perf_remote.h \
	tools/perf_qos.c tools/perf_qos.h tools/perf_qos_demand.c tools/perf_qos_run.c \
	tools/perf_qos_show.c tools/perf_qos_client.c \
	tools/ping.c tools/ping.h tools/ping_target.c tools/ping_machine.c tools/ping_tcp.c \
	tools/ping_ask.c tools/ping_client.c tools/ping_server.c tools/ping_cause.c tools/ping_way.c \
	tools/ping_show.c tools/ping_matrix.c tools/ping_table.c tools/ping_page.c tools/html.c tools/html.h
tools_shunt_CPPFLAGS = $(AM_CPPFLAGS) -DSHUNT_PKGLIBDIR='"$(pkglibdir)"'
tools_shunt_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tools_shunt_LDADD = libshuntcore.a $(JANSSON_LIBS) -lm

# shunt top and shunt monitor: apart, so that the command loads no library for them.
viewdir = $(pkglibdir)
view_PROGRAMS = tools/shunt-view
tools_shunt_view_SOURCES = \
	tools/view.c tools/html.c tools/html.h tools/shunt.h tools/output.c tools/output.h \
	tools/door.c tools/door.h tools/door_users.c tools/guard.c tools/guard.h tools/budget.c tools/budget.h tools/enter.c tools/absence.c \
	tools/proc.c tools/proc.h tools/seconds.c tools/ask.c tools/ask.h \
	tools/stat.h tools/stat_fetch.c tools/stat_rate.c \
	tools/metrics.c tools/metrics.h tools/metrics_row.c tools/metrics_table.c tools/metrics_text.c \
	tools/top.c tools/top.h tools/top_model.c tools/top_columns.c tools/top_line.c tools/top_keys.c \
	tools/top_text.c tools/top_screen.c tools/top_sampler.c
tools_shunt_view_CPPFLAGS = $(tools_shunt_CPPFLAGS)
tools_shunt_view_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(MICROHTTPD_CFLAGS) $(NCURSES_CFLAGS)
tools_shunt_view_LDADD = libshuntcore.a $(JANSSON_LIBS) $(MICROHTTPD_LIBS) $(NCURSES_LIBS) -lm
if HAVE_MICROHTTPD
tools_shunt_view_SOURCES += \
	tools/monitor.c tools/monitor.h tools/monitor_gate.c tools/monitor_html.c tools/monitor_http.c \
	tools/monitor_log.c tools/monitor_look.c tools/monitor_matrix.c tools/monitor_options.c \
	tools/monitor_page.c tools/monitor_rows.c tools/monitor_user.c
else
tools_shunt_view_SOURCES += tools/monitor_lacks.c
endif
if HAVE_NCURSES
tools_shunt_view_CPPFLAGS += -DSHUNT_NCURSES
endif
EXTRA_DIST += \
	.ci/run tools/quickstart tools/check tools/package tools/cross tools/matrix tools/release tools/newcomer tools/rooms tools/rooms.exceptions tools/states tools/locks tools/build.sh tools/format.py .clang-format tools/cppcheck.cfg tools/cppcheck.supp
