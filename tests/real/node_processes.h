/* Processes in the nodes of an emulated cluster, for tests and benchmarks: started one at a time, each with a function
 * whose result is the process's exit status. */
#ifndef PSD_TESTS_NODE_PROCESSES_H
#define PSD_TESTS_NODE_PROCESSES_H

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "real/cluster/emulation.h"

enum { MOST_NODE_PROCESSES = PSD_EMULATION_MAX_NODES };

typedef int node_work_fn(void *context, unsigned node);

struct node_end {
	unsigned process, node;
	bool was_killed;    /* by a signal */
	int exit_or_signal; /* exit status, or the signal's number if was_killed */
	double cpu_sec;	    /* user and system time */
	uint64_t peak_memory_bytes;
};

static struct {
	pid_t pid; /* 0: ended */
	unsigned node;
} node_processes[MOST_NODE_PROCESSES];
static unsigned n_node_processes;

/* Returns the process's number, from 0 in the order of starts, once it is in the node or has failed to enter it. */
static inline unsigned start_in_node(struct psd_emulation *emulation, unsigned node, node_work_fn *work, void *context)
{
	struct psd_error err;
	int ends[2], result = 125;
	bool has_pipe;
	char byte;
	pid_t pid;

	fflush(NULL);
	has_pipe = pipe(ends) == 0;
	pid = has_pipe ? fork() : -1;
	if (pid == 0) {
		const bool is_inside = !psd_emulation_enter(emulation, node, &err);

		close(ends[0]);
		close(ends[1]);
		if (is_inside)
			result = work(context, node);
		else
			fprintf(stderr, "%s\n", err.text);
		fflush(NULL);
		_exit(result);
	}
	if (has_pipe) {
		close(ends[1]);
		(void)!read(ends[0], &byte, 1); /* returns when the process closes its end */
		close(ends[0]);
	}
	node_processes[n_node_processes].pid = pid;
	node_processes[n_node_processes].node = node;
	return n_node_processes++;
}

static inline double usage_sec(struct timeval time)
{
	return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* False: no process has ended. */
static inline bool take_node_end(struct node_end *end)
{
	for (unsigned p = 0; p < n_node_processes; p++) {
		struct rusage usage;
		int status;

		if (node_processes[p].pid <= 0 || wait4(node_processes[p].pid, &status, WNOHANG, &usage) <= 0)
			continue;
		node_processes[p].pid = 0;
		*end = (struct node_end){p,
					 node_processes[p].node,
					 WIFSIGNALED(status),
					 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
					 usage_sec(usage.ru_utime) + usage_sec(usage.ru_stime),
					 UINT64_C(1024) * (uint64_t)usage.ru_maxrss};
		return true;
	}
	return false;
}

/* Waits until a process ends, within_sec at most. False: no process has ended. */
static inline bool wait_in_nodes(double within_sec, struct node_end *end)
{
	const struct timespec moment = {0, 1000000};

	for (double waited_sec = 0.0; !take_node_end(end); waited_sec += 1e-3) {
		if (waited_sec >= within_sec)
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}

/* Kills the processes that still run, and waits for them. */
static inline void end_in_nodes(void)
{
	for (unsigned p = 0; p < n_node_processes; p++)
		if (node_processes[p].pid > 0)
			(void)kill(node_processes[p].pid, SIGKILL);
	for (unsigned p = 0; p < n_node_processes; p++)
		if (node_processes[p].pid > 0)
			(void)waitpid(node_processes[p].pid, NULL, 0);
	n_node_processes = 0;
}

#endif
