/* Three hosts join on loopback, each in a thread, while strangers to the run connect: the hosts join as without them,
 * and name those they refused. Time limits are so long that a host that waits for a stranger never ends. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "real/net/frame.h"
#include "real/net/wire.h"
#include "tests/real/net/joining_hosts.h"
#include "tests/real/secret_helper.h"
#include "tests/scratch_folder.h"

enum { MANY = 1000, FULL = 4 };

static void await_remarks(const struct host *host, unsigned n)
{
	while (host->n_remarks < n)
		(void)poll(NULL, 0, 1);
}

static void open_cluster(struct cluster *cluster)
{
	open_hosts(cluster);
	for (unsigned h = 0; h < HOSTS; h++)
		cluster->hosts[h].options.listener = cluster->hosts[h].listener;
}

static void *join(void *context)
{
	struct host *host = context;

	host->status = psd_mesh_open(&host->options, host->fds, &host->clock, &host->err);
	if (host->status) /* as psd-run does it */
		psd_mesh_report_failure(host->options.hosts, HOSTS, host->options.self, host->options.run_hash,
					host->options.secret, host->err.text);
	host->has_ended = true;
	return NULL;
}

static void start(struct cluster *cluster, unsigned first, unsigned end)
{
	for (unsigned h = first; h < end; h++)
		cr_assert_eq(pthread_create(&cluster->hosts[h].thread, NULL, join, &cluster->hosts[h]), 0);
}

static void wait_for(struct cluster *cluster, unsigned first, unsigned end)
{
	for (unsigned h = first; h < end; h++)
		await_host(&cluster->hosts[h]);
}

/* ---- strangers ---- */

/* A host that is refused after its first bytes may not read the rest. */
static void say(int fd, const void *bytes, size_t n_bytes)
{
	const ssize_t n_sent = send(fd, bytes, n_bytes, MSG_NOSIGNAL);

	cr_assert(n_sent == (ssize_t)n_bytes || (n_sent < 0 && (errno == EPIPE || errno == ECONNRESET)), "%s",
		  strerror(errno));
}

static void say_frame(int fd, enum psd_wire_kind kind, const uint8_t *payload, size_t n_bytes)
{
	const struct psd_wire_head head = {.kind = kind, .length_bytes = n_bytes};
	uint8_t bytes[PSD_WIRE_HEAD_BYTES];

	psd_wire_encode(&head, bytes);
	say(fd, bytes, sizeof(bytes));
	say(fd, payload, n_bytes);
}

static struct psd_wire_hello hello_of(uint32_t host, uint32_t connection, uint64_t terms_bytes)
{
	return (struct psd_wire_hello){
		.host = host, .n_hosts = HOSTS, .connection = connection, .terms_bytes = terms_bytes};
}

static void greet(int fd, struct psd_wire_hello hello, const char *terms)
{
	uint8_t bytes[PSD_WIRE_HELLO_BYTES];

	psd_wire_encode_payload(PSD_WIRE_HELLO, &hello, bytes);
	say_frame(fd, PSD_WIRE_HELLO, bytes, sizeof(bytes));
	say(fd, terms, strlen(terms));
}

static void say_nothing(int fd)
{
	(void)fd;
}

static void speak_http(int fd)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: somebody\r\n\r\n";

	say(fd, request, strlen(request));
}

static void say_half(int fd)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_HELLO, .length_bytes = PSD_WIRE_HELLO_BYTES};
	uint8_t bytes[PSD_WIRE_HEAD_BYTES];

	psd_wire_encode(&head, bytes);
	say(fd, bytes, sizeof(bytes) / 2);
}

static void have_other_terms(int fd)
{
	greet(fd, hello_of(2, 0, strlen("seed: 1\nbatch: 9\n")), "seed: 1\nbatch: 9\n");
}

static void have_no_such_rank(int fd)
{
	greet(fd, hello_of(7, 0, strlen(TERMS)), TERMS);
}

static void have_its_own_rank(int fd)
{
	greet(fd, hello_of(0, 0, strlen(TERMS)), TERMS);
}

static void open_a_second_line_first(int fd)
{
	greet(fd, hello_of(2, 1, 0), "");
}

static void have_another_version(int fd)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_HELLO, .length_bytes = PSD_WIRE_HELLO_BYTES};
	uint8_t bytes[PSD_WIRE_HEAD_BYTES];

	psd_wire_encode(&head, bytes);
	bytes[4]++;
	say(fd, bytes, sizeof(bytes));
}

static void have_endless_terms(int fd)
{
	greet(fd, hello_of(2, 0, UINT64_C(1) << 63), "");
}

static void send_a_tensor(int fd)
{
	static const uint8_t zeros[64];

	say_frame(fd, PSD_WIRE_DATA, zeros, sizeof(zeros));
}

/* A host of a run with other hosts. */
static void give_up(int fd)
{
	const struct psd_wire_failed failed = {2, HOSTS, 4711, "nobody knows me"};
	uint8_t bytes[PSD_WIRE_FAILED_BYTES];

	psd_wire_encode_payload(PSD_WIRE_FAILED, &failed, bytes);
	say_frame(fd, PSD_WIRE_FAILED, bytes, sizeof(bytes));
}

static const struct stranger {
	const char *name;
	void (*say)(int fd);
	bool leaves, resets;
	unsigned times;
	const char *remark; /* host 0's message; NULL: none, for it only waits */
} strangers[] = {
	{"scan", say_nothing, true, false, 1, "closed the connection before greeting"},
	{"reset", say_half, true, true, 1, "Connection reset by peer"},
	{"HTTP", speak_http, false, false, 1, "does not speak psd's protocol (0x20544547)"}, /* "GET " */
	{"other terms", have_other_terms, false, false, 1,
	 "has another build, scenario or other options: 'batch' is 8 here, 9 there"},
	{"other terms, and leaves", have_other_terms, true, false, 1, "'batch' is 8 here, 9 there"},
	{"no such rank", have_no_such_rank, false, false, 1, "is host 7 of 3, this run has 3"},
	{"our rank", have_its_own_rank, false, false, 1, "says that it is host 0, which is this one"},
	{"second line", open_a_second_line_first, false, false, 1, "opens connection 1 of host 2, the next is 0"},
	{"version", have_another_version, false, false, 1, "speaks version"},
	{"length", have_endless_terms, false, false, 1, "sent terms of 9223372036854775808 bytes"},
	{"tensor", send_a_tensor, false, false, 1, "sent a message other than a greeting"},
	{"gives up", give_up, false, false, 1, "says that host 2 of 3 gives up, which this run does not wait for"},
	{"silence", say_nothing, false, false, 1, NULL},
	{"half a greeting", say_half, false, false, 1, NULL},
	{"many", say_nothing, false, false, MANY, NULL},
};

/* To hosts 0 and 1, which wait for host 2. */
static unsigned send_stranger(const struct cluster *cluster, const struct stranger *stranger, int fds[2 * MANY])
{
	const struct linger reset = {.l_onoff = 1};
	unsigned n_fds = 0;

	for (unsigned i = 0; i < stranger->times; i++)
		for (unsigned host = 0; host < 2; host++) {
			const int fd = connect_to(cluster, host);

			cr_assert_geq(fd, 0, "%s, %u", stranger->name, i);
			stranger->say(fd);
			if (stranger->resets)
				cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
			if (stranger->leaves)
				close(fd);
			else
				fds[n_fds++] = fd;
		}
	return n_fds;
}

Test(joining, strangers_keep_nobody_out, .timeout = 120)
{
	static int fds[2 * MANY];
	static struct cluster cluster;

	psd_socket_allow_many();
	for (size_t s = 0; s < sizeof(strangers) / sizeof(strangers[0]); s++) {
		unsigned n_fds;

		open_cluster(&cluster);
		start(&cluster, 0, HOSTS - 1);
		n_fds = send_stranger(&cluster, &strangers[s], fds);
		/* before the real one comes: a second line may be taken for its, once there is a first one */
		for (unsigned h = 0; h < HOSTS - 1; h++)
			await_remarks(&cluster.hosts[h], strangers[s].remark ? 1 : 0);
		start(&cluster, HOSTS - 1, HOSTS);
		wait_for(&cluster, 0, HOSTS);
		for (unsigned h = 0; h < HOSTS; h++)
			cr_expect_eq(cluster.hosts[h].status, PSD_OK, "%s, host %u: %s", strangers[s].name, h,
				     cluster.hosts[h].err.text);
		if (strangers[s].remark)
			cr_expect(strstr(cluster.hosts[0].remarks, strangers[s].remark), "%s: '%s'", strangers[s].name,
				  cluster.hosts[0].remarks);
		else if (strangers[s].times == 1)
			cr_expect_str_eq(cluster.hosts[0].remarks, "", "%s", strangers[s].name);
		for (unsigned i = 0; i < n_fds; i++)
			close(fds[i]);
	}
}

/* Up to what may be allowed. */
static void allow_files(rlim_t n_files)
{
	struct rlimit limit;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = n_files < limit.rlim_max ? n_files : limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Beyond those that are open, which need not be numbered one after the other. */
static void allow_more_files(unsigned n_files)
{
	int fds[HOSTS * LINES];

	for (unsigned i = 0; i < n_files; i++)
		fds[i] = dup(STDIN_FILENO);
	allow_files((rlim_t)fds[n_files - 1] + 1);
	for (unsigned i = 0; i < n_files; i++)
		close(fds[i]);
}

/* One more comes and says nothing than there are descriptors: it takes that of the first. */
Test(joining, a_host_without_descriptors_says_so, .timeout = 60)
{
	static struct cluster cluster;
	int fds[HOSTS * LINES + 1];

	open_cluster(&cluster);
	for (unsigned i = 0; i < HOSTS * LINES + 1; i++)
		fds[i] = connect_to(&cluster, 0);
	allow_more_files(HOSTS * LINES);
	start(&cluster, 0, 1);
	await_remarks(&cluster.hosts[0], 1);
	allow_files(RLIM_INFINITY);
	start(&cluster, 1, HOSTS);
	wait_for(&cluster, 0, HOSTS);
	cr_expect(strstr(cluster.hosts[0].remarks, ": is silent, and this host can open no more files (ulimit -n)\n"),
		  "%s", cluster.hosts[0].remarks);
	for (unsigned i = 0; i < HOSTS * LINES + 1; i++)
		close(fds[i]);
}

/* At once, not when the others' time is over: LONG_SEC. */
Test(joining, a_host_with_too_few_descriptors_gives_up, .timeout = 60)
{
	static struct cluster cluster;

	open_cluster(&cluster);
	allow_more_files(HOSTS * LINES - 1);
	start(&cluster, 2, HOSTS);
	wait_for(&cluster, 2, HOSTS);
	cr_expect_eq(cluster.hosts[2].status, PSD_ERUN);
	cr_expect(strstr(cluster.hosts[2].err.text, "6 files are needed for connections with other hosts, and this one "
						    "can open no more than 5: Too many open files (ulimit -n)"),
		  "%s", cluster.hosts[2].err.text);
	for (unsigned h = 0; h < 2; h++)
		close(cluster.hosts[h].options.listener);
}

Test(joining, a_host_comes_once)
{
	static struct cluster cluster;
	struct psd_wire_failed failed = {.words = ""};
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_FAILED_BYTES];
	char terms[sizeof(TERMS)] = "", refusal[128];
	struct psd_error err;
	int fds[2];

	open_cluster(&cluster);
	close(cluster.hosts[1].options.listener);
	start(&cluster, 0, 1);
	for (unsigned i = 0; i < 2; i++) {
		const int fd = connect_to(&cluster, 0);

		greet(fd, hello_of(1, 0, strlen(TERMS)), TERMS);
		cr_assert_eq(psd_frame_read_all("host 0", fd, NULL, bytes, PSD_WIRE_HEAD_BYTES + PSD_WIRE_HELLO_BYTES,
						psd_socket_now_sec() + LONG_SEC, &err),
			     PSD_OK, "%s", err.text);
		fds[i] = fd;
		if (i == 0)
			cr_assert_eq(psd_frame_read_all("host 0", fd, NULL, (uint8_t *)terms, strlen(TERMS),
							psd_socket_now_sec() + LONG_SEC, &err),
				     PSD_OK, "%s", err.text);
	}
	cr_assert_str_eq(terms, TERMS);
	cr_assert_eq(psd_frame_read_all("host 0", fds[1], NULL, bytes + PSD_WIRE_HEAD_BYTES + PSD_WIRE_HELLO_BYTES,
					PSD_WIRE_FAILED_BYTES - PSD_WIRE_HELLO_BYTES, psd_socket_now_sec() + LONG_SEC,
					&err),
		     PSD_OK, "%s", err.text);
	failed = psd_wire_decode_payload(PSD_WIRE_FAILED, bytes + PSD_WIRE_HEAD_BYTES).failed;
	snprintf(refusal, sizeof(refusal), "worker 0 at 127.0.0.1:%u refused a connection from 127.0.0.1 port ",
		 cluster.places[0].port);
	cr_expect(!strncmp(failed.words, refusal, strlen(refusal)), "%s", failed.words);
	cr_expect(strstr(failed.words, ": opens connection 0 of host 1, the next is 1"), "%s", failed.words);
	close(fds[0]); /* it had joined: now the run cannot begin */
	wait_for(&cluster, 0, 1);
	cr_expect_eq(cluster.hosts[0].status, PSD_ELOST);
	cr_expect(strstr(cluster.hosts[0].err.text, " closed the connection while hosts were joining"), "%s",
		  cluster.hosts[0].err.text);
	cr_expect(!strncmp(cluster.hosts[0].err.text, "worker 1 at 127.0.0.1:", 22), "%s", cluster.hosts[0].err.text);
	close(fds[1]);
	close(cluster.hosts[2].options.listener);
}

/* ---- an address at which no host answers ---- */

/* For this test alone: a name that has two addresses. */
static bool know_two_addresses(const struct scratch_folder *folder)
{
	static const char names[] = "127.0.0.1 twofold\n127.0.0.2 twofold\n";

	scratch_folder_write(folder, "hosts", names, strlen(names));
	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount(scratch_folder_path(folder, "hosts").text, "/etc/hosts", NULL, MS_BIND, NULL);
}

/* The most that it can keep are there: the kernel drops all others that try to connect. */
static void fill(int listener, uint16_t port, int fds[FULL])
{
	struct addrinfo *found;
	struct psd_error err;

	cr_assert_eq(listen(listener, 0), 0);
	cr_assert_eq(psd_socket_look_up("127.0.0.1", port, &found, &err), PSD_OK, "%s", err.text);
	for (unsigned i = 0; i < FULL; i++)
		cr_assert_eq(psd_socket_connect(found, &plain, &fds[i]), 0);
	freeaddrinfo(found);
}

Test(joining, the_next_address_is_tried_where_nobody_answers, .timeout = 60)
{
	const struct scratch_folder folder = scratch_folder_make();
	static struct cluster cluster;
	struct psd_error err;
	int silent, fds[FULL];
	uint16_t port;

	open_cluster(&cluster);
	silent = cluster.hosts[0].options.listener;
	cr_assert_eq(psd_socket_listen("127.0.0.2", cluster.places[0].port, &plain, &cluster.hosts[0].options.listener,
				       &port, &err),
		     PSD_OK, "%s", err.text);
	fill(silent, port, fds);
	memcpy(cluster.places[0].address, "twofold", sizeof("twofold"));
	for (unsigned h = 0; h < HOSTS; h++)
		cluster.hosts[h].options.greeting_sec = 0.1;
	if (!know_two_addresses(&folder))
		cr_skip_test("only root may mount here");
	start(&cluster, 0, HOSTS);
	wait_for(&cluster, 0, HOSTS);
	for (unsigned h = 0; h < HOSTS; h++)
		cr_expect_eq(cluster.hosts[h].status, PSD_OK, "host %u: %s", h, cluster.hosts[h].err.text);
	for (unsigned i = 0; i < FULL; i++)
		close(fds[i]);
	close(silent);
	scratch_folder_remove(&folder);
}

/* ---- missing hosts ---- */

static void write_missing(const struct cluster *cluster, char missing[128])
{
	snprintf(missing, 128, "worker 1 at 127.0.0.1:%u, worker 2 at 127.0.0.1:%u", cluster->places[1].port,
		 cluster->places[2].port);
}

Test(joining, hosts_missing_at_the_time_limit_are_named)
{
	static struct cluster cluster;
	struct host *host = &cluster.hosts[0];
	char missing[128], expected[256];

	open_cluster(&cluster);
	host->options.within_sec = 0.02;
	start(&cluster, 0, 1);
	wait_for(&cluster, 0, 1);
	write_missing(&cluster, missing);
	snprintf(expected, sizeof(expected), "%s did not join within 0.02 s", missing);
	cr_expect_eq(host->status, PSD_EABSENT);
	cr_expect_str_eq(host->err.text, expected);
	for (unsigned h = 1; h < HOSTS; h++)
		close(cluster.hosts[h].options.listener);
}

/* Until they come, however long that takes. */
Test(joining, missing_hosts_are_named_again_and_again, .timeout = 60)
{
	static struct cluster cluster;
	struct host *host = &cluster.hosts[0];
	char missing[128], reminders[512];

	open_cluster(&cluster);
	host->options.remind_sec = 0.02;
	start(&cluster, 0, 1);
	await_remarks(host, 2);
	start(&cluster, 1, HOSTS);
	wait_for(&cluster, 0, HOSTS);
	for (unsigned h = 0; h < HOSTS; h++)
		cr_expect_eq(cluster.hosts[h].status, PSD_OK, "host %u: %s", h, cluster.hosts[h].err.text);
	write_missing(&cluster, missing);
	snprintf(reminders, sizeof(reminders), "still waiting for %s\nstill waiting for %s\n", missing, missing);
	cr_expect_eq(strncmp(host->remarks, reminders, strlen(reminders)), 0, "%s", host->remarks);
}

/* Until another one excuses itself, however long that takes. */
Test(joining, a_host_that_greets_too_late_is_refused, .timeout = 60)
{
	static struct cluster cluster;
	struct host *host = &cluster.hosts[0];
	int fd;

	open_cluster(&cluster);
	host->options.greeting_sec = 0.02;
	for (unsigned h = 1; h < HOSTS; h++)
		close(cluster.hosts[h].options.listener);
	fd = connect_to(&cluster, 0);
	start(&cluster, 0, 1);
	await_remarks(host, 1);
	while (!host->has_ended)
		psd_mesh_report_failure(cluster.places, HOSTS, 1, 0, NULL, "there is no data");
	wait_for(&cluster, 0, 1);
	cr_expect_not_null(strstr(host->remarks, ": has not greeted in time\n"), "%s", host->remarks);
	close(fd);
}

/* No host 0 listens. */
Test(joining, why_a_missing_host_is_not_reached_is_said)
{
	static struct cluster cluster;
	struct host *host = &cluster.hosts[1];
	char expected[256];

	open_cluster(&cluster);
	close(cluster.hosts[0].options.listener);
	host->options.within_sec = 0.2;
	start(&cluster, 1, 2);
	wait_for(&cluster, 1, 2);
	snprintf(expected, sizeof(expected),
		 "worker 0 at 127.0.0.1:%u (Connection refused), worker 2 at 127.0.0.1:%u did not join within 0.2 s",
		 cluster.places[0].port, cluster.places[2].port);
	cr_expect_str_eq(host->err.text, expected);
	close(cluster.hosts[2].options.listener);
}

/* Host 2 has another port for host 1; both join host 0, which blames neither. */
Test(joining, two_hosts_that_do_not_reach_each_other_are_both_named, .timeout = 60)
{
	static struct cluster cluster;
	static struct psd_mesh_host places[HOSTS];
	char expected[256];
	struct psd_error err;
	int silent;

	open_cluster(&cluster);
	memcpy(places, cluster.places, sizeof(places));
	/* one at which nobody greets */
	cr_assert_eq(psd_socket_listen("127.0.0.1", keep_port(), &plain, &silent, &places[1].port, &err), PSD_OK);
	cluster.hosts[2].options.hosts = places;
	cluster.hosts[1].options.within_sec = 1.0;
	start(&cluster, 0, HOSTS);
	wait_for(&cluster, 0, HOSTS);
	snprintf(expected, sizeof(expected),
		 "worker 2 at 127.0.0.1:%u did not join worker 1 at 127.0.0.1:%u within 1 s, joined: worker 0",
		 cluster.places[2].port, cluster.places[1].port);
	cr_expect_str_eq(cluster.hosts[1].err.text, expected);
	cr_expect(strstr(cluster.hosts[0].err.text, "did not join worker "), "%s", cluster.hosts[0].err.text);
	cr_expect(strstr(cluster.hosts[0].err.text, "joined: worker 0"), "%s", cluster.hosts[0].err.text);
	close(silent);
}

/* The process that answers at host 0's place tells of the end of another run. */
Test(joining, the_end_of_another_run_is_not_this_ones, .timeout = 60)
{
	static struct cluster cluster;
	struct host *host = &cluster.hosts[1];
	struct psd_mesh_options other;

	open_cluster(&cluster);
	close(cluster.hosts[0].options.listener);
	cluster.hosts[0].options.listener = -1; /* listens when its turn comes */
	other = cluster.hosts[0].options;
	start(&cluster, 1, HOSTS);
	while (host->n_remarks == 0)
		psd_mesh_report_failure(other.hosts, HOSTS, 0, other.run_hash + 1, NULL, "there is no data");
	cr_expect(strstr(host->remarks, "there is no data") || strstr(host->remarks, "gives up, which this run"), "%s",
		  host->remarks);
	start(&cluster, 0, 1);
	wait_for(&cluster, 0, HOSTS);
	for (unsigned h = 0; h < HOSTS; h++)
		cr_expect_eq(cluster.hosts[h].status, PSD_OK, "host %u: %s", h, cluster.hosts[h].err.text);
}

/* A host that still waits when an excuse is over hears the next. */
static void check_excuse(unsigned failing)
{
	static struct cluster cluster;
	char words[128];

	open_cluster(&cluster);
	close(cluster.hosts[failing].options.listener);
	start(&cluster, 0, failing);
	start(&cluster, failing + 1, HOSTS);
	for (unsigned h = 0; h < HOSTS; h++)
		while (h != failing && !cluster.hosts[h].has_ended)
			psd_mesh_report_failure(cluster.places, HOSTS, failing, 0, NULL, "there is no data");
	wait_for(&cluster, 0, failing);
	wait_for(&cluster, failing + 1, HOSTS);
	snprintf(words, sizeof(words), "host %u at 127.0.0.1:%u: there is no data", failing,
		 cluster.places[failing].port);
	for (unsigned h = 0; h < HOSTS; h++) {
		if (h == failing)
			continue;
		cr_expect_eq(cluster.hosts[h].status, PSD_ERUN);
		cr_expect(strstr(cluster.hosts[h].err.text, words), "host %u: %s", h, cluster.hosts[h].err.text);
	}
}

Test(joining, a_host_that_fails_before_it_joins_tells_the_others, .timeout = 60)
{
	for (unsigned failing = 0; failing < HOSTS; failing++)
		check_excuse(failing);
}

/* When hosts come to their second system, another run is started on them; it fails at host 2, once that has gone. */
Test(joining, a_run_that_fails_does_not_end_one_that_is_under_way, .timeout = 60)
{
	static struct cluster cluster;

	open_cluster(&cluster);
	for (unsigned h = 0; h < HOSTS; h++)
		cluster.hosts[h].options.run_hash = 1;
	start(&cluster, 0, HOSTS - 1);
	psd_mesh_report_failure(cluster.places, HOSTS, HOSTS - 1, 0, NULL, "there is no data");
	start(&cluster, HOSTS - 1, HOSTS);
	wait_for(&cluster, 0, HOSTS);
	for (unsigned h = 0; h < HOSTS; h++)
		cr_expect_eq(cluster.hosts[h].status, PSD_OK, "host %u: %s", h, cluster.hosts[h].err.text);
	for (unsigned h = 0; h < HOSTS - 1; h++)
		cr_expect(strstr(cluster.hosts[h].remarks,
				 "says that host 2 of 3 gives up, which this run does not wait for"),
			  "host %u: '%s'", h, cluster.hosts[h].remarks);
}

/* Only two of the three hear it from that host; the third from them, at once. */
Test(joining, a_host_with_other_terms_ends_the_run_for_all, .timeout = 60)
{
	static struct cluster cluster;

	open_cluster(&cluster);
	cluster.hosts[1].options.terms = "seed: 1\nbatch: 9\n";
	start(&cluster, 0, HOSTS);
	wait_for(&cluster, 0, HOSTS);
	for (unsigned h = 0; h < HOSTS; h++) {
		cr_expect_eq(cluster.hosts[h].status, PSD_ERUN, "host %u", h);
		cr_expect(
			strstr(cluster.hosts[h].err.text, "has another build, scenario or other options: 'batch' is "),
			"host %u: %s", h, cluster.hosts[h].err.text);
	}
}

/* ---- with a secret ---- */

#define SECRET "secret of this run"
#define STRANGE                                                                                                        \
	": did not prove that it knows this run's secret: '--secret' must name the same bytes on all hosts, or on "    \
	"none. Bytes that were damaged on their way look the same\n"

/* Each a copy of its own, as processes have; NULL: none. */
static void open_with_secrets(struct cluster *cluster, const char *first, const char *second, const char *third)
{
	const char *const words[HOSTS] = {first, second, third};

	open_cluster(cluster);
	for (unsigned h = 0; h < HOSTS; h++)
		cluster->hosts[h].options.secret = words[h] ? make_secret(words[h]) : NULL;
}

static void free_secrets(struct cluster *cluster)
{
	for (unsigned h = 0; h < HOSTS; h++)
		psd_secret_free(cluster->hosts[h].options.secret);
}

static void expect_joined(const struct cluster *cluster, const char *name)
{
	for (unsigned h = 0; h < HOSTS; h++)
		cr_expect_eq(cluster->hosts[h].status, PSD_OK, "%s, host %u: %s", name, h, cluster->hosts[h].err.text);
}

static void greet_perfectly(int fd)
{
	greet(fd, hello_of(2, 0, strlen(TERMS)), TERMS);
}

/* The first bytes of TLS, and then none of it. */
static void speak_half_of_tls(int fd)
{
	static const uint8_t garbage[64] = {0x16, 0x03, 0x01, 0x00, 0x3b, 0x01, 0x00, 0x00, 0x37, 0x03, 0x03};

	say(fd, garbage, sizeof(garbage));
}

static void know_another_secret(int fd)
{
	struct psd_secret *other = make_secret("secret of another run");

	cr_assert(psd_secret_begin(other, fd, 2, true, 0));
	cr_assert_eq(psd_secret_prove(other, fd), EAGAIN);
	psd_secret_free(other);
}

static const struct stranger strange[] = {
	{"greets perfectly", greet_perfectly, false, false, 1, STRANGE},
	{"HTTP", speak_http, false, false, 1, STRANGE},
	{"half a greeting", say_half, false, false, 1, STRANGE},
	{"other terms", have_other_terms, true, false, 1, STRANGE},
	{"gives up", give_up, false, false, 1, STRANGE},
	{"another secret", know_another_secret, false, false, 1, STRANGE},
	{"half of TLS", speak_half_of_tls, false, false, 1, STRANGE},
	{"scan", say_nothing, true, false, 1, ": closed the connection before greeting\n"},
	{"silence", say_nothing, false, false, 1, NULL},
	{"many", say_nothing, false, false, MANY, NULL},
};

/* All that a host has said to a stranger, until it closed the connection. */
static void expect_no_terms(int fd, const char *name)
{
	uint8_t heard[ROOM];
	size_t n_heard = 0;
	ssize_t n_read;

	do {
		struct pollfd watched = {.fd = fd, .events = POLLIN};

		cr_assert_eq(poll(&watched, 1, 60000), 1, "%s is not dropped", name);
		n_read = recv(fd, heard + n_heard, sizeof(heard) - n_heard, 0);
		n_heard += n_read > 0 ? (size_t)n_read : 0;
	} while (n_read > 0);
	cr_expect_not(memmem(heard, n_heard, "batch", 5), "%s", name);
}

Test(joining, strangers_to_the_secret_keep_nobody_out_and_learn_nothing, .timeout = 120)
{
	static int fds[2 * MANY];
	static struct cluster cluster;

	psd_socket_allow_many();
	for (size_t s = 0; s < sizeof(strange) / sizeof(strange[0]); s++) {
		unsigned n_fds;

		open_with_secrets(&cluster, SECRET, SECRET, SECRET);
		start(&cluster, 0, HOSTS - 1);
		n_fds = send_stranger(&cluster, &strange[s], fds);
		for (unsigned h = 0; h < HOSTS - 1; h++)
			await_remarks(&cluster.hosts[h], strange[s].remark ? 1 : 0);
		for (unsigned i = 0; i < n_fds && strange[s].remark; i++)
			expect_no_terms(fds[i], strange[s].name);
		start(&cluster, HOSTS - 1, HOSTS);
		wait_for(&cluster, 0, HOSTS);
		expect_joined(&cluster, strange[s].name);
		for (unsigned h = 0; h < HOSTS - 1 && strange[s].remark; h++)
			cr_expect(strstr(cluster.hosts[h].remarks, strange[s].remark), "%s: '%s'", strange[s].name,
				  cluster.hosts[h].remarks);
		for (unsigned i = 0; i < n_fds; i++)
			close(fds[i]);
		free_secrets(&cluster);
	}
}

/* It has the list of hosts and knows how often they have joined: without the secret that ended the run. */
Test(joining, a_stranger_to_the_secret_cannot_give_up_for_a_host, .timeout = 60)
{
	static struct cluster cluster;

	open_with_secrets(&cluster, SECRET, SECRET, SECRET);
	start(&cluster, 0, HOSTS - 1);
	psd_mesh_report_failure(cluster.places, HOSTS, HOSTS - 1, 0, NULL, "there is no data");
	for (unsigned h = 0; h < HOSTS - 1; h++)
		await_remarks(&cluster.hosts[h], 1);
	start(&cluster, HOSTS - 1, HOSTS);
	wait_for(&cluster, 0, HOSTS);
	expect_joined(&cluster, "gives up");
	free_secrets(&cluster);
}

/* A host that has the secret can. */
Test(joining, a_host_that_fails_before_it_joins_tells_hosts_that_know_its_secret, .timeout = 60)
{
	static struct cluster cluster;

	open_with_secrets(&cluster, SECRET, SECRET, SECRET);
	close(cluster.hosts[1].options.listener);
	start(&cluster, 0, 1);
	start(&cluster, 2, HOSTS);
	for (unsigned h = 0; h < HOSTS; h += 2)
		while (!cluster.hosts[h].has_ended)
			psd_mesh_report_failure(cluster.places, HOSTS, 1, 0, cluster.hosts[1].options.secret,
						"there is no data");
	wait_for(&cluster, 0, 1);
	wait_for(&cluster, 2, HOSTS);
	for (unsigned h = 0; h < HOSTS; h += 2)
		cr_expect(strstr(cluster.hosts[h].err.text, ": there is no data"), "host %u: %s", h,
			  cluster.hosts[h].err.text);
	free_secrets(&cluster);
}

/* Host 2 is not as the others: it ends at once with `words`; they have a remark, and wait for one that is. */
static void expect_left_out(const char *all, const char *third, const char *words, const char *remark)
{
	static struct cluster cluster;
	struct psd_error err;
	uint16_t port;

	open_with_secrets(&cluster, all, all, third);
	start(&cluster, 0, HOSTS);
	wait_for(&cluster, HOSTS - 1, HOSTS);
	cr_expect_eq(cluster.hosts[2].status, PSD_ERUN);
	cr_expect(strstr(cluster.hosts[2].err.text, words), "%s", cluster.hosts[2].err.text);
	psd_secret_free(cluster.hosts[2].options.secret);
	cluster.hosts[2].options.secret = all ? make_secret(all) : NULL;
	cr_assert_eq(psd_socket_listen("127.0.0.1", cluster.places[2].port, &plain, &cluster.hosts[2].options.listener,
				       &port, &err),
		     PSD_OK, "%s", err.text);
	start(&cluster, HOSTS - 1, HOSTS);
	wait_for(&cluster, 0, HOSTS);
	expect_joined(&cluster, words);
	cr_expect(strstr(cluster.hosts[0].remarks, remark), "%s", cluster.hosts[0].remarks);
	free_secrets(&cluster);
}

Test(joining, a_host_with_another_secret_is_left_out_and_says_so, .timeout = 60)
{
	expect_left_out(
		SECRET, "secret of another run",
		" did not prove that it knows this run's secret: '--secret' must name the same bytes on all hosts",
		STRANGE);
}

Test(joining, a_host_without_the_secret_is_left_out_and_says_so, .timeout = 60)
{
	expect_left_out(SECRET, NULL, ": it did not prove that it knows this run's secret: ", STRANGE);
}

Test(joining, a_host_with_a_secret_of_its_own_is_left_out_and_says_so, .timeout = 60)
{
	expect_left_out(
		NULL, SECRET, " did not prove that it knows this run's secret: ",
		": has a secret, this run has none: '--secret' must name the same bytes on all hosts, or on none");
}

/* As without a secret, in the same words. */
Test(joining, a_host_with_other_terms_ends_the_run_for_all_that_share_a_secret, .timeout = 60)
{
	static struct cluster cluster;

	open_with_secrets(&cluster, SECRET, SECRET, SECRET);
	cluster.hosts[1].options.terms = "seed: 1\nbatch: 9\n";
	start(&cluster, 0, HOSTS);
	wait_for(&cluster, 0, HOSTS);
	for (unsigned h = 0; h < HOSTS; h++)
		cr_expect(
			strstr(cluster.hosts[h].err.text, "has another build, scenario or other options: 'batch' is "),
			"host %u: %s", h, cluster.hosts[h].err.text);
	free_secrets(&cluster);
}
