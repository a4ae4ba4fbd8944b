/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tools/doctor/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/device/selftest.h"
#include "tools/common/output.h"
#include "tools/doctor/probe_inside.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

enum { LIMIT_S = 10, RETRIES = 6, TIMEOUT = 14, RNR_TIMER = 12 };

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* --- the queue pair --- */

static unsigned int access_of(const struct probe *probe)
{
	return ACCESS | (probe->told.atomic_cap == IBV_ATOMIC_NONE ? 0 : IBV_ACCESS_REMOTE_ATOMIC);
}

static int create(struct probe *probe, int i, uint32_t inline_bytes, uint32_t depth)
{
	struct ibv_qp_init_attr init = { .send_cq = probe->cq, .recv_cq = probe->cq, .qp_type = IBV_QPT_RC,
					 .cap = { depth - 1, depth, 1, 1, inline_bytes } };

	errno = EINVAL;
	probe->qp[i] = probe->device.verbs.create_qp(probe->pd, &init);
	if (!probe->qp[i])
		return -errno;
	probe->inline_bytes = init.cap.max_inline_data < inline_bytes ? init.cap.max_inline_data :
									inline_bytes;
	probe->depth = depth - 1;
	return 0;
}

/* As much as it gives of what the library would ask for (core/device/selftest.c). */
static int create_some(struct probe *probe)
{
	uint32_t bytes = PROBE_INLINE, depth = PROBE_DEPTH;
	int result;

	while ((result = create(probe, 0, bytes, depth)) == -EINVAL) {
		if (!bytes && depth / 2 < PROBE_LEAST)
			break;
		depth /= bytes ? 1 : 2;
		bytes = bytes ? shunt_selftest_less_inline(bytes) : PROBE_INLINE;
	}
	return result;
}

int shunt_probe_connect(struct probe *probe)
{
	const struct verbs_port *port = &probe->device.port;
	const struct shunt_path nowhere = { 0 };
	uint32_t inline_bytes = probe->inline_bytes;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = port->number, .qp_access_flags = access_of(probe) };
	struct ibv_wc wc;
	int result;

	if (probe->qp[0])
		probe->device.verbs.destroy_qp(probe->qp[0]);
	while (ibv_poll_cq(probe->cq, 1, &wc) > 0)	/* not each provider takes those of a destroyed queue pair away */
		;
	result = create(probe, 0, inline_bytes, probe->depth + 1);
	if (result || probe->device.verbs.modify_qp(probe->qp[0], &attr, SHUNT_TO_INIT))
		return result ? result : -EIO;
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR, .min_rnr_timer = RNR_TIMER, .dest_qp_num = probe->qp[0]->qp_num,
				      .path_mtu = port->mtu, .max_dest_rd_atomic = 1,
				      .ah_attr = verbs_path_address(port, &nowhere, &port->gid, port->lid) };
	if (probe->device.verbs.modify_qp(probe->qp[0], &attr, SHUNT_TO_RTR))
		return -ENETUNREACH;
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS, .timeout = TIMEOUT, .retry_cnt = RETRIES, .rnr_retry = 7,
				      .max_rd_atomic = 1 };
	return probe->device.verbs.modify_qp(probe->qp[0], &attr, SHUNT_TO_RTS) ? -EIO : 0;
}

/* --- memory --- */

/* KiB that are pinned or locked for this process. */
static json_int_t pinned_kib(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	json_int_t sum = 0, value;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmPin: %lld", &value) == 1 ||
		    sscanf(line, "VmLck: %lld", &value) == 1)
			sum += value;
	if (status)
		fclose(status);
	return sum;
}

static json_t *memory_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return json_null();
	return json_integer((json_int_t)(limit.rlim_cur / 1024));
}

/* --- the probe --- */

static json_t *failed(const struct probe *probe, const char *what, int result)
{
	const char *more = result == -ENOMEM ? ": memory cannot be locked? (ulimit -l)" :
			   result == -EAGAIN ? ": the cgroup's rdma.max?" :
			   result == -EOPNOTSUPP ? ": it has no reliable connections (RC)" : "";

	return json_pack("{s:s, s:o}", "device", probe->device.context->device->name, "error",
			 json_sprintf("%s: %s%s", what, strerror(-result), more));
}

static json_t *told(const struct probe *probe)
{
	const struct ibv_device_attr *attr = &probe->told;

	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s}", "max_qp", attr->max_qp,
			 "max_qp_wr", attr->max_qp_wr, "max_sge", attr->max_sge, "max_cqe",
			 attr->max_cqe, "max_qp_rd_atom", attr->max_qp_rd_atom, "ports",
			 (int)attr->phys_port_cnt, "vectors",
			 probe->device.context->num_comp_vectors, "atomics",
			 attr->atomic_cap == IBV_ATOMIC_GLOB ? "global" :
			 attr->atomic_cap == IBV_ATOMIC_HCA  ? "within the device" :
							       "none");
}

static json_t *versions(const struct probe *probe)
{
	struct utsname kernel = { .release = "" };
	struct link_map *library = NULL;

	uname(&kernel);
	dlinfo(probe->device.library, RTLD_DI_LINKMAP, &library);
	return json_pack("{s:s, s:s, s:s, s:s}", "kernel", kernel.release, "firmware",
			 probe->told.fw_ver, "library", library ? library->l_name : "", "fork",
			 probe->device.marks_pages ? "ibv_fork_init() is needed" : "safe");
}

/* Takes queues and memory of a first link. *why: the one that was refused, if the result is not 0. us: of each. */
static int take(struct probe *probe, const char **why, uint64_t us[3])
{
	const struct shunt_verbs *verbs = &probe->device.verbs;
	int result;

	us[0] = now_us();
	*why = "a completion queue";
	errno = ENOMEM;
	probe->pd = verbs->alloc_pd(probe->device.context);
	probe->channel = probe->pd ? verbs->create_comp_channel(probe->device.context) : NULL;
	probe->cq = probe->channel ? verbs->create_cq(probe->device.context, PROBE_ENTRIES, NULL,
						      probe->channel, 0) :
				     NULL;
	if (!probe->cq)
		return -errno;
	us[0] = now_us() - us[0];
	us[1] = now_us();
	*why = "a queue pair";
	result = create_some(probe);
	for (int i = 1; i < PROBE_LANES && !result; i++)
		result = create(probe, i, probe->inline_bytes, probe->depth + 1);
	if (result)
		return result;
	us[1] = (now_us() - us[1]) / PROBE_LANES;
	us[2] = now_us();
	*why = "a memory region of 5 MiB";
	probe->memory = mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	errno = ENOMEM;
	if (probe->memory != MAP_FAILED)
		probe->mr = verbs->register_mr(probe->pd, probe->memory, PROBE_BYTES,
					       (int)access_of(probe));
	us[2] = now_us() - us[2];
	return probe->mr ? 0 : -errno;
}

/* `in_line`: bytes that are left after the trials. */
static void judge(json_t *result, const json_t *trials, uint32_t in_line)
{
	const json_t *trial;
	bool usable = true;
	size_t i;

	json_array_foreach(trials, i, trial)
		usable &= json_is_true(json_object_get(trial, "ok")) ||
			  !json_is_true(json_object_get(trial, "vital"));
	json_object_set_new(result, "usable", json_boolean(usable));
	json_object_set_new(
		result, "verdict",
		json_string(
			!usable ?
				"links would fail" :
			in_line ?
				"Shunt can use it" :
				"Shunt can use it; no bytes are inline, so it fetches each message"));
}

static json_t *run(struct probe *probe, const char *name)
{
	json_int_t before = pinned_kib();
	uint64_t open_us = now_us(), us[3] = { 0 };
	json_t *result, *tried;
	const char *why;
	int err = verbs_open(&probe->device, name, NULL);

	if (err)
		return json_pack("{s:s}", "error", probe->device.error);
	open_us = now_us() - open_us;
	if (probe->device.verbs.query_device(probe->device.context, &probe->told))
		return json_pack("{s:s}", "error", "the device does not tell of itself");
	if (probe->device.context->device->transport_type == IBV_TRANSPORT_IWARP)
		return json_pack(
			"{s:s, s:s, s:b, s:s}", "device", probe->device.context->device->name,
			"error",
			"an iWARP device sends nothing to itself: `shunt ping` tries it between two hosts",
			"usable", 1, "verdict", "not tried");
	err = take(probe, &why, us);
	if (err)
		return failed(probe, why, err);
	result = json_pack("{s:s, s:o, s:o}", "device", probe->device.context->device->name,
			   "versions", versions(probe), "told", told(probe));
	json_object_set_new(result, "memory",
			    json_pack("{s:I, s:o}", "first_link_kib", pinned_kib() - before,
				      "limit_kib", memory_limit()));
	tried = shunt_probe_trials(probe);
	json_object_set_new(result, "got",
			    json_pack("{s:i, s:i, s:i, s:i}", "inline", (int)probe->inline_bytes,
				      "send_queue", (int)probe->depth, "receive_queue",
				      (int)probe->depth + 1, "completion_queue", probe->cq->cqe));
	judge(result, json_object_get(tried, "trials"), probe->inline_bytes);
	json_object_set_new(result, "numbers",
			    json_pack("{s:I, s:I, s:I, s:I, s:O}", "open_us", (json_int_t)open_us,
				      "completion_queue_us", (json_int_t)us[0], "queue_pair_us",
				      (json_int_t)us[1], "region_us", (json_int_t)us[2],
				      "round_trip_ns", json_object_get(tried, "round_trip_ns")));
	json_object_set(result, "trials", json_object_get(tried, "trials"));
	json_decref(tried);
	return result;
}

/* Nothing is freed: the process ends. */
static _Noreturn void child(const char *name, int to)
{
	static struct probe probe;
	json_t *result;

	signal(SIGALRM, SIG_DFL);
	alarm(LIMIT_S);
	result = run(&probe, name);
	_exit(json_dumpfd(result, to, 0) ? 1 : 0);
}

static json_t *ended_by(int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return json_pack("{s:s}", "error", "the device did not answer within 10 s");
	if (WIFSIGNALED(status))
		return json_pack("{s:o}", "error",
				 json_sprintf("the device's library ended the process: %s",
					      strsignal(WTERMSIG(status))));
	return json_pack("{s:s}", "error", "the probe said nothing");
}

json_t *shunt_probe(const char *name)
{
	json_t *result = NULL;
	int ends[2], status;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return NULL;
	fflush(NULL);
	pid = fork();
	if (!pid)
		child(name, ends[1]);
	close(ends[1]);
	if (pid > 0) {
		result = json_loadfd(ends[0], 0, NULL);
		if (waitpid(pid, &status, 0) == pid && !result)
			result = ended_by(status);
	}
	close(ends[0]);
	return result;
}

/* --- for people --- */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static long long number_of(const json_t *object, const char *key)
{
	return (long long)json_integer_value(json_object_get(object, key));
}

int shunt_probe_show(const json_t *probe)
{
	const json_t *got = json_object_get(probe, "got"), *told = json_object_get(probe, "told"),
		     *memory = json_object_get(probe, "memory"),
		     *numbers = json_object_get(probe, "numbers"),
		     *versions = json_object_get(probe, "versions"),
		     *limit = json_object_get(memory, "limit_kib"), *trial;
	size_t i;

	if (json_object_get(probe, "error")) {
		printf("%s%s%s\n", text_of(probe, "device"), *text_of(probe, "device") ? ": " : "",
		       text_of(probe, "error"));
		return json_is_true(json_object_get(probe, "usable"));
	}
	printf("%s: %s\n", text_of(probe, "device"), text_of(probe, "verdict"));
	printf("  versions   firmware %s, kernel %s, %s; fork: %s\n", text_of(versions, "firmware"),
	       text_of(versions, "kernel"), text_of(versions, "library"),
	       text_of(versions, "fork"));
	printf("  says       %lld queue pairs of %lld, %lld parts, completion queues of %lld, %lld vectors, atomics: %s\n",
	       number_of(told, "max_qp"), number_of(told, "max_qp_wr"), number_of(told, "max_sge"),
	       number_of(told, "max_cqe"), number_of(told, "vectors"), text_of(told, "atomics"));
	printf("  gives      %lld bytes inline, queues of %lld and %lld, a completion queue of %lld\n",
	       number_of(got, "inline"), number_of(got, "send_queue"),
	       number_of(got, "receive_queue"), number_of(got, "completion_queue"));
	printf("  memory     a first link pins %lld KiB; the limit is ",
	       number_of(memory, "first_link_kib"));
	if (json_is_integer(limit))
		printf("%lld KiB (ulimit -l)\n", number_of(memory, "limit_kib"));
	else
		printf("none\n");
	json_array_foreach(json_object_get(probe, "trials"), i, trial)
		printf("  %-10s %s: %s\n", i ? "" : "itself", text_of(trial, "name"),
		       text_of(trial, "result"));
	printf("  takes      %lld us to open, %lld us a queue pair, %lld us for 5 MiB, %.1f us for 8 bytes to itself\n",
	       number_of(numbers, "open_us"), number_of(numbers, "queue_pair_us"),
	       number_of(numbers, "region_us"), (double)number_of(numbers, "round_trip_ns") / 1000);
	return json_is_true(json_object_get(probe, "usable"));
}
