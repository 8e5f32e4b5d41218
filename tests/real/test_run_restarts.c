/* psd-run --restarts: processes are killed or stand still, and the run ends with the bits of one that was never cut. */
#define _GNU_SOURCE 1
#include "tests/real/started.h"
#include "tests/test_with.h"

TestSuite(run_restarts, .timeout = 120);

/* ---- a cluster of its own ---- */

static void check_killed(const char *system, const char *cluster_kind, unsigned victim, const char *name)
{
	const struct scratch_folder folder = make_folder();
	char options[256], words[128];
	struct started started;
	unsigned newest, first;

	snprintf(options, sizeof(options), "%s --quiet --system %s --save-every %d --save whole", cluster_kind, system,
		 EVERY);
	run_uncut(&folder, options);
	snprintf(options, sizeof(options), "%s --system %s --save-every %d --save cut --restarts 2", cluster_kind,
		 system, EVERY);
	started = start_held(&folder, options, "said");
	await_checkpoint(&started, "cut", 5 * EVERY);
	send_signal(&started, victim, SIGKILL);
	newest = find_newest(&folder, "cut");
	cr_expect_eq(finish(&started), 0, "%s", scratch_folder_read(&folder, "said"));
	first = read_first(&folder, "said", system);
	cr_expect_eq(first % EVERY, 0, "%u", first);
	cr_expect_geq(first, 4 * EVERY, "all others have that one: %u", first);
	cr_expect_leq(first, newest + EVERY, "%u of %u", first, newest);
	snprintf(words, sizeof(words), "psd-run: %s at ", name);
	expect_said(&folder, "said", words);
	expect_said(&folder, "said", " was killed by signal 9");
	expect_not_said(&folder, "said", "restart 2 of 2");
	expect_same(&folder, "whole", "cut");
	scratch_folder_remove(&folder);
}

Test(run_restarts, a_ring_whose_worker_is_killed_ends_with_the_same_bits)
{
	check_killed("Ring", "--no-emulation", 1, "worker 1");
	check_killed("Ring", "--no-emulation", 0, "worker 0");
}

TEST_ROW(run_restarts, shards_whose_worker_is_killed_end_with_the_same_bits,
	 check_killed("PS", "--no-emulation", 1, "worker 1"))

Test(run_restarts, a_server_that_is_killed_ends_with_the_same_bits)
{
	check_killed("Server", "--no-emulation", 2, "server 0");
	check_killed("Server", "--no-emulation", 0, "worker 0");
}

/* Or where this machine does not let us have one, links that processes shape themselves. */
TEST_ROW(run_restarts, an_emulated_cluster_is_made_again, check_killed("Ring", "", 1, "worker 1"))

FOLDER_TEST(run_restarts, a_process_killed_before_the_first_checkpoint_begins_again, make_folder())
{
	struct started started;

	run_uncut(&folder, "--no-emulation --quiet --system Ring --save whole --save-every 500");
	started = start_held(&folder, "--no-emulation --system Ring --save cut --save-every 500 --restarts 1", "said");
	free(await_words(&started, "Ring: iteration 11 of 200, "));
	send_signal(&started, 1, SIGKILL);
	cr_expect_eq(finish(&started), 0, "%s", scratch_folder_read(&folder, "said"));
	expect_said(&folder, "said", "; Ring begins again, restart 1 of 1\n");
	expect_same(&folder, "whole", "cut");
}

FOLDER_TEST(run_restarts, a_process_that_stands_still_is_restarted, make_folder())
{
	struct started started;

	run_uncut(&folder, "--no-emulation --quiet --system PS --save whole --save-every 10");
	started = start_held(&folder, "--no-emulation --system PS --save cut --save-every 10 --restarts 1 --stall 1s",
			     "said");
	await_checkpoint(&started, "cut", 5 * EVERY);
	send_signal(&started, 1, SIGSTOP);
	cr_expect_eq(finish(&started), 0, "%s", scratch_folder_read(&folder, "said"));
	expect_said(&folder, "said", "psd-run: worker 1 at ");
	expect_said(&folder, "said", " has not been heard from for ");
	cr_expect_geq(read_first(&folder, "said", "PS"), 4 * EVERY);
	expect_same(&folder, "whole", "cut");
}

FOLDER_TEST(run_restarts, when_none_is_left_it_fails, make_folder())
{
	struct started started =
		start_held(&folder, "--no-emulation --system PS --save cut --save-every 10 --restarts 1", "said");
	pid_t found[MOST_PROCESSES];

	await_checkpoint(&started, "cut", 5 * EVERY);
	send_signal(&started, 0, SIGKILL);
	free(await_words(&started, ", restart 1 of 1\n"));
	while (find_processes(&started, found) < 2)
		wait_a_little(&started);
	send_signal(&started, 0, SIGKILL);
	cr_expect_eq(finish(&started), 75);
	expect_said(&folder, "said", ", restart 1 of 1\n");
	expect_said(&folder, "said", " was killed by signal 9");
	expect_said(&folder, "said", "; no restart is left after 1\n");
}

/* ---- failures without a restart ---- */

FOLDER_TEST(run_restarts, errors_that_would_come_again_are_not_retried, make_folder())
{
	struct started started;

	run_uncut(&folder, "--no-emulation --quiet --system PS --save cut --save-every 10 --iterations 30");
	scratch_folder_write(&folder, "cut/iteration-30/host-1-of-2.safetensors", "", 0);
	scratch_folder_write(&folder, "cut/iteration-20/host-1-of-2.safetensors", "", 0);
	started = start(&folder, "--no-emulation --system PS --save cut --save-every 10 --restarts 2", "said");
	cr_expect_eq(finish(&started), 2);
	expect_said(&folder, "said", "cut/iteration-30/host-1-of-2.safetensors");
	expect_not_said(&folder, "said", "restart 1");
}

Test(run_restarts, an_interrupt_is_the_end)
{
	static const int numbers[] = {SIGINT, SIGTERM};

	for (unsigned i = 0; i < 2; i++) {
		const struct scratch_folder folder = make_folder();
		struct started started = start_held(
			&folder, "--no-emulation --system PS --save cut --save-every 10 --restarts 9", "said");

		await_checkpoint(&started, "cut", 5 * EVERY);
		cr_assert_eq(kill(started.pid, numbers[i]), 0);
		cr_expect_eq(finish(&started), 128 + numbers[i]);
		expect_said(&folder, "said", "psd-run: stopped by signal ");
		expect_not_said(&folder, "said", "restart 1");
		scratch_folder_remove(&folder);
	}
}

Test(run_restarts, nothing_is_gone_on_from_without_checkpoints)
{
	expect_one_line("psd-run", "--restarts 2 --system PS scenarios/quickstart.yaml", 2,
			"'--restarts' has no effect without '--save'\n");
	expect_one_line("psd-run", "--restarts -1 --save x --system PS scenarios/quickstart.yaml", 2,
			"'--restarts' is ");
}

/* ---- the log and the trace ---- */

/* Cells before the seconds, and the one behind them, are those of a run that was never cut; seconds grow. */
static void expect_same_log(const struct scratch_folder *folder, const char *whole, const char *cut, unsigned n)
{
	char *left = scratch_folder_read(folder, whole), *right = scratch_folder_read(folder, cut);
	const char *one = strchr(left, '\n'), *other = strchr(right, '\n');
	double last_sec = 0.0;

	for (unsigned i = 0; i < n; i++) {
		unsigned iteration;
		double sec;

		cr_assert(one && other, "line %u", i);
		one++;
		other++;
		cr_assert_eq(sscanf(other, "Ring,%u,%*[^,],%*[^,],%*[^,],%lf,", &iteration, &sec), 2, "%.80s", other);
		cr_expect_eq(iteration, i);
		cr_expect_gt(sec, last_sec, "line %u", i);
		last_sec = sec;
		for (unsigned cell = 0; cell < 5; cell++) {
			const size_t length = strcspn(one, ",");

			cr_expect_eq(strncmp(one, other, length + 1), 0, "line %u: %.80s", i, other);
			one += length + 1;
			other = strchr(other, ',') + 1;
		}
		one = strchr(one, '\n');
		other = strchr(other, '\n');
	}
	free(left);
	free(right);
}

static void await_line(const struct started *started, const char *log, const char *line)
{
	char *text = NULL;

	do {
		free(text);
		expect_going(started);
		(void)poll(NULL, 0, 1);
		text = scratch_folder_has(started->folder, log) ? scratch_folder_read(started->folder, log)
								: strdup("");
	} while (!strstr(text, line));
	free(text);
}

/* Killed between two checkpoints, with lines that are written again. */
FOLDER_TEST(run_restarts, the_log_has_each_iteration_once, make_folder())
{
	struct started started;

	run_uncut(&folder, "--no-emulation --quiet --system Ring --log whole --iterations 250");
	started = start(&folder,
			"--no-emulation --system Ring --save cut --save-every 100 --restarts 1 --log log "
			"--iterations 1000000",
			"said");
	await_line(&started, "log", "\nRing,150,");
	send_signal(&started, 1, SIGKILL);
	free(await_words(&started, ", restart 1 of 1\n"));
	cr_expect_geq(read_first(&folder, "said", "Ring"), 100);
	await_line(&started, "log", "\nRing,250,");
	cr_assert_eq(kill(started.pid, SIGTERM), 0);
	cr_expect_eq(finish(&started), 128 + SIGTERM);
	expect_same_log(&folder, "whole", "log", 250);
}

FOLDER_TEST(run_restarts, the_trace_is_of_the_last_start, make_folder())
{
	struct started started = start_held(
		&folder, "--no-emulation --system Ring --save cut --save-every 10 --restarts 1 --trace trace", "said");
	char words[128], *trace;
	unsigned first;

	await_checkpoint(&started, "cut", 5 * EVERY);
	send_signal(&started, 0, SIGKILL);
	cr_expect_eq(finish(&started), 0, "%s", scratch_folder_read(&folder, "said"));
	first = read_first(&folder, "said", "Ring");
	snprintf(words, sizeof(words), "psd-run: the trace begins with iteration %u, at the last restart\n", first);
	expect_said(&folder, "said", words);
	trace = scratch_folder_read(&folder, "trace");
	for (unsigned i = 0; i <= first; i++) {
		snprintf(words, sizeof(words), "{\"iteration\":%u,", i);
		cr_expect_eq(strstr(trace, words) != NULL, i == first, "iteration %u", i);
	}
	free(trace);
}
