/* SPDX-License-Identifier: MIT */
#include "core/admin/dump.h"
#include "core/admin/local_sockets.h"
#include "core/admin/stats.h"
#include "core/fd/own_fds.h"
#include "core/fork/fork_door.h"
#include "core/peer/fork_owner.h"
#include "core/peer/kin_door.h"
#include <errno.h>
#include "core/service.h"

int shunt_local_sockets_open(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;

	service->statistics_source.ready = shunt_stats_serve;
	service->rights_source.ready = shunt_fork_owner_serve;
	service->statistics_fd = shunt_stats_listen(engine);
	shunt_admin_open(service);
	shunt_dump_open(service);
	service->kin_fd = -1;
	service->rights_fd = shunt_fork_door_open(&engine->forks, &engine->porter);
	if (service->rights_fd < 0)
		return service->rights_fd;
	if (shunt_loop_add(&engine->loop, service->rights_fd, &service->rights_source, EPOLLIN))
		return -ENOMEM;
	if (service->statistics_fd >= 0)
		shunt_loop_add(&engine->loop, service->statistics_fd, &service->statistics_source, EPOLLIN);
	return 0;
}

void shunt_local_sockets_close(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;

	shunt_own_fds_close(&engine->fds, service->statistics_fd);
	shunt_admin_close(service);
	shunt_dump_close(service);
	shunt_own_fds_close(&engine->fds, service->rights_fd);
	shunt_kin_door_close(service);
	service->statistics_fd = service->admin.fd = service->rights_fd = -1;
}
