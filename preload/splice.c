#include "preload/rights.h"

/* Pages move between pipe and socket inside the kernel: the stream must be there too. */
ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t bytes,
	       unsigned int flags)
{
	if (unlikely(shunt_linked(&in)))
		shunt_rights_retire(in, "splice");
	if (unlikely(shunt_linked(&out)))
		shunt_rights_retire(out, "splice");
	return real(splice)(in, in_offset, out, out_offset, bytes, flags);
}
