/* Two hosts meet on loopback, one in a thread: what they agree on, and what they refuse. */
#define _GNU_SOURCE
#include "tests/real/net/meeting.h"
#include "tests/test_with.h"

Test(mesh, hosts_are_joined_by_every_line)
{
	struct host hosts[HOSTS] = {{.options = {.n_connections = 3, .terms = "seed: 1\n"}},
				    {.options = {.n_connections = 3, .terms = "seed: 1\n"}}};

	meet(hosts);
	for (unsigned line = 0; line < 3; line++) {
		const char sent = (char)('a' + line);
		char received;

		cr_assert_eq(hosts[0].status, PSD_OK, "%s", hosts[0].err.text);
		cr_assert_eq(hosts[1].status, PSD_OK, "%s", hosts[1].err.text);
		cr_assert_eq(hosts[0].fds[0 * 3 + line], -1, "to itself");
		cr_assert_eq(write(hosts[0].fds[1 * 3 + line], &sent, 1), 1);
		while (read(hosts[1].fds[0 * 3 + line], &received, 1) != 1)
			;
		cr_assert_eq(received, sent);
	}
	part(hosts);
}

Test(mesh, one_machine_has_one_clock)
{
	struct host hosts[HOSTS] = {{.options = {.n_connections = 1, .terms = ""}},
				    {.options = {.n_connections = 1, .terms = ""}}};

	meet(hosts);
	cr_assert_eq(hosts[1].status, PSD_OK, "%s", hosts[1].err.text);
	cr_assert_eq(hosts[1].clock.ahead_sec, 0.0);
	cr_assert_gt(hosts[1].clock.rtt_sec, 0.0);
	cr_assert_eq(hosts[0].clock.rtt_sec, hosts[1].clock.rtt_sec);
	part(hosts);
}

/* Each hears of the other, and names what differs; `theirs` seen from host 0. */
static void check_refused(const char *ours, const char *theirs, unsigned their_lines, const char *words,
			  const char *their_words)
{
	struct host hosts[HOSTS] = {{.options = {.n_connections = 1, .terms = ours}},
				    {.options = {.n_connections = their_lines, .terms = theirs}}};

	meet(hosts);
	cr_assert_eq(hosts[0].status, PSD_ERUN);
	cr_assert_eq(hosts[1].status, PSD_ERUN);
	cr_expect(strstr(hosts[0].err.text, words), "'%s' is not in '%s'", words, hosts[0].err.text);
	cr_expect(strstr(hosts[1].err.text, their_words), "'%s' is not in '%s'", their_words, hosts[1].err.text);
	cr_expect(!strncmp(hosts[0].err.text, "worker 1 at 127.0.0.1:", 22), "%s", hosts[0].err.text);
	cr_expect(!strncmp(hosts[1].err.text, "worker 0 at 127.0.0.1:", 22), "%s", hosts[1].err.text);
	part(hosts);
}

TEST_ROW(mesh, other_terms_are_refused_on_both_sides,
	 check_refused("seed: 1\nbatch: 8\n", "seed: 1\nbatch: 9\n", 1,
		       "has another build, scenario or other options: 'batch' is 8 here, 9 there",
		       "has another build, scenario or other options: 'batch' is 9 here, 8 there"))

/* Then one side would wait for lines that never come. */
TEST_ROW(mesh, terms_are_compared_before_further_lines_open,
	 check_refused("streams: 1\n", "streams: 4\n", 4, "'streams' is 1 here, 4 there",
		       "'streams' is 4 here, 1 there"))

Test(mesh, terms_of_another_version_are_refused)
{
	check_refused("seed: 1\n", "seed: 1\nrate: 2\n", 1, "'rate' is to be agreed on only there",
		      "'rate' is to be agreed on only here");
	check_refused("seed: 1\n", "side: 1\n", 1, "'seed' is to be agreed on here, 'side' there",
		      "'side' is to be agreed on here, 'seed' there");
}
