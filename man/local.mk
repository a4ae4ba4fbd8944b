# SPDX-License-Identifier: MIT
# The manual. The list of variables in it comes from the program itself, so it cannot be out of date.
nodist_man_MANS += man/shunt.1 man/shunt.conf.5 man/shunt-qos.5 man/libshunt.7
EXTRA_DIST += man/shunt.1.in man/shunt.conf.5.in man/shunt-qos.5.in man/libshunt.7.in
CLEANFILES += man/shunt.1 man/shunt.conf.5 man/shunt-qos.5 man/libshunt.7

man/shunt.1: man/shunt.1.in tools/shunt$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) man && \
	$(SHUNT_FOR_BUILD) config --man >$@.vars && \
	$(SED) -e 's|@VERSION[@]|$(PACKAGE_VERSION)|; s|@PKGLIBDIR[@]|$(pkglibdir)|' \
		-e '/^@VARIABLES[@]$$/{' -e 'r $@.vars' -e 'd' -e '}' $(srcdir)/man/shunt.1.in >$@.new && \
	rm -f $@.vars && mv $@.new $@

man/shunt-qos.5: man/shunt-qos.5.in
	$(AM_V_GEN)$(MKDIR_P) man && \
	$(SED) -e 's|@VERSION[@]|$(PACKAGE_VERSION)|' $(srcdir)/man/shunt-qos.5.in >$@.new && mv $@.new $@

man/shunt.conf.5: man/shunt.conf.5.in
	$(AM_V_GEN)$(MKDIR_P) man && \
	$(SED) -e 's|@VERSION[@]|$(PACKAGE_VERSION)|' $(srcdir)/man/shunt.conf.5.in >$@.new && mv $@.new $@

man/libshunt.7: man/libshunt.7.in Makefile
	$(AM_V_GEN)$(MKDIR_P) man && \
	$(SED) -e 's|@VERSION[@]|$(PACKAGE_VERSION)|; s|@PKGLIBDIR[@]|$(pkglibdir)|' $(srcdir)/man/libshunt.7.in >$@.new && mv $@.new $@
