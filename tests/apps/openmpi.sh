#!/bin/bash
# SPDX-License-Identifier: MIT
# Open MPI over TCP: four processes that reduce, pass in a ring, and gather. There is no server: all of them, or none.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires mpirun mpicc
version=$(mpirun --version | awk 'NR == 1 { print $NF }')
configurations=${CONFIGURATIONS:-bare both}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat > "$work/job.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 300000

static int mine[COUNT], all[4 * COUNT];

static long reduce(int rank)
{
	long sum = 0;

	for (int round = 0; round < 30; round++) {
		for (int i = 0; i < COUNT; i++)
			mine[i] = rank * 3 + i + round;
		MPI_Allreduce(mine, all, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < COUNT; i++)
			sum = sum * 31 + all[i];
	}
	return sum;
}

static long ring(int rank, int size)
{
	long sum = 0;

	for (int round = 0; round < 2000; round++) {
		int out = rank * 10000 + round, in = -1;

		MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size, 0,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		sum = sum * 31 + in;
	}
	return sum;
}

static long gather(void)
{
	long sum = 0;

	MPI_Gather(mine, COUNT, MPI_INT, all, COUNT, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; i < 4 * COUNT; i++)
		sum = sum * 31 + all[i];
	return sum;
}

int main(int argc, char **argv)
{
	long sums[3];
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	sums[0] = !strcmp(argv[1], "reduce") ? reduce(rank) : 0;
	sums[1] = !strcmp(argv[1], "ring") ? ring(rank, size) : 0;
	sums[2] = !strcmp(argv[1], "gather") ? gather() : 0;
	if (!rank)
		printf("%d: %ld %ld %ld\n", size, sums[0], sums[1], sums[2]);
	return MPI_Finalize();
}
END

job() { # WHAT
	timeout $patience $client mpirun --oversubscribe -n 4 --mca plm isolated --mca pml ob1 --mca btl tcp,self \
		--mca btl_tcp_if_include lo "$work/job" "$1"
}

drive() {
	same "reductions of a large array" job reduce
	same "a ring of small messages" job ring
	same "a gathered array" job gather
}

mpicc -O1 -o "$work/job" "$work/job.c" || exit
chmod 755 "$work/job"
matrix drive
