#define _POSIX_C_SOURCE 200809L
#include "real/cluster/hosts.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "real/net/socket.h"

#define LOOPBACK "127.0.0.1"

enum { MOST_PORT = 65535 };

struct reader {
	struct psd_hosts *hosts;
	struct psd_place at;
	struct psd_error *err;
};

void psd_hosts_release(struct psd_hosts *hosts)
{
	free(hosts->hosts);
	free(hosts->lines);
	*hosts = (struct psd_hosts){.n_hosts = 0};
}

unsigned psd_hosts_beside(const struct psd_hosts *hosts, unsigned host, unsigned *nth)
{
	unsigned n_beside = 0;

	*nth = 0;
	for (unsigned h = 0; h < hosts->n_hosts; h++) {
		if (strcmp(hosts->hosts[h].address, hosts->hosts[host].address) != 0)
			continue;
		*nth += h < host;
		n_beside++;
	}
	return n_beside;
}

/* Accepts digits only: no sign, no space. */
static bool read_number(const char *text, size_t length, unsigned most, unsigned *number)
{
	*number = 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*number = 10 * *number + (unsigned)(text[i] - '0');
		if (*number > most)
			return false;
	}
	return length > 0;
}

static enum psd_status refuse(const struct reader *reader, const char *text, size_t length)
{
	return psd_error_set(
		reader->err, PSD_EINVAL, reader->at,
		"'%.*s' is not a host, must be ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT with a port from 1 to %d",
		length > 80 ? 80 : (int)length, text, MOST_PORT);
}

static enum psd_status add(const struct reader *reader, const char *address, size_t length, unsigned port)
{
	struct psd_hosts *hosts = reader->hosts;
	struct psd_mesh_host *grown, *host;
	unsigned *lines;

	if (hosts->n_hosts == PSD_HOSTS_MAX)
		return psd_error_set(reader->err, PSD_EINVAL, reader->at,
				     "the file has more than %d hosts, the most that psd-run accepts", PSD_HOSTS_MAX);
	grown = realloc(hosts->hosts, (hosts->n_hosts + 1) * sizeof(*grown));
	if (!grown)
		return psd_error_set(reader->err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for hosts");
	hosts->hosts = grown;
	lines = realloc(hosts->lines, (hosts->n_hosts + 1) * sizeof(*lines));
	if (!lines)
		return psd_error_set(reader->err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for hosts");
	hosts->lines = lines;
	lines[hosts->n_hosts] = reader->at.line;
	host = &grown[hosts->n_hosts++];
	*host = (struct psd_mesh_host){.port = (uint16_t)port};
	memcpy(host->address, address, length);
	if (port == 0) {
		unsigned nth;

		(void)psd_hosts_beside(hosts, hosts->n_hosts - 1, &nth);
		host->port = (uint16_t)(PSD_HOSTS_FIRST_PORT + nth);
	}
	for (unsigned h = 0; h + 1 < hosts->n_hosts; h++)
		if (grown[h].port == host->port && !strcmp(grown[h].address, host->address))
			return psd_error_set(reader->err, PSD_EINVAL, reader->at,
					     "%s port %u is already the address of host %u, each host needs its own",
					     host->address, host->port, h);
	return PSD_OK;
}

static enum psd_status read_host(const struct reader *reader, const char *text, size_t length)
{
	const char *const closing = text[0] == '[' ? memchr(text, ']', length) : NULL;
	const char *const first_colon = memchr(text, ':', length);
	const bool is_bare =
		!closing && first_colon && memchr(first_colon + 1, ':', length - (size_t)(first_colon + 1 - text));
	const char *const address = closing ? text + 1 : text;
	const char *const address_end = closing ? closing : first_colon && !is_bare ? first_colon : text + length;
	const char *const rest = closing ? closing + 1 : address_end;
	const size_t address_length = (size_t)(address_end - address), rest_length = length - (size_t)(rest - text);
	unsigned port = 0;

	if (address_length == 0 || address_length >= PSD_MESH_ADDRESS_MAX || (text[0] == '[' && !closing) ||
	    memchr(text, ' ', length) || memchr(text, '\t', length))
		return refuse(reader, text, length);
	if (rest_length > 0 &&
	    (rest[0] != ':' || !read_number(rest + 1, rest_length - 1, MOST_PORT, &port) || port == 0))
		return refuse(reader, text, length);
	return add(reader, address, address_length, port);
}

static enum psd_status read_line(const struct reader *reader, const char *line, size_t length)
{
	const char *const comment = memchr(line, '#', length);

	length = comment ? (size_t)(comment - line) : length;
	while (length > 0 && strchr(" \t\r", line[length - 1]))
		length--;
	while (length > 0 && strchr(" \t", line[0])) {
		line++;
		length--;
	}
	return length > 0 ? read_host(reader, line, length) : PSD_OK;
}

enum psd_status psd_hosts_parse(struct psd_hosts *hosts, const char *path, const char *text, size_t length,
				struct psd_error *err)
{
	struct psd_hosts read = {.n_hosts = 0};
	struct reader reader = {.hosts = &read, .at = {.path = path}, .err = err};
	const char *const end = text + length;
	enum psd_status status = PSD_OK;

	if (memchr(text, '\0', length))
		return psd_error_set(err, PSD_EINVAL, reader.at, "the file contains a zero byte, must be text");
	while (text < end && !status) {
		const char *const newline = memchr(text, '\n', (size_t)(end - text));
		const char *const line_end = newline ? newline : end;

		reader.at.line++;
		status = read_line(&reader, text, (size_t)(line_end - text));
		text = newline ? newline + 1 : end;
	}
	reader.at.line = 0;
	if (!status && read.n_hosts == 0)
		status = psd_error_set(err, PSD_EINVAL, reader.at, "the file has no host, must name at least one");
	if (status)
		psd_hosts_release(&read);
	else
		*hosts = read;
	return status;
}

enum psd_status psd_hosts_load(struct psd_hosts *hosts, const char *path, struct psd_error *err)
{
	char *text;
	size_t length;

	PSD_TRY(psd_file_read(&text, &length, path, err));
	enum psd_status status = psd_hosts_parse(hosts, path, text, length, err);
	free(text);
	return status;
}

enum psd_status psd_hosts_look_up(const struct psd_hosts *hosts, const char *path, unsigned self, struct psd_error *err)
{
	for (unsigned h = 0; h <= self; h++) {
		const struct psd_place at = {.path = path, .line = hosts->lines[h]};
		struct addrinfo *found;
		struct psd_error cause;
		const enum psd_status status =
			psd_socket_look_up(hosts->hosts[h].address, hosts->hosts[h].port, &found, &cause);

		if (status)
			return psd_error_set(err, status, at, "%s", cause.text);
		freeaddrinfo(found);
	}
	return PSD_OK;
}

/* False also if the name is not known. */
static bool is_loopback(const struct psd_mesh_host *host, bool *is_known)
{
	struct addrinfo *found;
	struct psd_error err;
	bool is_loopback = false;

	*is_known = !psd_socket_look_up(host->address, host->port, &found, &err);
	if (!*is_known)
		return false;
	if (found->ai_family == AF_INET)
		is_loopback = ntohl(((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr.s_addr) >> 24 == 127;
	else if (found->ai_family == AF_INET6)
		is_loopback = IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)(void *)found->ai_addr)->sin6_addr);
	freeaddrinfo(found);
	return is_loopback;
}

bool psd_hosts_is_hidden(const struct psd_hosts *hosts, unsigned self)
{
	bool is_known;

	if (!is_loopback(&hosts->hosts[self], &is_known))
		return false;
	for (unsigned h = 0; h < hosts->n_hosts; h++)
		if (!is_loopback(&hosts->hosts[h], &is_known) && is_known)
			return true;
	return false;
}

/* Environment of the programs that start several processes, the innermost first: one may start another. */
static const struct launcher {
	const char *program;
	const char *rank, *size; /* size: NULL: not told */
	const char *local_size;	 /* processes on this machine; NULL: not told */
} launchers[] = {
	{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{"mpirun", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"},
	{"torchrun", "RANK", "WORLD_SIZE", NULL},
	{"horovodrun", "HOROVOD_RANK", "HOROVOD_SIZE", NULL},
	{"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", NULL},
	{"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"}, /* MPICH and its relatives; srun sets the first two */
	{"srun", "PMIX_RANK", NULL, NULL},
	{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", NULL},
};

enum { N_LAUNCHERS = sizeof(launchers) / sizeof(launchers[0]), MOST_PROCESSES = 1 << 24 };

/* RANK alone may be anybody's; the size of the others counts without a rank, too. */
static bool has_launched(const struct launcher *launcher)
{
	const bool has_size = launcher->size && getenv(launcher->size);

	return has_size || (getenv(launcher->rank) && strcmp(launcher->program, "torchrun") != 0);
}

static const struct launcher *find_launcher(void)
{
	for (unsigned i = 0; i < N_LAUNCHERS; i++)
		if (has_launched(&launchers[i]))
			return &launchers[i];
	return NULL;
}

/* The innermost that tells how many processes there are, or that this is not the first. */
static const struct launcher *find_counting_launcher(void)
{
	for (unsigned i = 0; i < N_LAUNCHERS; i++) {
		const struct launcher *const launcher = &launchers[i];
		const char *const rank = getenv(launcher->rank);

		if (has_launched(launcher) &&
		    ((launcher->size && getenv(launcher->size)) || (rank && strcmp(rank, "0") != 0)))
			return launcher;
	}
	return NULL;
}

/* A number in the environment; `absent` where the variable is not set, or the launcher has none. */
static enum psd_status read_launched(const char *name, unsigned absent, unsigned *n, struct psd_error *err)
{
	const char *const value = name ? getenv(name) : NULL;

	*n = absent;
	if (!value || read_number(value, strlen(value), MOST_PROCESSES, n))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "%s is '%.80s' in the environment, must be a number", name,
			     value);
}

/* Refuses a process among several: alone, each would train all of the job. */
static enum psd_status refuse_alone(const struct launcher *launcher, unsigned rank, unsigned n, struct psd_error *err)
{
	const char *const sign = launcher->size && getenv(launcher->size) ? launcher->size : launcher->rank;
	char others[32] = "several processes";

	if (n > 0)
		snprintf(others, sizeof(others), "%u processes", n);
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
			     "%s has started %s (%s=%s), this is number %u: name their hosts with '--hosts'. A cluster "
			     "of its own needs 'env -u %s%s%s psd-run ...'",
			     launcher->program, others, sign, getenv(sign), rank, launcher->rank,
			     launcher->size ? " -u " : "", launcher->size ? launcher->size : "");
}

enum psd_status psd_hosts_launched(struct psd_hosts *hosts, struct psd_error *err)
{
	const struct launcher *const launcher = find_counting_launcher();
	struct psd_hosts made = {.n_hosts = 0};
	const struct reader reader = {.hosts = &made, .err = err};
	unsigned rank = 0, n = 0, n_here = 0;
	enum psd_status status = launcher ? read_launched(launcher->rank, 0, &rank, err) : PSD_OK;

	if (launcher && !status)
		status = read_launched(launcher->size, 0, &n, err);
	if (launcher && !status)
		status = read_launched(launcher->local_size, 0, &n_here, err);
	if (!status && (n > 1 || rank > 0) && (n < 2 || n_here != n || n > PSD_HOSTS_MAX))
		status = refuse_alone(launcher, rank, n, err);
	for (unsigned h = 0; h < n && n > 1 && !status; h++)
		status = add(&reader, LOOPBACK, strlen(LOOPBACK), 0);
	if (status)
		psd_hosts_release(&made);
	else
		*hosts = made;
	return status;
}

bool psd_hosts_guess_rank(bool is_one_of_several, unsigned *rank)
{
	const struct launcher *const launcher = is_one_of_several ? find_launcher() : find_counting_launcher();
	const char *const value = launcher ? getenv(launcher->rank) : NULL;
	struct psd_error ignored;
	unsigned n = 0;

	if (!value || !read_number(value, strlen(value), MOST_PROCESSES, rank))
		return false;
	return is_one_of_several || *rank > 0 || (!read_launched(launcher->size, 0, &n, &ignored) && n > 1);
}

enum psd_status psd_hosts_find_rank(unsigned n_hosts, unsigned *rank, struct psd_error *err)
{
	const struct launcher *const launcher = find_launcher();
	const char *const value = launcher ? getenv(launcher->rank) : NULL;
	unsigned n;

	if (!value)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "--hosts: this process needs its number, by '--rank' or in the environment of "
				     "mpirun, srun or torchrun");
	PSD_TRY(read_launched(launcher->size, n_hosts, &n, err));
	if (n != n_hosts)
		return psd_error_set(
			err, PSD_EINVAL, PSD_NOWHERE,
			"--hosts: the file has %u hosts, %s has started %u processes (%s): each host needs "
			"one, or give '--rank'",
			n_hosts, launcher->program, n, launcher->size);
	if (read_number(value, strlen(value), n_hosts - 1, rank))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
			     "--hosts: %s is '%.80s', must be 0 to %u, the number of a host in the file",
			     launcher->rank, value, n_hosts - 1);
}
