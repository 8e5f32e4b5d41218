/* The hosts file and the number of this host. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "real/cluster/hosts.h"

static enum psd_status parse(struct psd_hosts *hosts, const char *text, struct psd_error *err)
{
	return psd_hosts_parse(hosts, "h.txt", text, strlen(text), err);
}

static void expect_error(const char *text, const char *expected)
{
	struct psd_hosts hosts;
	struct psd_error err = {.text = "accepted"};

	cr_expect_eq(parse(&hosts, text, &err), PSD_EINVAL, "'%s'", text);
	cr_expect_str_eq(err.text, expected);
}

Test(hosts, every_form_of_a_line_is_read)
{
	static const struct psd_mesh_host expected[] = {{"node0", PSD_HOSTS_FIRST_PORT},
							{"node1", 7500},
							{"fe80::1", 80},
							{"fe80::2", PSD_HOSTS_FIRST_PORT},
							{"node0", PSD_HOSTS_FIRST_PORT + 1}};
	struct psd_hosts hosts;
	struct psd_error err;
	unsigned nth;

	cr_assert_eq(parse(&hosts,
			   "# ours\nnode0\n\n  node1:7500\t# by the other interface\r\n[fe80::1]:80\nfe80::2\nnode0",
			   &err),
		     PSD_OK);
	cr_assert_eq(hosts.n_hosts, 5);
	for (unsigned h = 0; h < 5; h++) {
		cr_expect_str_eq(hosts.hosts[h].address, expected[h].address);
		cr_expect_eq(hosts.hosts[h].port, expected[h].port, "host %u", h);
	}
	cr_expect_eq(psd_hosts_beside(&hosts, 4, &nth), 2);
	cr_expect_eq(nth, 1);
	cr_expect_eq(psd_hosts_beside(&hosts, 1, &nth), 1);
	cr_expect_eq(nth, 0);
	psd_hosts_release(&hosts);
}

/* RFC 1035: with its lengths a name has 255 bytes, of which 253 are written. */
Test(hosts, names_are_as_long_as_a_resolver_takes_them)
{
	enum { LONGEST = 253 };
	char text[LONGEST + 2];
	struct psd_hosts hosts;
	struct psd_error err;

	memset(text, 'a', sizeof(text));
	text[LONGEST] = '\0';
	cr_assert_eq(parse(&hosts, text, &err), PSD_OK, "%s", err.text);
	cr_expect_str_eq(hosts.hosts[0].address, text);
	psd_hosts_release(&hosts);
	text[LONGEST] = 'a';
	text[LONGEST + 1] = '\0';
	cr_expect_eq(parse(&hosts, text, &err), PSD_EINVAL);
}

Test(hosts, a_line_that_is_not_a_host_is_named)
{
	expect_error("", "h.txt: the file has no host, must name at least one");
	expect_error("# nobody\n", "h.txt: the file has no host, must name at least one");
	expect_error("a\nb:0\n", "h.txt:2: 'b:0' is not a host, must be ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT with a "
				 "port from 1 to 65535");
	expect_error("b:65536", "h.txt:1: 'b:65536' is not a host, must be ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT "
				"with a port from 1 to 65535");
	expect_error("b:+1", "h.txt:1: 'b:+1' is not a host, must be ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT with a "
			     "port from 1 to 65535");
	expect_error("[::1", "h.txt:1: '[::1' is not a host, must be ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT with a "
			     "port from 1 to 65535");
	expect_error("a slots=2", "h.txt:1: 'a slots=2' is not a host, must be ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT "
				  "with a port from 1 to 65535");
	expect_error("a\nb\na:7411", "h.txt:3: a port 7411 is already the address of host 0, each host needs its own");
}

/* RFC 2606 keeps the name from ever being one. */
Test(hosts, a_host_that_nobody_knows_is_named_with_its_line)
{
	static const char text[] = "127.0.0.1\n\nnobody.invalid:80\n127.0.0.1\n";
	struct psd_hosts hosts;
	struct psd_error err;

	cr_assert_eq(psd_hosts_parse(&hosts, "h.txt", text, strlen(text), &err), PSD_OK);
	cr_expect_eq(psd_hosts_look_up(&hosts, "h.txt", 0, &err), PSD_OK, "host 0 connects to nobody");
	for (unsigned self = 1; self < hosts.n_hosts; self++) {
		cr_expect_eq(psd_hosts_look_up(&hosts, "h.txt", self, &err), PSD_EINVAL);
		cr_expect_eq(strncmp(err.text, "h.txt:3: no host 'nobody.invalid': ", 35), 0, "%s", err.text);
	}
	psd_hosts_release(&hosts);
}

static void expect_hidden(const char *text, unsigned self, bool expected)
{
	struct psd_hosts hosts;
	struct psd_error err;

	cr_assert_eq(psd_hosts_parse(&hosts, "h.txt", text, strlen(text), &err), PSD_OK);
	cr_expect_eq(psd_hosts_is_hidden(&hosts, self), expected, "host %u of '%s'", self, text);
	psd_hosts_release(&hosts);
}

/* RFC 5737 keeps 192.0.2.0 for examples. */
Test(hosts, a_loopback_address_is_hidden_from_other_machines)
{
	expect_hidden("127.0.1.1\n192.0.2.7\n", 0, true);
	expect_hidden("127.0.1.1\n192.0.2.7\n", 1, false);
	expect_hidden("nobody.invalid\n[::1]\n192.0.2.7\n", 1, true);
	expect_hidden("127.0.0.1\n127.0.0.2\n", 0, false); /* all on this machine */
	expect_hidden("127.0.0.1\nnobody.invalid\n", 0, false);
}

static void expect_rank(const char *name, const char *value, enum psd_status expected_status, unsigned expected)
{
	struct psd_error err;
	unsigned rank = 99;

	clearenv();
	if (name)
		setenv(name, value, 1);
	cr_expect_eq(psd_hosts_find_rank(4, &rank, &err), expected_status, "%s=%s", name ? name : "nothing", value);
	if (!expected_status)
		cr_expect_eq(rank, expected);
}

Test(hosts, a_launcher_says_which_host_this_is)
{
	expect_rank("OMPI_COMM_WORLD_RANK", "3", PSD_OK, 3);
	expect_rank("SLURM_PROCID", "0", PSD_OK, 0);
	expect_rank("HOROVOD_RANK", "2", PSD_OK, 2);
	expect_rank("RANK", "2", PSD_EINVAL, 0); /* torchrun sets WORLD_SIZE, too */
	expect_rank("PMI_RANK", "4", PSD_EINVAL, 0);
	expect_rank("PMI_RANK", "", PSD_EINVAL, 0);
	expect_rank(NULL, "", PSD_EINVAL, 0);
}

struct launch {
	const char *size, *local_size;
};

static const struct launch open_mpi = {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"};
static const struct launch mpich = {"PMI_SIZE", "MPI_LOCALNRANKS"};

static void expect_launched(const struct launch *launch, const char *n, const char *n_here, enum psd_status status,
			    unsigned n_hosts)
{
	struct psd_hosts hosts = {.n_hosts = 99};
	struct psd_error err;

	clearenv();
	if (n)
		setenv(launch->size, n, 1);
	if (n_here)
		setenv(launch->local_size, n_here, 1);
	cr_assert_eq(psd_hosts_launched(&hosts, &err), status);
	if (status)
		return;
	cr_expect_eq(hosts.n_hosts, n_hosts);
	for (unsigned h = 0; h < hosts.n_hosts; h++) {
		cr_expect_str_eq(hosts.hosts[h].address, "127.0.0.1");
		cr_expect_eq(hosts.hosts[h].port, PSD_HOSTS_FIRST_PORT + h);
	}
	psd_hosts_release(&hosts);
}

Test(hosts, mpirun_on_one_machine_needs_no_file)
{
	expect_launched(&open_mpi, "3", "3", PSD_OK, 3);
	expect_launched(&open_mpi, "1", "1", PSD_OK, 0);
	expect_launched(&open_mpi, NULL, NULL, PSD_OK, 0);
	expect_launched(&open_mpi, "4", "2", PSD_EINVAL, 0);
	expect_launched(&open_mpi, "4", NULL, PSD_EINVAL, 0);
	expect_launched(&mpich, "3", "3", PSD_OK, 3);
	expect_launched(&mpich, "1", "1", PSD_OK, 0);
	expect_launched(&mpich, "4", "2", PSD_EINVAL, 0);
	expect_launched(&mpich, "4", NULL, PSD_EINVAL, 0); /* srun sets it, too */
}

static const char srun_alone[] = "srun has started several processes (SLURM_PROCID=2), this is number 2: name their "
				 "hosts with '--hosts'. A cluster of its own needs 'env -u SLURM_PROCID -u "
				 "SLURM_STEP_NUM_TASKS psd-run ...'";
static const char torchrun_alone[] = "torchrun has started 2 processes (WORLD_SIZE=2), this is number 0: name their "
				     "hosts with '--hosts'. A cluster of its own needs 'env -u RANK -u WORLD_SIZE "
				     "psd-run ...'";

/* An environment of one or several launchers, and the refusal of a process without --hosts; NULL: it may go on. */
static const struct environment {
	const char *variables[8]; /* names and values */
	const char *refusal;
} environments[] = {
	{{"SLURM_PROCID", "0"}, NULL}, /* a batch script */
	{{"SLURM_PROCID", "2"}, srun_alone},
	{{"SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "1"}, NULL},
	{{"SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "3"}, "srun has started 3 processes"},
	{{"PMIX_RANK", "0", "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "3"}, "srun has started 3 processes"},
	{{"PMIX_RANK", "1"}, "srun has started several processes"},
	{{"RANK", "0", "WORLD_SIZE", "2"}, torchrun_alone},
	{{"RANK", "1", "WORLD_SIZE", "2"}, "torchrun has started 2 processes"},
	{{"WORLD_SIZE", "2"}, "torchrun has started 2 processes"},
	{{"RANK", "0", "WORLD_SIZE", "1"}, NULL},
	{{"RANK", "3"}, NULL}, /* somebody else's */
	{{"RANK", "0", "WORLD_SIZE", "two"}, "WORLD_SIZE is 'two' in the environment, must be a number"},
	{{"HOROVOD_RANK", "0", "HOROVOD_SIZE", "2"}, "horovodrun has started 2 processes"},
	{{"OMPI_COMM_WORLD_SIZE", "1", "SLURM_PROCID", "2"}, NULL}, /* mpirun within */
};

Test(hosts, a_process_among_several_is_never_alone)
{
	for (size_t i = 0; i < sizeof(environments) / sizeof(environments[0]); i++) {
		const char *const *variables = environments[i].variables, *const refusal = environments[i].refusal;
		struct psd_hosts hosts = {.n_hosts = 99};
		struct psd_error err = {.text = ""};

		clearenv();
		for (unsigned v = 0; variables[v]; v += 2)
			setenv(variables[v], variables[v + 1], 1);
		cr_expect_eq(psd_hosts_launched(&hosts, &err), refusal ? PSD_EINVAL : PSD_OK, "%zu: %s", i, err.text);
		cr_expect_eq(hosts.n_hosts, refusal ? 99 : 0, "%zu", i);
		if (refusal)
			cr_expect(strncmp(err.text, refusal, strlen(refusal)) == 0, "%zu: %s", i, err.text);
	}
}

Test(hosts, a_launcher_has_a_process_for_each_host)
{
	struct psd_error err = {.text = ""};
	unsigned rank;

	clearenv();
	setenv("RANK", "3", 1);
	setenv("WORLD_SIZE", "4", 1);
	cr_assert_eq(psd_hosts_find_rank(4, &rank, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(rank, 3);
	cr_assert_eq(psd_hosts_find_rank(5, &rank, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "--hosts: the file has 5 hosts, torchrun has started 4 processes (WORLD_SIZE): each "
				   "host needs one, or give '--rank'");
}
