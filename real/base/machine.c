#define _GNU_SOURCE
#include "real/base/machine.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "real/base/affinity.h"

/* Columns of proc(5): user, nice, system, idle, I/O wait, interrupts, soft interrupts, stolen. */
static void add_processor(struct psd_machine_time *time, const unsigned long long ticks[8])
{
	const double tick_sec = 1.0 / (double)sysconf(_SC_CLK_TCK);

	for (int i = 0; i < 8; i++) {
		const bool is_idle = i == 3 || i == 4;

		time->all_sec += (double)ticks[i] * tick_sec;
		time->busy_sec += is_idle ? 0.0 : (double)ticks[i] * tick_sec;
		time->stolen_sec += i == 7 ? (double)ticks[i] * tick_sec : 0.0;
		time->interrupt_sec += i == 5 || i == 6 ? (double)ticks[i] * tick_sec : 0.0;
	}
}

bool psd_machine_read(struct psd_machine_time *time)
{
	struct psd_machine_time sum = {.all_sec = 0.0};
	FILE *const file = fopen("/proc/stat", "re");
	unsigned n_numbers = 0, cpu;
	bool *const is_allowed = file ? psd_affinity_allowed(&n_numbers) : NULL;
	unsigned long long t[8];
	char line[512];

	if (!is_allowed) {
		if (file)
			fclose(file);
		return false;
	}
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0], &t[1], &t[2], &t[3],
			   &t[4], &t[5], &t[6], &t[7]) == 9 &&
		    cpu < n_numbers && is_allowed[cpu])
			add_processor(&sum, t);
	fclose(file);
	free(is_allowed);
	*time = sum;
	return sum.all_sec > 0.0;
}

static double read_sec(clockid_t clock)
{
	struct timespec time = {0, 0};

	(void)clock_gettime(clock, &time); /* every Linux has it */
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double psd_machine_own_sec(void)
{
	return read_sec(CLOCK_THREAD_CPUTIME_ID);
}

double psd_machine_process_sec(void)
{
	return read_sec(CLOCK_PROCESS_CPUTIME_ID);
}

void psd_machine_model(char model[PSD_MACHINE_MODEL_MAX])
{
	FILE *const file = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(model, PSD_MACHINE_MODEL_MAX, "unknown processor");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "model name : %127[^\n]", model) == 1)
			break;
	if (file)
		fclose(file);
}

uint64_t psd_machine_available_bytes(void)
{
	FILE *const file = fopen("/proc/meminfo", "re");
	uint64_t available_bytes = UINT64_MAX;
	unsigned long long kib;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			available_bytes = kib * 1024;
	if (file)
		fclose(file);
	return available_bytes;
}

bool psd_machine_kill_is_limit(int signal_number)
{
	struct rlimit limit;

	return signal_number != SIGKILL && !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

const char *psd_machine_kill_hint(int signal_number)
{
	if (signal_number == SIGKILL)
		return ", as the kernel does when memory runs out: a smaller batch_per_worker needs less";
	if (psd_machine_kill_is_limit(signal_number))
		return ", as happens when `ulimit -v` leaves a library too little memory";
	return "";
}
