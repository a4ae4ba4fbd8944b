# SPDX-License-Identifier: MIT
# The shunt command and the scripts around the tree.
bin_PROGRAMS += tools/shunt
tools_shunt_SOURCES = \
	tools/shunt.c tools/shunt.h tools/common/output.c tools/common/output.h \
	tools/common/library.c tools/common/program.c tools/common/program_go.c tools/ask/door.c tools/ask/door.h tools/ask/door_users.c tools/ask/guard.c tools/ask/guard.h tools/ask/budget.c tools/ask/budget.h tools/ask/enter.c tools/ask/absence.c tools/common/seconds.c \
	tools/variables.c \
	tools/ask/ask.c tools/ask/ask.h \
	tools/common/proc.c tools/common/proc.h tools/doctor/findings.c tools/doctor/findings.h \
	tools/doctor/devices.c tools/doctor/devices.h tools/doctor/devices_read.c tools/doctor/devices_verbs.c tools/doctor/devices_judge.c tools/doctor/probe.c tools/doctor/probe.h tools/doctor/probe_inside.h tools/doctor/probe_trial.c \
	tools/doctor/doctor.c tools/doctor/doctor.h tools/doctor/doctor_run.c tools/doctor/doctor_machine.c tools/doctor/doctor_kernel.c \
	tools/doctor/doctor_devices.c tools/doctor/doctor_settings.c tools/doctor/doctor_program.c tools/doctor/doctor_process.c \
	tools/plan/plan.c tools/plan/plan.h tools/plan/footprint.c tools/plan/footprint.h tools/doctor/doctor_ward.c tools/doctor/doctor_streams.c tools/doctor/doctor_peer.c tools/common/sockets.c tools/common/sockets.h \
	tools/common/advice.c tools/common/advice.h \
	tools/report/report.c tools/report/report.h tools/report/report_files.c tools/report/archive.c tools/report/archive.h \
	tools/report/anonymous.c tools/report/anonymous.h \
	tools/service/service.c tools/service/unit_file.c tools/service/unit_file.h tools/service/drop_in.c tools/service/drop_in.h \
	tools/service/cluster.c tools/service/cluster.h \
	tools/run.c tools/adm/adm.c tools/adm/adm_hosts.c tools/adm/adm_who.c tools/adm/adm_who.h tools/common/remote.c tools/common/remote.h \
	tools/config.c tools/complete.c \
	tools/trace/log.c \
	tools/stat/stat.c tools/stat/stat.h tools/stat/stat_fetch.c tools/stat/stat_rate.c tools/stat/stat_show.c tools/stat/stat_brief.c tools/stat/stat_tcp.c \
	tools/dump/dump.c tools/dump/dump.h tools/dump/filter.c tools/dump/flow.c tools/dump/frame.c tools/dump/frame.h tools/dump/listener.c tools/dump/pcapng.c tools/dump/pcapng.h \
	tools/trace/trace.c tools/trace/trace.h tools/trace/trace_ask.c tools/trace/trace_perfetto.c tools/trace/trace_show.c \
	tools/metrics/metrics.c tools/metrics/metrics.h tools/metrics/metrics_row.c tools/metrics/metrics_table.c tools/metrics/metrics_text.c \
	tools/ask/view_exec.c \
	tools/bench/bench.h tools/bench/bench_child.c tools/bench/bench_said.c tools/bench/bench_scratch.c \
	tools/bench/bench_share.c tools/bench/bench_figure.c \
	tools/compare/compare.c tools/compare/compare.h tools/compare/compare_work.c tools/compare/compare_measure.c \
	tools/compare/compare_report.c tools/compare/compare_html.c tools/page/page.c tools/page/page.h tools/page/page_file.c tools/page/chart.c tools/page/chart.h tools/page/mesh.c \
	tools/advise/advise.c tools/advise/advise.h tools/advise/advise_metric.c tools/advise/advise_verdict.c tools/advise/advise_tree.c \
	tools/advise/advise_server.c tools/advise/advise_run.c tools/advise/advise_pairs.c tools/advise/advise_cause.c tools/advise/advise_table.h \
	tools/advise/advise_try.c tools/advise/advise_show.c tools/advise/advise_json.c tools/advise/advise_html.c tools/advise/advise_watch.c \
	tools/perf/perf.c tools/perf/perf.h tools/perf/perf_options.c tools/perf/perf_options.h tools/perf/perf_model.c tools/perf/perf_transport.c tools/perf/perf_measure.c \
	tools/perf/end/perf_cluster.c tools/perf/perf_result.c tools/perf/perf_table.c tools/perf/perf_files.c \
	tools/perf/perf_plot.c tools/perf/perf_html.c \
	tools/perf/end/perf_end.c tools/perf/end/perf_end.h tools/perf/end/perf_flow.c tools/perf/end/perf_pattern.c \
	tools/perf/perf_samples.c tools/perf/end/perf_server.c tools/perf/end/perf_server.h \
	tools/perf/end/perf_server_talk.c tools/perf/end/perf_client.c tools/perf/end/perf_client.h \
	tools/perf/end/perf_worker.c tools/perf/end/perf_work.c tools/perf/end/perf_work.h tools/perf/end/perf_touch.c \
	tools/perf/end/perf_talk.c tools/perf/end/perf_talk.h tools/common/host.c tools/common/host_cost.c tools/common/host.h \
	tools/perf/end/perf_pin.c tools/perf/end/perf_open.c tools/perf/end/perf_open.h tools/perf/end/perf_serve.c tools/perf/end/perf_remote.c \
	tools/perf/end/perf_remote.h \
	tools/perf/qos/perf_qos.c tools/perf/qos/perf_qos.h tools/perf/qos/perf_qos_demand.c tools/perf/qos/perf_qos_run.c \
	tools/perf/qos/perf_qos_show.c tools/perf/qos/perf_qos_client.c \
	tools/ping/ping.c tools/ping/ping.h tools/ping/ping_target.c tools/ping/ping_machine.c tools/ping/ping_tcp.c \
	tools/ping/ping_ask.c tools/ping/ping_client.c tools/ping/ping_server.c tools/ping/ping_cause.c tools/ping/ping_way.c \
	tools/ping/ping_show.c tools/ping/ping_matrix.c tools/ping/ping_table.c tools/ping/ping_page.c
tools_shunt_CPPFLAGS = $(AM_CPPFLAGS) -DSHUNT_PKGLIBDIR='"$(pkglibdir)"'
tools_shunt_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tools_shunt_LDADD = libshuntcore.a $(JANSSON_LIBS) -lm

# shunt top and shunt monitor: apart, so that the command loads no library for them.
viewdir = $(pkglibdir)
view_PROGRAMS = tools/shunt-view
tools_shunt_view_SOURCES = \
	tools/ask/view.c tools/page/page.c tools/page/page.h tools/page/mesh.c tools/shunt.h tools/common/output.c tools/common/output.h \
	tools/ask/door.c tools/ask/door.h tools/ask/door_users.c tools/ask/guard.c tools/ask/guard.h tools/ask/budget.c tools/ask/budget.h tools/ask/enter.c tools/ask/absence.c \
	tools/common/proc.c tools/common/proc.h tools/common/seconds.c tools/ask/ask.c tools/ask/ask.h \
	tools/stat/stat.h tools/stat/stat_fetch.c tools/stat/stat_rate.c \
	tools/metrics/metrics.c tools/metrics/metrics.h tools/metrics/metrics_row.c tools/metrics/metrics_table.c tools/metrics/metrics_text.c \
	tools/top/top.c tools/top/top.h tools/top/top_model.c tools/top/top_columns.c tools/top/top_line.c tools/top/top_keys.c \
	tools/top/top_text.c tools/top/top_screen.c tools/top/top_sampler.c
tools_shunt_view_CPPFLAGS = $(tools_shunt_CPPFLAGS)
tools_shunt_view_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(MICROHTTPD_CFLAGS) $(NCURSES_CFLAGS)
tools_shunt_view_LDADD = libshuntcore.a $(JANSSON_LIBS) $(MICROHTTPD_LIBS) $(NCURSES_LIBS) -lm
if HAVE_MICROHTTPD
tools_shunt_view_SOURCES += \
	tools/monitor/monitor.c tools/monitor/monitor.h tools/monitor/monitor_gate.c tools/monitor/monitor_hosts.c tools/monitor/monitor_http.c \
	tools/common/remote.c tools/common/remote.h \
	tools/monitor/monitor_log.c tools/monitor/monitor_look.c tools/monitor/monitor_matrix.c tools/monitor/monitor_options.c \
	tools/monitor/monitor_page.c tools/monitor/monitor_rows.c tools/monitor/monitor_user.c
else
tools_shunt_view_SOURCES += tools/monitor/monitor_lacks.c
endif
if HAVE_NCURSES
tools_shunt_view_CPPFLAGS += -DSHUNT_NCURSES
endif
EXTRA_DIST += \
	.ci/run tools/quickstart tools/check tools/package tools/cross tools/matrix tools/release tools/newcomer tools/rooms tools/rooms.exceptions tools/states tools/locks tools/build.sh tools/format.py .clang-format tools/cppcheck.cfg tools/cppcheck.supp
