/* The emulated cluster's structure: a node's addresses and shaper, the nodes it reaches, the users that may make one.
 * tests/bench/real/bench_emulation.c measures the speed of links. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "engine/scenario/scenario.h"
#include "real/cluster/netlink.h"
#include "tests/real/emulation_helper.h"

TestSuite(emulation, .timeout = 120);

/* ---- a node ---- */

Test(emulation, every_node_has_its_address_and_no_other)
{
	struct psd_emulation *const emulation = open_or_skip(3);

	for (unsigned node = 0; node < 3; node++)
		(void)start_in_node(emulation, node, check_addresses, NULL);
	for (unsigned node = 0; node < 3; node++)
		expect_success();
	psd_emulation_close(emulation);
}

static void *share(size_t n_bytes)
{
	void *const shared = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(shared, MAP_FAILED);
	return shared;
}

/* Counts in *context the neighbours that it need not ask for: flags 0x6, permanent and complete (linux/if_arp.h). */
static int count_neighbours(void *context, unsigned node)
{
	FILE *const file = fopen("/proc/self/net/arp", "re");
	char line[256], flags[16];
	unsigned n = 0;

	(void)node;
	if (!file)
		return 100;
	while (fgets(line, sizeof(line), file))
		n += sscanf(line, "%*s %*s %15s", flags) == 1 && strcmp(flags, "0x6") == 0;
	fclose(file);
	*(unsigned *)context = n;
	return 0;
}

/* The kernel keeps at most 1,024 neighbours found by ARP in all namespaces together: 33 nodes have more. */
Test(emulation, no_node_asks_where_another_is)
{
	struct psd_emulation *const emulation = open_or_skip(3);
	unsigned *const n = share(sizeof(*n));

	for (unsigned node = 0; node < 3; node++) {
		(void)start_in_node(emulation, node, count_neighbours, n);
		expect_success();
		cr_expect_eq(*n, 2, "node %u has %u", node, *n);
	}
	psd_emulation_close(emulation);
	munmap(n, sizeof(*n));
}

Test(emulation, addresses_count_on_past_255)
{
	char text[PSD_EMULATION_ADDRESS_MAX];

	cr_assert_str_eq(psd_emulation_address(0, text), "10.0.0.1");
	cr_assert_str_eq(psd_emulation_address(255, text), "10.0.1.0"); /* 1 + 255 = 256 */
}

/* A link's shaper: bytes per second, and seconds at that rate that pass at once. */
struct shaper {
	uint64_t bytes_per_sec;
	double burst_sec;
};

#define TICK_SEC 64e-9 /* tick of the kernel's shapers: PSCHED_SHIFT in net/pkt_sched.h */

/* The shaper in a qdisc's attributes; 0 bytes per second if there is none. */
static struct shaper read_shaper(const unsigned char *attributes, size_t n_bytes)
{
	struct rtattr outer, inner;
	struct tc_tbf_qopt options;

	for (size_t at = 0; at + sizeof(outer) <= n_bytes; at += RTA_ALIGN((size_t)outer.rta_len)) {
		memcpy(&outer, attributes + at, sizeof(outer));
		if (outer.rta_len < sizeof(outer))
			break;
		if (outer.rta_type != TCA_OPTIONS || outer.rta_len < 2 * sizeof(outer) + sizeof(options))
			continue;
		memcpy(&inner, attributes + at + sizeof(outer), sizeof(inner));
		memcpy(&options, attributes + at + 2 * sizeof(outer), sizeof(options));
		if (inner.rta_type == TCA_TBF_PARMS)
			return (struct shaper){options.rate.rate, options.buffer * TICK_SEC};
		break;
	}
	return (struct shaper){0};
}

/* The first shaper on the link in a list of qdiscs. */
static struct shaper shaper_on(const unsigned char *answer, size_t n_bytes, int link)
{
	const size_t head_bytes = (size_t)NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct tcmsg));
	struct nlmsghdr header;
	struct tcmsg head;

	for (size_t at = 0; at + head_bytes <= n_bytes; at += NLMSG_ALIGN((size_t)header.nlmsg_len)) {
		memcpy(&header, answer + at, sizeof(header));
		memcpy(&head, answer + at + NLMSG_HDRLEN, sizeof(head));
		if (header.nlmsg_len < head_bytes || header.nlmsg_len > n_bytes - at)
			break;
		if (header.nlmsg_type == RTM_NEWQDISC && head.tcm_ifindex == link)
			return read_shaper(answer + at + head_bytes, header.nlmsg_len - head_bytes);
	}
	return (struct shaper){0};
}

/* Tells in *context the shaper of this node's own link. */
static int tell_shaper(void *context, unsigned node)
{
	_Alignas(8) static unsigned char answer[16384];
	const struct {
		struct nlmsghdr header;
		struct tcmsg head;
	} question = {.header = {.nlmsg_len = sizeof(question),
				 .nlmsg_type = RTM_GETQDISC,
				 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	int fd;
	ssize_t n_bytes;

	(void)node;
	if (psd_netlink_open(&fd) || send(fd, &question, sizeof(question), 0) < 0)
		return 100;
	n_bytes = recv(fd, answer, sizeof(answer), 0);
	if (n_bytes < 0)
		return 101;
	*(struct shaper *)context = shaper_on(answer, (size_t)n_bytes, (int)if_nametoindex("eth0"));
	return 0;
}

static double burst_sec(double rate_bps)
{
	const struct psd_emulation_options options = {.n_nodes = 1, .has_rate = true, .rate_bps = rate_bps};
	struct shaper *const shaper = share(sizeof(*shaper));
	struct psd_emulation *emulation;
	struct psd_error err;

	psd_emulation_close(open_or_skip(1));
	cr_assert_eq(psd_emulation_open(&options, &emulation, &err), PSD_OK, "%s", err.text);
	(void)start_in_node(emulation, 0, tell_shaper, shaper);
	expect_success();
	psd_emulation_close(emulation);
	return shaper->burst_sec;
}

/* A processor with other work calls a shaper late by a scheduler's slice, 4 ms: what the burst does not hold by then,
 * the link has lost. */
Test(emulation, a_link_keeps_what_it_could_carry_while_a_processor_has_other_work)
{
	cr_assert_float_eq(burst_sec(1e9), 4e-3, 1e-5);
	cr_assert_float_eq(burst_sec(5e9), 4e-3, 1e-5);
}

/* 1 Gbit/s are 125 MB/s. */
Test(emulation, links_of_groups_have_their_own_rates)
{
	static const double ratios[] = {1.0, 0.25};
	const struct psd_emulation_options options = {
		.n_nodes = 2, .has_rate = true, .rate_bps = 1e9, .node_ratios = ratios};
	struct psd_emulation *emulation;
	struct psd_error err;

	psd_emulation_close(open_or_skip(1));
	cr_assert_eq(psd_emulation_open(&options, &emulation, &err), PSD_OK, "%s", err.text);
	for (unsigned node = 0; node < 2; node++) {
		struct shaper *const shaper = share(sizeof(*shaper));

		(void)start_in_node(emulation, node, tell_shaper, shaper);
		expect_success();
		cr_expect_float_eq((double)shaper->bytes_per_sec, 125e6 * ratios[node], 1.0);
	}
	psd_emulation_close(emulation);
}

/* ---- connections of a node ---- */

Test(emulation, nodes_connect_to_each_other)
{
	struct psd_emulation *const emulation = open_or_skip(2);

	expect_greetings(emulation);
	psd_emulation_close(emulation);
}

static bool kernel_has_cubic(void)
{
	char line[256] = "";
	FILE *const file = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");

	if (!file)
		return false;
	(void)!fgets(line, sizeof(line), file);
	fclose(file);
	return strstr(line, "cubic") != NULL;
}

/* A connection to the next node as a program has it that asks for nothing; -1: none. */
static int greet_and_connect(void *context, unsigned node)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[PSD_EMULATION_ADDRESS_MAX];

	if (greet(context, node)) /* so that the other one listens */
		return -1;
	inet_pton(AF_INET, psd_emulation_address(node + 1, text), &address.sin_addr);
	return connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -1 : fd;
}

static int look_at_congestion(void *context, unsigned node)
{
	const int fd = greet_and_connect(context, node);
	char congestion[PSD_SOCKET_CONGESTION_MAX];

	if (fd < 0)
		return 100;
	return strcmp(psd_socket_congestion(fd, congestion), "cubic") == 0 || !kernel_has_cubic() ? 0 : 102;
}

/* A port holds 5 ms of its rate, half of which the senders share. */
static int look_at_buffer(void *context, unsigned node)
{
	const int fd = greet_and_connect(NULL, node), expected_bytes = *(const int *)context;
	socklen_t n_bytes = sizeof(int);
	int buffer_bytes = 0;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, &n_bytes) < 0)
		return 100;
	return buffer_bytes == expected_bytes ? 0 : 102;
}

static int be_greeted_slowly(void *context, unsigned node)
{
	const int result = be_greeted(context, node);

	(void)poll(&(struct pollfd){.fd = *(const int *)context, .events = POLLIN}, 1, (int)(1000 * WITHIN_SEC));
	return result; /* now the listener may go */
}

Test(emulation, a_program_that_asks_for_nothing_gets_cubic)
{
	struct psd_emulation *const emulation = open_or_skip(2);
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	(void)start_in_node(emulation, 1, be_greeted_slowly, &ends[0]);
	(void)start_in_node(emulation, 0, look_at_congestion, NULL);
	expect_success();
	cr_assert_eq(write(ends[1], "1", 1), 1);
	expect_success();
	psd_emulation_close(emulation);
}

Test(emulation, senders_share_what_a_port_holds)
{
	const struct psd_emulation_options options = {
		.n_nodes = 2, .has_rate = true, .rate_bps = 1e9, .most_connections = 4};
	const int buffer_bytes = (int)(0.5 * 1e9 / 8 * 5e-3 / options.most_connections);
	struct psd_emulation *emulation;
	struct psd_error err;
	int ends[2];

	psd_emulation_close(open_or_skip(1));
	if (access("/proc/sys/net/ipv4/tcp_rmem", W_OK) < 0)
		cr_skip_test("this machine lets nobody change a node's buffers");
	cr_assert_eq(psd_emulation_open(&options, &emulation, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(pipe(ends), 0);
	(void)start_in_node(emulation, 1, be_greeted_slowly, &ends[0]);
	(void)start_in_node(emulation, 0, look_at_buffer, (void *)(uintptr_t)&buffer_bytes);
	expect_success();
	cr_assert_eq(write(ends[1], "1", 1), 1);
	expect_success();
	psd_emulation_close(emulation);
}

Test(emulation, links_of_any_size_connect)
{
	static const uint32_t mtus_bytes[] = {PSD_EMULATION_MIN_MTU, 9000, PSD_EMULATION_MAX_MTU};

	psd_emulation_close(open_or_skip(1));
	for (unsigned i = 0; i < sizeof(mtus_bytes) / sizeof(*mtus_bytes); i++) {
		const struct psd_emulation_options options = {.n_nodes = 2,
							      .has_rate = true,
							      .rate_bps = PSD_RUN_MAX_BPS,
							      .has_mtu = true,
							      .mtu_bytes = mtus_bytes[i]};
		struct psd_emulation *emulation;
		struct psd_error err;

		cr_assert_eq(psd_emulation_open(&options, &emulation, &err), PSD_OK, "%s", err.text);
		expect_greetings(emulation);
		psd_emulation_close(emulation);
	}
}

/* connect's errno, blocking; 0 if it succeeded. */
static int try_to_connect(const char *host, uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, host, &address.sin_addr);
	return connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
}

static int try_to_leave(void *context, unsigned node)
{
	const uint16_t *const outside_port = context;

	(void)node;
	if (try_to_connect("192.0.2.1", 80) != ENETUNREACH) /* TEST-NET-1, RFC 5737 */
		return 100;
	return try_to_connect("127.0.0.1", *outside_port) == ECONNREFUSED ? 0 : 101;
}

Test(emulation, a_node_does_not_reach_the_outside)
{
	struct psd_emulation *const emulation = open_or_skip(1);
	struct psd_error err;
	uint16_t port;
	int listener;

	cr_assert_eq(psd_socket_listen("127.0.0.1", 0, &(struct psd_socket_options){0}, &listener, &port, &err), PSD_OK,
		     "%s", err.text);
	cr_assert_eq(try_to_connect("127.0.0.1", port), 0); /* from here it answers */
	(void)start_in_node(emulation, 0, try_to_leave, &port);
	expect_success();
	psd_emulation_close(emulation);
}

/* ---- other users, other machines, other options ---- */

static int check_identity(void *context, unsigned node)
{
	const uid_t *const user = context;

	(void)node;
	return geteuid() == *user ? 0 : 100;
}

Test(emulation, a_user_without_rights_gets_the_same)
{
	struct psd_emulation *emulation;
	uid_t user;

	become_nobody();
	user = geteuid();
	emulation = open_or_skip(2);
	(void)start_in_node(emulation, 0, check_addresses, NULL);
	expect_success();
	(void)start_in_node(emulation, 0, check_identity, &user);
	expect_success();
	expect_greetings(emulation);
	(void)start_in_node(emulation, 0, sleep_long, NULL);
	end_in_nodes();
	psd_emulation_close(emulation);
	expect_nothing_left();
}

/* As container runtimes do by default: unshare is refused. */
static void forbid_namespaces(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = sizeof(rules) / sizeof(*rules), .filter = rules};

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		cr_skip_test("this kernel has no seccomp filters");
}

Test(emulation, says_what_is_missing_where_namespaces_are_forbidden)
{
	const struct psd_emulation_options options = {.n_nodes = 2};
	const unsigned n_descriptors = count_descriptors(false);
	struct psd_emulation *emulation = NULL;
	struct psd_error err;

	adopt_orphans();
	forbid_namespaces();
	cr_assert_eq(psd_emulation_open(&options, &emulation, &err), PSD_ERUN);
	cr_assert_not_null(strstr(err.text, "forbids user namespaces (unshare: Operation not permitted)"), "%s",
			   err.text);
	cr_assert_not_null(strstr(err.text, "kernel.unprivileged_userns_clone"), "%s", err.text);
	cr_assert_null(emulation);
	expect_nothing_left();
	cr_assert_eq(count_descriptors(false), n_descriptors);
}

static void expect_refusal(struct psd_emulation_options options, const char *text)
{
	struct psd_emulation *emulation;
	struct psd_error err;

	cr_assert_eq(psd_emulation_open(&options, &emulation, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, text);
}

Test(emulation, options_out_of_range_are_refused)
{
	expect_refusal((struct psd_emulation_options){.n_nodes = 0}, "emulated cluster: 0 nodes, must be 1 to 400");
	expect_refusal((struct psd_emulation_options){.n_nodes = 401}, "emulated cluster: 401 nodes, must be 1 to 400");
	expect_refusal((struct psd_emulation_options){.n_nodes = 1, .has_mtu = true, .mtu_bytes = 500},
		       "emulated cluster: an MTU of 500 bytes, must be 576 to 65535");
}

Test(emulation, a_rate_out_of_range_is_refused)
{
	psd_emulation_close(open_or_skip(1));
	expect_refusal((struct psd_emulation_options){.n_nodes = 1, .has_rate = true, .rate_bps = 1e3},
		       "emulated cluster: a link of 1 kb/s, must be 100kbps to 400Gbps");
}
