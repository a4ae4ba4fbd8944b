# SPDX-License-Identifier: MIT
# Examples with the path at which the library is installed: settings of services, and probes for bpftrace.
service_examples = \
	contrib/bpftrace/shunt.bt \
	contrib/postgresql/environment \
	contrib/systemd/apache2.service.d/shunt.conf \
	contrib/systemd/haproxy.service.d/shunt.conf \
	contrib/systemd/mariadb.service.d/shunt.conf \
	contrib/systemd/memcached.service.d/shunt.conf \
	contrib/systemd/mosquitto.service.d/shunt.conf \
	contrib/systemd/nginx.service.d/shunt.conf \
	contrib/systemd/redis-server.service.d/shunt.conf \
	contrib/systemd/squid.service.d/shunt.conf
examplesdir = $(docdir)/examples
nobase_nodist_examples_DATA = $(service_examples)
nobase_dist_examples_DATA = contrib/tmpfiles.d/shunt.conf contrib/grafana/shunt.json contrib/systemd/shunt-monitor.service \
	contrib/systemd/run-shunt.mount
EXTRA_DIST += $(service_examples:=.in)
CLEANFILES += $(service_examples)

$(service_examples): %: %.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(SED) 's|@PKGLIBDIR[@]|$(pkglibdir)|g' $(srcdir)/$@.in > $@.new && mv $@.new $@

# Completion, where each shell looks for it.
bashcompdir = $(datadir)/bash-completion/completions
zshcompdir = $(datadir)/zsh/site-functions
fishcompdir = $(datadir)/fish/vendor_completions.d
dist_zshcomp_DATA = contrib/completion/_shunt
dist_fishcomp_DATA = contrib/completion/shunt.fish
EXTRA_DIST += contrib/completion/shunt.bash
install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(bashcompdir)'
	$(INSTALL_DATA) $(srcdir)/contrib/completion/shunt.bash '$(DESTDIR)$(bashcompdir)/shunt'
uninstall-local: $(uninstall_more)
	rm -f '$(DESTDIR)$(bashcompdir)/shunt'
