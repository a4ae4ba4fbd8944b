# SPDX-License-Identifier: MIT
# Examples with the path at which the library is installed.
generated_examples = contrib/bpftrace/shunt.bt
examplesdir = $(docdir)/examples
nobase_nodist_examples_DATA = $(generated_examples)
nobase_dist_examples_DATA = contrib/grafana/shunt.json
EXTRA_DIST += $(generated_examples:=.in)
EXTRA_DIST += contrib/services/redis.md contrib/services/nginx.md contrib/services/haproxy.md contrib/services/postgresql.md contrib/services/envoy.md
EXTRA_DIST += contrib/kubernetes/README.md contrib/kubernetes/Containerfile contrib/kubernetes/policy.yaml contrib/kubernetes/example.yaml contrib/kubernetes/monitor.yaml
CLEANFILES += $(generated_examples)

$(generated_examples): %: %.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(SED) 's|@PKGLIBDIR[@]|$(pkglibdir)|g' $(srcdir)/$@.in > $@.new && mv $@.new $@

# Where systemd looks for them, below /usr and /usr/local. Nobody starts them but the administrator.
unitdir = $(prefix)/lib/systemd/system
dist_unit_DATA = contrib/systemd/shunt-monitor.service contrib/systemd/run-shunt.mount
tmpfilesdir = $(prefix)/lib/tmpfiles.d
dist_tmpfiles_DATA = contrib/tmpfiles.d/shunt.conf

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
