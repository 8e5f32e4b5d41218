#define _GNU_SOURCE
#include "real/keep/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/grow.h"
#include "engine/base/inputs.h"
#include "engine/base/output.h"
#include "real/base/path_lock.h"

#define ITERATION_NAME "iteration-%" PRIu32
#define HOST_NAME      "host-%u-of-%u.safetensors"
#define KEPT_NAME      "kept-%u.safetensors"
#define PART_SUFFIX    ".part"

/* longest name, with the suffix of a temporary file */
enum { NAME_MAX_BYTES = 64 };

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

static struct psd_checkpoint_path part_path(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
					    uint32_t iterations)
{
	struct psd_checkpoint_path path = psd_checkpoint_path(checkpoints, host, iterations);

	snprintf(path.text + strlen(path.text), sizeof(path.text) - strlen(path.text), PART_SUFFIX);
	return path;
}

struct psd_checkpoint_path psd_checkpoint_parameters_path(const struct psd_checkpoints *checkpoints)
{
	struct psd_checkpoint_path path;

	snprintf(path.text, sizeof(path.text), "%s/parameters.safetensors", checkpoints->folder);
	return path;
}

static struct psd_checkpoint_path kept_path(const struct psd_checkpoints *checkpoints, unsigned number)
{
	struct psd_checkpoint_path path;

	snprintf(path.text, sizeof(path.text), "%s/" KEPT_NAME, checkpoints->folder, number);
	return path;
}

bool psd_checkpoint_keep_parameters(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_path *kept)
{
	unsigned n = 0;

	do
		*kept = kept_path(checkpoints, ++n);
	while (!access(kept->text, F_OK));
	return !rename(psd_checkpoint_parameters_path(checkpoints).text, kept->text);
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

static enum psd_status check_name(const struct psd_checkpoints *checkpoints, struct psd_error *err)
{
	if (strlen(checkpoints->folder) + (size_t)2 * NAME_MAX_BYTES >= PSD_CHECKPOINT_PATH_MAX)
		return psd_error_set(err, PSD_EFILE, PSD_NOWHERE,
				     "'--save' names a folder of %zu characters, must have fewer than %d",
				     strlen(checkpoints->folder), PSD_CHECKPOINT_PATH_MAX - 2 * NAME_MAX_BYTES);
	return PSD_OK;
}

enum psd_status psd_checkpoints_open(struct psd_checkpoints *checkpoints, struct psd_error *err)
{
	struct stat about;

	PSD_TRY(check_name(checkpoints, err));
	PSD_TRY(make_folder(checkpoints->folder, err));
	checkpoints->is_open = !stat(checkpoints->folder, &about);
	if (checkpoints->is_open) {
		checkpoints->device = about.st_dev;
		checkpoints->inode = about.st_ino;
	}
	return PSD_OK;
}

/* Somebody may have put another folder, or a link to one, in its place. */
static enum psd_status check_folder(const struct psd_checkpoints *checkpoints, struct psd_error *err)
{
	struct stat about;

	if (!checkpoints->is_open)
		return PSD_OK;
	if (stat(checkpoints->folder, &about))
		return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = checkpoints->folder},
				     "no checkpoint can be written there: %s", strerror(errno));
	if (about.st_dev == checkpoints->device && about.st_ino == checkpoints->inode)
		return PSD_OK;
	return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = checkpoints->folder},
			     "another folder has taken this place since the run began: no checkpoint is written there");
}

enum psd_status psd_checkpoints_lock(const struct psd_checkpoints *checkpoints, unsigned host, int *descriptor,
				     struct psd_error *err)
{
	char path[PSD_CHECKPOINT_PATH_MAX];

	snprintf(path, sizeof(path), "%s/host-%u", checkpoints->folder, host);
	return psd_path_lock(path, checkpoints->folder, descriptor, err);
}

enum psd_status psd_checkpoint_begin(const struct psd_checkpoints *checkpoints, uint32_t iterations,
				     struct psd_error *err)
{
	const struct psd_checkpoint_path path = folder_path(checkpoints, iterations);
	struct stat about;

	PSD_TRY(check_folder(checkpoints, err));
	if (!lstat(path.text, &about) && S_ISLNK(about.st_mode))
		return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = path.text},
				     "is a symbolic link, must be a folder: no checkpoint is written there");
	return make_folder(path.text, err);
}

/* ---- listing ---- */

/* True if the name has exactly this form. */
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

/* True if a killed writer has left it. */
static bool is_part(const char *name, struct psd_checkpoint_host *host)
{
	const size_t length = strlen(name), behind = strlen(PART_SUFFIX);
	char whole[NAME_MAX_BYTES];

	if (length < behind || length >= sizeof(whole) || strcmp(name + length - behind, PART_SUFFIX) != 0)
		return false;
	snprintf(whole, sizeof(whole), "%.*s", (int)(length - behind), name);
	return is_host(whole, host);
}

/* Calls visit with each iteration's folder. Returns false with errno. */
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

/* Files of hosts in one folder. */
struct listing {
	struct psd_checkpoint_host *hosts;
	uint32_t n, capacity;
};

struct search {
	struct psd_checkpoint_host host;
	uint32_t below_iterations; /* 0: all */
	struct psd_checkpoints_found found;
	struct psd_checkpoint_set own, complete; /* newest of this host; newest complete one of as many hosts */
	struct psd_checkpoint_set lacking;	 /* newest one of as many hosts that lacks files */
	struct psd_checkpoint_set others;	 /* newest complete one of another number of hosts */
	unsigned n_iterations;			 /* iterations for which any of this run's hosts has a file */
	bool has_others;			 /* files of this run's other hosts were found */
	struct listing listing;
	bool is_out_of_memory;
};

static DIR *open_iteration(int parent_fd, uint32_t iterations)
{
	char name[NAME_MAX_BYTES];

	snprintf(name, sizeof(name), ITERATION_NAME, iterations);
	const int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	if (!entries && fd >= 0)
		close(fd);
	return entries;
}

static int compare_hosts(const void *left, const void *right)
{
	const struct psd_checkpoint_host *one = left, *other = right;

	if (one->n_hosts != other->n_hosts)
		return one->n_hosts < other->n_hosts ? -1 : 1;
	return one->host == other->host ? 0 : one->host < other->host ? -1 : 1;
}

/* Sorts the files by their runs' numbers of hosts. */
static void list(struct search *search, DIR *entries)
{
	struct listing *listing = &search->listing;
	const struct dirent *entry;
	struct psd_checkpoint_host one, *hosts;

	listing->n = 0;
	while ((entry = readdir(entries)) != NULL) {
		if (!is_host(entry->d_name, &one))
			continue;
		hosts = psd_grown(listing->hosts, listing->n, &listing->capacity, sizeof(*hosts));
		search->is_out_of_memory |= !hosts;
		if (!hosts)
			return;
		listing->hosts = hosts;
		hosts[listing->n++] = one;
	}
	if (listing->n > 0)
		qsort(listing->hosts, listing->n, sizeof(*listing->hosts), compare_hosts);
}

static void keep_newer(struct psd_checkpoint_set *newest, struct psd_checkpoint_set set)
{
	if (set.iterations > newest->iterations)
		*newest = set;
}

/* n files, in order, of runs with one number of hosts. */
static void look_at(struct search *search, uint32_t iterations, const struct psd_checkpoint_host hosts[], uint32_t n)
{
	const bool counts = search->below_iterations == 0 || iterations < search->below_iterations;
	struct psd_checkpoint_set set = {iterations, hosts[0].n_hosts, 0};
	bool has_own = false;

	while (set.missing < n && hosts[set.missing].host == set.missing)
		set.missing++;
	search->found.has_any = true;
	if (set.n_hosts != search->host.n_hosts) {
		if (counts)
			keep_newer(set.missing == set.n_hosts ? &search->others : &search->found.other, set);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		has_own |= hosts[i].host == search->host.host;
	search->n_iterations++;
	search->has_others |= n > has_own;
	if (counts && has_own)
		keep_newer(&search->own, set);
	if (counts)
		keep_newer(set.missing == set.n_hosts ? &search->complete : &search->lacking, set);
}

static void look_into(void *context, int parent_fd, uint32_t iterations)
{
	struct search *search = context;
	const struct listing *listing = &search->listing;
	DIR *entries = open_iteration(parent_fd, iterations);

	search->found.has_folders = true;
	if (!entries)
		return;
	list(search, entries);
	closedir(entries);
	for (uint32_t first = 0, n; first < listing->n; first += n) {
		n = 1;
		while (first + n < listing->n && listing->hosts[first + n].n_hosts == listing->hosts[first].n_hosts)
			n++;
		look_at(search, iterations, listing->hosts + first, n);
	}
}

/* A complete set of files means that the hosts share the folder. Where only files of another number of hosts are left,
 * and some of those are missing, nothing is skipped: the run does not begin. */
static void choose_newest(struct search *search)
{
	struct psd_checkpoints_found *found = &search->found;
	const bool is_shared = search->has_others || search->others.iterations > 0;

	found->newest = is_shared ? search->complete : search->own;
	keep_newer(&found->newest, search->others);
	found->has_lost = found->newest.iterations == 0 && search->n_iterations > 1;
	if (is_shared && (found->newest.iterations > 0 || found->other.iterations == 0))
		found->torn = search->lacking;
	if (found->newest.iterations > 0)
		keep_newer(&found->torn, found->other);
	if (found->torn.iterations <= found->newest.iterations)
		found->torn.iterations = 0;
}

static bool has_parameters(const struct psd_checkpoints *checkpoints)
{
	const struct psd_checkpoint_path path = psd_checkpoint_parameters_path(checkpoints);
	struct stat facts;

	return !stat(path.text, &facts) && S_ISREG(facts.st_mode);
}

enum psd_status psd_checkpoints_find(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
				     uint32_t below_iterations, struct psd_checkpoints_found *found,
				     struct psd_error *err)
{
	struct search search = {.host = host, .below_iterations = below_iterations};

	PSD_TRY(check_folder(checkpoints, err));
	const bool is_searched = visit_iterations(checkpoints->folder, look_into, &search);
	const int error_number = errno;
	free(search.listing.hosts);
	if (!is_searched)
		return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = checkpoints->folder},
				     "cannot be searched for checkpoints: %s", strerror(error_number));
	if (search.is_out_of_memory)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a list of checkpoints");
	choose_newest(&search);
	search.found.has_parameters = has_parameters(checkpoints);
	*found = search.found;
	return PSD_OK;
}

/* ---- files that no output may replace ---- */

struct kept_files {
	const char *folder;
	bool are_noted; /* notes them; false: checks them */
	enum psd_status status;
	struct psd_error *err;
};

/* Refuses what a checkpoint cannot be written to, before the run begins. */
static void check_type(struct kept_files *kept, const char *path)
{
	struct stat about;

	if (!kept->status && !stat(path, &about) && !S_ISREG(about.st_mode))
		kept->status = psd_error_set(kept->err, PSD_EFILE, (struct psd_place){.path = path},
					     "is %s, must be a regular file",
					     S_ISDIR(about.st_mode) ? "a folder" : "a device, a pipe or a socket");
}

static void keep_file(struct kept_files *kept, const char *path)
{
	if (kept->are_noted)
		psd_inputs_note(path);
	else
		check_type(kept, path);
	if (!kept->are_noted && !kept->status)
		kept->status = psd_output_check(path, kept->err);
}

static void refuse_iteration(struct kept_files *kept, uint32_t iterations)
{
	const struct psd_checkpoints checkpoints = {.folder = kept->folder};

	if (!kept->are_noted && !kept->status)
		kept->status = psd_error_set(kept->err, PSD_EFILE,
					     (struct psd_place){.path = folder_path(&checkpoints, iterations).text},
					     "is a file, must be a folder");
}

/* A part that a killed writer has left is no checkpoint. */
static void keep_iteration(void *context, int parent_fd, uint32_t iterations)
{
	struct kept_files *kept = context;
	const struct psd_checkpoints checkpoints = {.folder = kept->folder};
	DIR *entries = open_iteration(parent_fd, iterations);
	const struct dirent *entry;
	struct psd_checkpoint_host host;

	if (!entries && errno == ENOTDIR)
		refuse_iteration(kept, iterations);
	while (entries && (entry = readdir(entries)) != NULL)
		if (is_host(entry->d_name, &host))
			keep_file(kept, psd_checkpoint_path(&checkpoints, host, iterations).text);
		else if (is_part(entry->d_name, &host))
			check_type(kept, part_path(&checkpoints, host, iterations).text);
	if (entries)
		closedir(entries);
}

/* Parameters of earlier runs. */
static void keep_kept(struct kept_files *kept, const struct psd_checkpoints *checkpoints)
{
	DIR *entries = opendir(checkpoints->folder);
	const struct dirent *entry;
	unsigned number;

	while (entries && (entry = readdir(entries)) != NULL)
		if (sscanf(entry->d_name, KEPT_NAME, &number) == 1)
			keep_file(kept, kept_path(checkpoints, number).text);
	if (entries)
		closedir(entries);
}

static void keep_all(struct kept_files *kept, const struct psd_checkpoints *checkpoints)
{
	struct psd_checkpoint_path path = psd_checkpoint_parameters_path(checkpoints);

	keep_file(kept, path.text);
	snprintf(path.text + strlen(path.text), sizeof(path.text) - strlen(path.text), PART_SUFFIX);
	if (!kept->are_noted) /* the next checkpoint empties it */
		keep_file(kept, path.text);
	keep_kept(kept, checkpoints);
	(void)visit_iterations(checkpoints->folder, keep_iteration, kept);
}

enum psd_status psd_checkpoints_reserve(const struct psd_checkpoints *checkpoints, struct psd_error *err)
{
	static const char *const names[] = {"parameters.safetensors", "parameters.safetensors" PART_SUFFIX,
					    "iteration-*", "kept-*.safetensors"};
	struct kept_files kept = {.folder = checkpoints->folder, .err = err};

	kept.status = check_name(checkpoints, err);
	if (kept.status)
		return kept.status;
	keep_all(&kept, checkpoints);
	kept.are_noted = true;
	if (!kept.status)
		keep_all(&kept, checkpoints);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !kept.status; i++)
		kept.status = psd_output_reserve(checkpoints->folder, names[i], err);
	return kept.status;
}

/* ---- removing old files ---- */

struct own_files {
	struct psd_checkpoint_host host;
	uint32_t iterations; /* just written, or resumed from */
	unsigned n_before;
	/* The newest before that, in this order; 0: none. */
	uint32_t before[PSD_CHECKPOINTS_KEPT_WITH_SERVERS];
	int error_number; /* error of a file that stayed; 0: none */
};

/* A file of a run with another number of hosts belongs to one host of this run. */
static bool is_own(const struct own_files *own, struct psd_checkpoint_host one)
{
	return one.n_hosts == own->host.n_hosts ? one.host == own->host.host
						: one.host % own->host.n_hosts == own->host.host;
}

static void find_before(void *context, int parent_fd, uint32_t iterations)
{
	struct own_files *own = context;
	DIR *entries = iterations < own->iterations ? open_iteration(parent_fd, iterations) : NULL;
	const struct dirent *entry;
	bool has_own = false;

	if (!entries)
		return;
	while ((entry = readdir(entries)) != NULL) {
		struct psd_checkpoint_host one;

		has_own |= is_host(entry->d_name, &one) && is_own(own, one);
	}
	closedir(entries);
	for (unsigned i = 0; i < own->n_before && has_own; i++)
		if (iterations > own->before[i]) {
			const uint32_t older = own->before[i];

			own->before[i] = iterations;
			iterations = older;
		}
}

/* An older folder is removed with the last host's file. A later one stays, since another host may be about to write
 * there. */
static void remove_own(struct own_files *own, int parent_fd, uint32_t iterations)
{
	DIR *entries = open_iteration(parent_fd, iterations);
	const struct dirent *entry;
	char name[NAME_MAX_BYTES];

	while (entries && (entry = readdir(entries)) != NULL) {
		struct psd_checkpoint_host one;

		if (is_host(entry->d_name, &one) && is_own(own, one)) {
			if (unlinkat(dirfd(entries), entry->d_name, 0) && errno != ENOENT)
				own->error_number = errno;
		} else if (is_part(entry->d_name, &one) && is_own(own, one)) {
			(void)unlinkat(dirfd(entries), entry->d_name, 0);
		}
	}
	if (entries)
		closedir(entries);
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
	struct psd_error ignored;

	if (!check_folder(checkpoints, &ignored) && visit_iterations(checkpoints->folder, find_before, &own))
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

	PSD_TRY(check_folder(checkpoints, err));
	if (!visit_iterations(checkpoints->folder, remove_later, &own))
		own.error_number = errno;
	return own.error_number == 0 ? PSD_OK
				     : psd_error_set(err, PSD_EFILE, (struct psd_place){.path = checkpoints->folder},
						     "host %u's checkpoints of later iterations cannot be removed: %s",
						     host.host, strerror(own.error_number));
}
