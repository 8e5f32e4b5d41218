#define _GNU_SOURCE
#include "real/session/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ITERATION_NAME "iteration-%" PRIu32
#define HOST_NAME      "host-%u-of-%u.safetensors"

/* The longest of those names, with what a writer puts behind it. */
enum { NAME_MAX_BYTES = 64 };
/* The processes of a run that was killed end within that. */
enum { LOCK_TRIES = 20, LOCK_TRY_MS = 100 };

/* ---- paths ---- */

static struct psd_checkpoint_path folder_path(const struct psd_checkpoints *checkpoints, uint32_t iterations)
{
	struct psd_checkpoint_path path;

	snprintf(path.text, sizeof(path.text), "%s/" ITERATION_NAME, checkpoints->folder, iterations);
	return path;
}

struct psd_checkpoint_path psd_checkpoint_path(const struct psd_checkpoints *checkpoints,
					       struct psd_checkpoint_host host, uint32_t iterations)
{
	struct psd_checkpoint_path path;

	snprintf(path.text, sizeof(path.text), "%s/" ITERATION_NAME "/" HOST_NAME, checkpoints->folder, iterations,
		 host.host, host.n_hosts);
	return path;
}

struct psd_checkpoint_path psd_checkpoint_parameters_path(const struct psd_checkpoints *checkpoints)
{
	struct psd_checkpoint_path path;

	snprintf(path.text, sizeof(path.text), "%s/parameters.safetensors", checkpoints->folder);
	return path;
}

static enum psd_status make_folder(const char *path, struct psd_error *err)
{
	const bool is_made = !mkdir(path, 0777) || errno == EEXIST;
	struct stat about;

	if (is_made && !stat(path, &about)) {
		if (S_ISDIR(about.st_mode) && !access(path, R_OK | W_OK | X_OK))
			return PSD_OK;
		errno = S_ISDIR(about.st_mode) ? errno : ENOTDIR;
	}
	return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = path}, "no checkpoint can be written there: %s",
			     strerror(errno));
}

enum psd_status psd_checkpoints_open(const struct psd_checkpoints *checkpoints, struct psd_error *err)
{
	if (strlen(checkpoints->folder) + (size_t)2 * NAME_MAX_BYTES >= PSD_CHECKPOINT_PATH_MAX)
		return psd_error_set(err, PSD_EFILE, PSD_NOWHERE,
				     "'--save' names a folder of %zu characters, must have fewer than %d",
				     strlen(checkpoints->folder), PSD_CHECKPOINT_PATH_MAX - 2 * NAME_MAX_BYTES);
	return make_folder(checkpoints->folder, err);
}

enum psd_status psd_checkpoints_lock(const struct psd_checkpoints *checkpoints, int *descriptor, struct psd_error *err)
{
	const int folder = open(checkpoints->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is_locked;

	for (unsigned tries = 0; folder >= 0 && tries < LOCK_TRIES; tries++) {
		is_locked = !flock(folder, LOCK_EX | LOCK_NB);
		if (is_locked || errno != EWOULDBLOCK)
			break;
		(void)poll(NULL, 0, LOCK_TRY_MS);
	}
	if (folder < 0 || is_locked || errno != EWOULDBLOCK) {
		*descriptor = folder;
		return PSD_OK;
	}
	close(folder);
	return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = checkpoints->folder},
			     "another run keeps its checkpoints there at this time");
}

enum psd_status psd_checkpoint_begin(const struct psd_checkpoints *checkpoints, uint32_t iterations,
				     struct psd_error *err)
{
	const struct psd_checkpoint_path path = folder_path(checkpoints, iterations);

	return make_folder(path.text, err);
}

/* ---- what is there ---- */

/* Whether it is exactly such a name. */
static bool is_iteration(const char *name, uint32_t *iterations)
{
	char again[NAME_MAX_BYTES];

	if (sscanf(name, ITERATION_NAME, iterations) != 1 || *iterations == 0)
		return false;
	snprintf(again, sizeof(again), ITERATION_NAME, *iterations);
	return !strcmp(name, again);
}

static bool is_host(const char *name, struct psd_checkpoint_host *host)
{
	char again[NAME_MAX_BYTES];

	if (sscanf(name, HOST_NAME, &host->host, &host->n_hosts) != 2 || host->host >= host->n_hosts)
		return false;
	snprintf(again, sizeof(again), HOST_NAME, host->host, host->n_hosts);
	return !strcmp(name, again);
}

/* Calls visit with each folder of an iteration. False: errno. */
static bool visit_iterations(const char *folder, void (*visit)(void *context, int parent_fd, uint32_t iterations),
			     void *context)
{
	DIR *entries = opendir(folder);
	const struct dirent *entry;
	uint32_t iterations;

	if (!entries)
		return false;
	while ((entry = readdir(entries)) != NULL)
		if (is_iteration(entry->d_name, &iterations))
			visit(context, dirfd(entries), iterations);
	closedir(entries);
	return true;
}

struct search {
	struct psd_checkpoint_host host;
	uint32_t below_iterations; /* 0: all */
	struct psd_checkpoints_found found;
	uint32_t newest_own, newest_complete; /* of this host; of all */
	unsigned n_iterations;		      /* that any of this run's hosts has */
	bool has_others;		      /* files of this run's other hosts */
};

static void look_into(void *context, int parent_fd, uint32_t iterations)
{
	struct search *search = context;
	const bool counts = search->below_iterations == 0 || iterations < search->below_iterations;
	unsigned n_here = 0;
	char name[NAME_MAX_BYTES];
	const struct dirent *entry;
	DIR *entries;
	int fd;

	snprintf(name, sizeof(name), ITERATION_NAME, iterations);
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	entries = fd < 0 ? NULL : fdopendir(fd);
	if (!entries) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(entries)) != NULL) {
		struct psd_checkpoint_host one;

		if (!is_host(entry->d_name, &one))
			continue;
		search->found.has_any = true;
		if (one.n_hosts != search->host.n_hosts) {
			search->found.other_hosts = one.n_hosts;
			continue;
		}
		n_here++;
		search->has_others |= one.host != search->host.host;
		if (counts && one.host == search->host.host && iterations > search->newest_own)
			search->newest_own = iterations;
	}
	search->n_iterations += n_here > 0;
	if (counts && n_here == search->host.n_hosts && iterations > search->newest_complete)
		search->newest_complete = iterations;
	closedir(entries);
}

enum psd_status psd_checkpoints_find(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
				     uint32_t below_iterations, struct psd_checkpoints_found *found,
				     struct psd_error *err)
{
	struct search search = {.host = host, .below_iterations = below_iterations};

	if (!visit_iterations(checkpoints->folder, look_into, &search))
		return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = checkpoints->folder},
				     "cannot be searched for checkpoints: %s", strerror(errno));
	*found = search.found;
	found->iterations = search.has_others ? search.newest_complete : search.newest_own;
	found->has_lost = found->iterations == 0 && search.n_iterations > 1;
	return PSD_OK;
}

/* ---- what is not needed any more ---- */

struct own_files {
	struct psd_checkpoint_host host;
	uint32_t iterations; /* of the one that was written, or that the host goes on from */
	unsigned n_before;
	/* The newest before that, in this order; 0: there are fewer. */
	uint32_t before[PSD_CHECKPOINTS_KEPT_WITH_SERVERS];
	int error_number; /* why one stayed; 0: none did */
};

static void name_own(const struct own_files *own, uint32_t iterations, const char *suffix,
		     char name[2 * NAME_MAX_BYTES])
{
	snprintf(name, (size_t)2 * NAME_MAX_BYTES, ITERATION_NAME "/" HOST_NAME "%s", iterations, own->host.host,
		 own->host.n_hosts, suffix);
}

static void find_before(void *context, int parent_fd, uint32_t iterations)
{
	struct own_files *own = context;
	char name[2 * NAME_MAX_BYTES];

	name_own(own, iterations, "", name);
	if (iterations >= own->iterations || faccessat(parent_fd, name, F_OK, 0))
		return;
	for (unsigned i = 0; i < own->n_before; i++)
		if (iterations > own->before[i]) {
			const uint32_t older = own->before[i];

			own->before[i] = iterations;
			iterations = older;
		}
}

/* An older one's folder goes with the last host's file. A later one stays: another host may be about to write there. */
static void remove_own(struct own_files *own, int parent_fd, uint32_t iterations)
{
	char name[2 * NAME_MAX_BYTES];

	name_own(own, iterations, "", name);
	if (unlinkat(parent_fd, name, 0) && errno != ENOENT && errno != ENOTDIR)
		own->error_number = errno;
	name_own(own, iterations, ".part", name); /* of a writer that was killed */
	(void)unlinkat(parent_fd, name, 0);
	snprintf(name, sizeof(name), ITERATION_NAME, iterations);
	if (iterations < own->iterations)
		(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

static void remove_other(void *context, int parent_fd, uint32_t iterations)
{
	struct own_files *own = context;
	bool is_kept = iterations == own->iterations;

	for (unsigned i = 0; i < own->n_before; i++)
		is_kept = is_kept || iterations == own->before[i];
	if (!is_kept)
		remove_own(own, parent_fd, iterations);
}

void psd_checkpoint_prune(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
			  uint32_t iterations, unsigned n_kept)
{
	struct own_files own = {.host = host, .iterations = iterations, .n_before = n_kept - 1};

	if (visit_iterations(checkpoints->folder, find_before, &own))
		(void)visit_iterations(checkpoints->folder, remove_other, &own);
}

static void remove_later(void *context, int parent_fd, uint32_t iterations)
{
	struct own_files *own = context;

	if (iterations > own->iterations)
		remove_own(own, parent_fd, iterations);
}

enum psd_status psd_checkpoint_drop_later(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
					  uint32_t iterations, struct psd_error *err)
{
	struct own_files own = {.host = host, .iterations = iterations};

	if (!visit_iterations(checkpoints->folder, remove_later, &own))
		own.error_number = errno;
	return own.error_number == 0
		       ? PSD_OK
		       : psd_error_set(err, PSD_EFILE, (struct psd_place){.path = checkpoints->folder},
				       "host %u's checkpoints of later iterations cannot be taken away: %s", host.host,
				       strerror(own.error_number));
}
