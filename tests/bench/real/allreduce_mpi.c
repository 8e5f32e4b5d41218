/* Open MPI's MPI_Allreduce of BYTES of floats, REPEATS times: one line for each on every rank, "SECONDS CPU_SECONDS".
 * CPU is the whole process's. Exits 1 if a sum is wrong. For tests/bench/real/bench_allreduce.sh. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double now_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double cpu_sec(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
	const int n = argc == 4 ? atoi(argv[1]) / (int)sizeof(float) : 0, repeats = argc == 4 ? atoi(argv[2]) : 0;
	float *const values = malloc((size_t)(n > 0 ? n : 1) * sizeof(*values));
	FILE *out;
	int rank, size;
	char path[512];

	if (n < 1 || repeats < 1 || !values || MPI_Init(NULL, NULL) != MPI_SUCCESS)
		return 1;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	snprintf(path, sizeof(path), "%s.%d", argv[3], rank);
	out = fopen(path, "we");
	for (int i = 0; out && i < repeats; i++) {
		double start_sec, start_cpu_sec;

		for (int e = 0; e < n; e++)
			values[e] = (float)(rank + 1);
		MPI_Barrier(MPI_COMM_WORLD);
		start_cpu_sec = cpu_sec();
		start_sec = now_sec();
		MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		fprintf(out, "%.6f %.6f\n", now_sec() - start_sec, cpu_sec() - start_cpu_sec);
		for (int e = 0; e < n; e++)
			if (values[e] != (float)(size * (size + 1) / 2))
				MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Finalize();
	free(values);
	return !out || fclose(out);
}
