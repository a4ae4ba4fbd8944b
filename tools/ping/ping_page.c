/* SPDX-License-Identifier: MIT */
/* The mesh as a page of its own. */
#include "tools/page/page.h"
#include "tools/ping/ping.h"

int ping_page(const struct ping_mesh *mesh, const char *path)
{
	json_t *root = ping_mesh_json(mesh);
	struct shunt_page page;
	int rc = shunt_page_start(&page, "shunt ping", path, "shunt ping --matrix");

	if (!rc) {
		shunt_page_mesh(&page, root, mesh->count);
		rc = shunt_page_finish(&page);
	}
	json_decref(root);
	return rc;
}
