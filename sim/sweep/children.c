/* Forks, watches and reaps child processes. Each child leads a process group, so that processes it starts end with
 * it. */
#define _GNU_SOURCE 1

#include "sim/sweep/children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/sweep/progress.h"

enum {
	NOISE_MAX = 4096, /* bytes kept of a crashing child's first words; a stack dump follows them */
	NOISE_LINES = 3,
	NAME_ROOM = 160,
};

/* Result of a child, written to its pipe by one write(): a pipe does not split writes of up to PIPE_BUF (4,096)
 * bytes. */
struct record {
	enum psd_status status;
	struct psd_outcome outcome;
	struct psd_error error;
};

struct child {
	pid_t pid; /* process of the child; 0: the slot is free */
	unsigned job;
	int result_fd;
	int noise_fd;
	size_t noise_length;
	char noise[NOISE_MAX];
};

struct pool {
	const struct psd_children *children;
	struct psd_outcome *outcomes;
	struct child *slots;
	struct pollfd *polled; /* descriptors for poll(), one for each slot */
	unsigned n_running;
	unsigned next_job;
	unsigned n_done;
	unsigned end_job; /* jobs from this one on are dropped: n_jobs, or the first failed one */
	enum psd_status status;
	struct psd_error *err;
	sigset_t outer_mask;
	struct psd_progress progress;
};

/* ---- signals: noted by the handler, delivered only while waiting ---- */

static const int noted_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_NOTED = sizeof(noted_signals) / sizeof(noted_signals[0]) };

static volatile sig_atomic_t noted_signal;

struct signal_state {
	struct sigaction actions[N_NOTED];
	sigset_t mask;
};

static void note_signal(int number)
{
	noted_signal = number;
}

static void hold_signals(struct signal_state *before)
{
	struct sigaction action = {.sa_handler = note_signal};
	sigset_t held;

	noted_signal = 0;
	sigemptyset(&held);
	sigemptyset(&action.sa_mask);
	for (unsigned i = 0; i < N_NOTED; i++) {
		sigaddset(&held, noted_signals[i]);
		sigaction(noted_signals[i], NULL, &before->actions[i]);
		if (before->actions[i].sa_handler != SIG_IGN) /* nohup and background jobs ignore signals */
			sigaction(noted_signals[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &held, &before->mask);
}

static void restore_signals(const struct signal_state *before)
{
	for (unsigned i = 0; i < N_NOTED; i++)
		sigaction(noted_signals[i], &before->actions[i], NULL);
	sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

/* ---- in the child ---- */

static void do_job(const struct psd_children *children, unsigned job, int result_fd)
{
	static struct record record;

	record.status = children->work(children->context, job, &record.outcome, &record.error);
	if (write(result_fd, &record, sizeof(record)) != (ssize_t)sizeof(record))
		_exit(1);
	_exit(0); /* not exit(): stdout's buffer belongs to the parent */
}

static void become_child(const struct pool *pool, unsigned job, pid_t parent, int result_fd, int noise_fd)
{
	const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct rlimit stack;

	for (unsigned i = 0; i < N_NOTED; i++)
		signal(noted_signals[i], SIG_DFL);
	sigprocmask(SIG_SETMASK, &pool->outer_mask, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!getrlimit(RLIMIT_STACK, &stack)) { /* SimGrid's solver recurses once per link of a large cluster */
		stack.rlim_cur = stack.rlim_max;
		setrlimit(RLIMIT_STACK, &stack);
	}
	if (getppid() != parent || dup2(nowhere, STDOUT_FILENO) < 0 || dup2(noise_fd, STDERR_FILENO) < 0)
		_exit(1);
	do_job(pool->children, job, result_fd);
}

/* ---- in the parent ---- */

static void close_pair(int fds[2])
{
	for (unsigned i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static enum psd_status start_child(struct pool *pool, struct child *slot, unsigned job)
{
	int result[2] = {-1, -1}, noise[2] = {-1, -1};
	const pid_t parent = getpid();
	pid_t pid;

	fflush(stdout); /* otherwise the child writes it again */
	if (pipe(result) || pipe(noise) || (pid = fork()) < 0) {
		const int reason = errno;

		close_pair(result);
		close_pair(noise);
		return psd_error_set(pool->err, PSD_ERUN, PSD_NOWHERE, "cannot start a process: %s", strerror(reason));
	}
	if (pid == 0) {
		close(result[0]);
		close(noise[0]);
		become_child(pool, job, parent, result[1], noise[1]);
	}
	setpgid(pid, pid); /* parent and child both make this call, since each may be the first that needs the group */
	close(result[1]);
	close(noise[1]);
	slot->pid = pid;
	slot->job = job;
	slot->result_fd = result[0];
	slot->noise_fd = noise[0];
	slot->noise_length = 0;
	pool->n_running++;
	return PSD_OK;
}

static void kill_child(const struct child *slot)
{
	if (slot->pid && kill(-slot->pid, SIGKILL))
		kill(slot->pid, SIGKILL);
}

static int reap(struct pool *pool, struct child *slot)
{
	int wait_status = 0;

	while (waitpid(slot->pid, &wait_status, 0) < 0 && errno == EINTR)
		;
	close(slot->result_fd);
	close(slot->noise_fd);
	slot->pid = 0;
	pool->n_running--;
	return wait_status;
}

/* Joins the first lines that the child printed; "" for a silent child. */
static void summarise_noise(const struct child *slot, char text[NOISE_MAX])
{
	size_t length = 0;
	unsigned n_lines = 0;

	for (size_t i = 0; i < slot->noise_length && n_lines < NOISE_LINES; i++) {
		if (slot->noise[i] != '\n')
			text[length++] = slot->noise[i] ? slot->noise[i] : '?';
		else if (length && text[length - 1] != ' ' && ++n_lines < NOISE_LINES)
			text[length++] = ' ';
	}
	while (length && text[length - 1] == ' ')
		length--;
	text[length] = '\0';
}

static enum psd_status report_crash(const struct child *slot, const char *name, int wait_status, struct psd_error *err)
{
	char words[NOISE_MAX];

	summarise_noise(slot, words);
	const char *colon = *words ? ": " : "";
	if (WIFSIGNALED(wait_status))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "%s: run failed: its process died of signal %d (%s)%s%.700s", name,
				     WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)), colon, words);
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
			     "%s: run failed: its process ended with status %d and no result%s%.700s", name,
			     WEXITSTATUS(wait_status), colon, words);
}

/* A bad input is the same for every job and has its place. A failed run needs the job's name. */
static enum psd_status report_failure(const struct record *record, const char *name, struct psd_error *err)
{
	if (record->status == PSD_ERUN || record->status == PSD_ENOMEM)
		return psd_error_set(err, record->status, PSD_NOWHERE, "%s: run failed: %.800s", name,
				     record->error.text);
	if (err)
		*err = record->error;
	return record->status;
}

/* Drops all jobs from number `job` on. Jobs with lower numbers continue: if one of them also fails, that one is
 * reported, so that each run of the program reports the same job. */
static void end_at(struct pool *pool, unsigned job)
{
	pool->end_job = job;
	for (unsigned i = 0; i < pool->children->n_at_once; i++)
		if (pool->slots[i].pid && pool->slots[i].job >= job)
			kill_child(&pool->slots[i]);
}

static void take_outcome(struct pool *pool, unsigned job, const struct psd_outcome *outcome)
{
	pool->outcomes[job] = *outcome;
	pool->n_done++;
}

/* Called when the child has closed its end of the pipe, so it has ended or will end soon: waits for it and stores its
 * result. */
static void finish_child(struct pool *pool, struct child *slot)
{
	const unsigned job = slot->job;
	struct record record;
	const bool has_record = read(slot->result_fd, &record, sizeof(record)) == (ssize_t)sizeof(record);
	const int wait_status = reap(pool, slot);
	char name[NAME_ROOM];

	if (job >= pool->end_job)
		return;
	if (has_record && record.status == PSD_OK) {
		take_outcome(pool, job, &record.outcome);
		return;
	}
	pool->children->name(pool->children->context, job, name, sizeof(name));
	pool->status = has_record ? report_failure(&record, name, pool->err)
				  : report_crash(slot, name, wait_status, pool->err);
	end_at(pool, job);
}

static void read_noise(struct pool *pool, struct child *slot)
{
	char rest[1024];
	const size_t room = sizeof(slot->noise) - slot->noise_length;
	const ssize_t n_bytes =
		read(slot->noise_fd, room ? slot->noise + slot->noise_length : rest, room ? room : sizeof(rest));

	if (n_bytes < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n_bytes <= 0)
		finish_child(pool, slot);
	else if (room)
		slot->noise_length += (size_t)n_bytes;
}

static void show_progress(struct pool *pool)
{
	char name[NAME_ROOM];

	if (!pool->children->has_progress)
		return;
	pool->children->name(pool->children->context, pool->next_job - 1, name, sizeof(name));
	psd_text_make_plain(name);
	psd_progress_show(&pool->progress, pool->n_done, name);
}

static void end_progress(const struct pool *pool)
{
	psd_progress_end(&pool->progress);
}

static void start_children(struct pool *pool)
{
	for (unsigned i = 0; i < pool->children->n_at_once && pool->next_job < pool->end_job; i++) {
		if (pool->slots[i].pid)
			continue;
		const enum psd_status status = start_child(pool, &pool->slots[i], pool->next_job);

		if (status == PSD_OK) {
			pool->next_job++;
			continue;
		}
		/* without memory for another child, fewer children at a time are used; only if there is none, it is an
		 * error */
		if (pool->n_running == 0) {
			pool->status = status;
			pool->end_job = pool->next_job;
		}
		return;
	}
}

/* Sleeps until a child writes, a child ends, or a signal arrives. Returns false on a signal. */
static bool wait_for_children(struct pool *pool)
{
	const unsigned n_slots = pool->children->n_at_once;

	for (unsigned i = 0; i < n_slots; i++)
		pool->polled[i] =
			(struct pollfd){.fd = pool->slots[i].pid ? pool->slots[i].noise_fd : -1, .events = POLLIN};
	if (ppoll(pool->polled, n_slots, NULL, &pool->outer_mask) < 0)
		return noted_signal == 0;
	for (unsigned i = 0; i < n_slots; i++)
		if (pool->polled[i].revents)
			read_noise(pool, &pool->slots[i]);
	return noted_signal == 0;
}

static void run_pool(struct pool *pool)
{
	bool is_undisturbed = true;

	start_children(pool);
	while (pool->n_running > 0 && is_undisturbed) {
		show_progress(pool);
		is_undisturbed = wait_for_children(pool);
		if (is_undisturbed)
			start_children(pool);
	}
	if (!is_undisturbed)
		pool->status = psd_error_set(pool->err, PSD_ERUN, PSD_NOWHERE, "interrupted");
	for (unsigned i = 0; i < pool->children->n_at_once; i++) {
		kill_child(&pool->slots[i]);
		if (pool->slots[i].pid)
			reap(pool, &pool->slots[i]);
	}
	end_progress(pool);
}

enum psd_status psd_children_run(const struct psd_children *children, struct psd_outcome outcomes[], int *signal_number,
				 struct psd_error *err)
{
	struct pool pool = {.children = children, .outcomes = outcomes, .end_job = children->n_jobs, .err = err};
	struct signal_state before;

	*signal_number = 0;
	pool.slots = calloc(children->n_at_once, sizeof(*pool.slots));
	pool.polled = calloc(children->n_at_once, sizeof(*pool.polled));
	if (!pool.slots || !pool.polled) {
		pool.status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u processes",
					    children->n_at_once);
	} else {
		hold_signals(&before);
		pool.outer_mask = before.mask;
		psd_progress_start(&pool.progress, children->n_jobs, children->has_progress);
		run_pool(&pool);
		restore_signals(&before);
		*signal_number = noted_signal;
	}
	free(pool.slots);
	free(pool.polled);
	return pool.status;
}

unsigned psd_children_cores(void)
{
	cpu_set_t allowed;
	const int n_cores = sched_getaffinity(0, sizeof(allowed), &allowed) ? 1 : CPU_COUNT(&allowed);

	return n_cores > 0 ? (unsigned)n_cores : 1;
}
