/* SPDX-License-Identifier: MIT */
/*
 * pthread_cancel(). It is libc's, but a thread that finds its bytes on the link makes no call of libc's where that
 * would act. Until the first one no call pays for it.
 */
#include "preload/process.h"

int pthread_cancel(pthread_t thread)
{
	int result;

	__atomic_store_n(&shunt_process.cancels, true, __ATOMIC_SEQ_CST);	/* before, so that its next call looks */
	result = real(pthread_cancel)(thread);
	shunt_cancel_called(shunt_process.engine ? shunt_engine_group(shunt_process.engine) : NULL,
			    thread);
	return result;
}
