# SPDX-License-Identifier: MIT
# --enable-installed-tests: what of the tests needs no source tree, where gnome-desktop-testing-runner(1) looks for tests.
check_PROGRAMS += tests/api
tests_api_SOURCES = tests/api.c
tests_api_CFLAGS = $(plain_cflags)
tests_api_LDFLAGS =
EXTRA_DIST += tests/installed/shunt-tests tests/installed/shunt.test.in

installed_programs = tests/api tests/calls/cases/cases tests/calls/transfer/transfer
installed_scripts = tests/alone.sh tests/calls/diff.sh tests/calls/transfer.sh
installed_data = tests/scratch.sh tests/calls/lib.sh tests/calls/where.sh tests/calls/known tests/calls/known.busy \
	tests/calls/known.flip tests/calls/known.verbs
installed_dir = $(DESTDIR)$(libexecdir)/installed-tests/shunt
installed_meta = $(DESTDIR)$(datadir)/installed-tests/shunt

if INSTALLED_TESTS
install_more = install-installed-tests
uninstall_more = uninstall-installed-tests
endif
install-exec-local: $(install_more)
install-installed-tests: $(installed_programs)
	$(MKDIR_P) '$(installed_dir)/calls/cases' '$(installed_dir)/calls/transfer' '$(installed_meta)'
	$(INSTALL_SCRIPT) $(srcdir)/tests/installed/shunt-tests '$(installed_dir)/shunt-tests'
	for file in $(installed_programs); do $(INSTALL_PROGRAM) $$file "$(installed_dir)/$${file#tests/}" || exit; done
	for file in $(installed_scripts); do $(INSTALL_SCRIPT) $(srcdir)/$$file "$(installed_dir)/$${file#tests/}" || exit; done
	for file in $(installed_data); do $(INSTALL_DATA) $(srcdir)/$$file "$(installed_dir)/$${file#tests/}" || exit; done
	$(SED) 's|@LIBEXECDIR[@]|$(libexecdir)|' $(srcdir)/tests/installed/shunt.test.in >'$(installed_meta)/shunt.test'
uninstall-installed-tests:
	rm -rf '$(installed_dir)' '$(installed_meta)'
	-rmdir '$(DESTDIR)$(libexecdir)/installed-tests' '$(DESTDIR)$(datadir)/installed-tests' 2>/dev/null
