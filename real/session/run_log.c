#define _GNU_SOURCE 1 /* MAP_ANONYMOUS */
#include "real/session/run_log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/output.h"
#include "engine/base/text.h"
#include "real/base/console.h"

/* Cell of a line, behind the system's name. */
enum { ELAPSED_CELL = 4 };
/* Size of "/proc/self/fd/N". */
enum { OWN_PATH = 32 };

static enum psd_status refuse(const struct psd_run_log *log, int error_number, struct psd_error *err)
{
	return psd_error_set(err, PSD_ERUN, (struct psd_place){.path = log->path}, "cannot be written: %s",
			     strerror(error_number));
}

static enum psd_status write_head(const struct psd_run_log *log, struct psd_error *err)
{
	struct psd_text head = {.bytes = NULL};

	psd_text_add(&head, "system,iteration,epoch,loss,training_accuracy_ratio,elapsed_sec,test_accuracy_ratio\n");
	return psd_console_write(log->file, &head) ? PSD_OK : refuse(log, errno, err);
}

/* Writes whole lines: two runs with one log do not mix theirs, and no line stays in the buffer. */
static void write_lines(FILE *file)
{
	setvbuf(file, NULL, _IONBF, 0);
	(void)fcntl(fileno(file), F_SETFL, O_APPEND);
}

enum psd_status psd_run_log_open(struct psd_run_log *log, const char *path, struct psd_error *err)
{
	struct psd_run_log opened = {.path = path};
	enum psd_status status;

	*log = opened;
	if (!path)
		return PSD_OK;
	opened.write_error_number = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (opened.write_error_number == MAP_FAILED)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	status = psd_output_open(&opened.file, path, err);
	if (!status) {
		write_lines(opened.file);
		status = write_head(&opened, err);
	}
	*log = opened;
	return status;
}

/* The cell behind n commas; NULL: there are fewer. */
static const char *find_cell(const char *line, unsigned n)
{
	while (line && n-- > 0) {
		line = strchr(line, ',');
		line = line ? line + 1 : NULL;
	}
	return line;
}

/* The cell behind the system's name, which may be quoted (RFC 4180); NULL: none. */
static const char *find_iteration(const char *line)
{
	bool is_quoted = false;

	for (; *line && (is_quoted || *line != ','); line++)
		is_quoted ^= *line == '"'; /* two of them are one inside quotes */
	return *line ? line + 1 : NULL;
}

/* True if the line is before that iteration; its seconds then count. */
static bool stays(struct psd_run_log *log, const char *line, uint32_t first_iteration)
{
	const char *iteration = find_iteration(line), *elapsed;
	char *end;

	if (!iteration || !isdigit((unsigned char)*iteration) || strtoull(iteration, &end, 10) >= first_iteration ||
	    *end != ',' || !strchr(line, '\n'))
		return false;
	elapsed = find_cell(iteration, ELAPSED_CELL);
	if (elapsed)
		log->before_sec = strtod(elapsed, NULL);
	return true;
}

static enum psd_status take_over(struct psd_run_log *log, const char *line, uint32_t first_iteration,
				 struct psd_error *err)
{
	struct psd_text copy = {.bytes = NULL};

	if (!stays(log, line, first_iteration))
		return PSD_OK;
	psd_text_add(&copy, "%s", line);
	return psd_console_write(log->file, &copy) ? PSD_OK : refuse(log, errno, err);
}

static enum psd_status take_all_over(struct psd_run_log *log, FILE *older, uint32_t first_iteration,
				     struct psd_error *err)
{
	enum psd_status status = PSD_OK;
	char *line = NULL;
	size_t room = 0;

	while (!status && getline(&line, &room, older) > 0)
		status = take_over(log, line, first_iteration, err);
	free(line);
	return status;
}

/* Keeps the header and the lines that stay. older: this log itself. */
static enum psd_status drop_rest(struct psd_run_log *log, FILE *older, uint32_t first_iteration, struct psd_error *err)
{
	off_t kept_bytes = 0;
	bool is_head = true;
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, older) > 0 && (is_head || stays(log, line, first_iteration))) {
		kept_bytes += (off_t)strlen(line);
		is_head = false;
	}
	free(line);
	return ftruncate(fileno(log->file), kept_bytes) ? refuse(log, errno, err) : PSD_OK;
}

/* Opens the log from its start, even if its path was replaced. */
static FILE *open_older(const struct psd_run_log *log)
{
	char own[OWN_PATH];

	snprintf(own, sizeof(own), "/proc/self/fd/%d", fileno(log->file));
	return fopen(log->is_shown ? own : log->path, "re");
}

enum psd_status psd_run_log_go_on(struct psd_run_log *log, uint32_t first_iteration, struct psd_error *err)
{
	enum psd_status status;
	struct stat about;
	FILE *older;

	if (!log->file || (log->is_shown ? fstat(fileno(log->file), &about) : stat(log->path, &about)) ||
	    !S_ISREG(about.st_mode))
		return PSD_OK;
	older = open_older(log);
	if (!older)
		return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = log->path}, "cannot be read: %s",
				     strerror(errno));
	log->before_sec = 0.0;
	status = (log->is_shown ? drop_rest : take_all_over)(log, older, first_iteration, err);
	fclose(older);
	return status;
}

enum psd_status psd_run_log_begin(struct psd_run_log *log, struct psd_error *err)
{
	if (!log->file || log->is_shown)
		return PSD_OK;
	log->is_shown = psd_output_show(log->file);
	return log->is_shown ? PSD_OK : refuse(log, errno, err);
}

/* Returns false with errno, and removes a partial line if possible. */
static bool add_line(const struct psd_run_log *log, struct psd_text *line)
{
	const off_t begin_bytes = lseek(fileno(log->file), 0, SEEK_END);
	int reason;

	if (psd_console_write(log->file, line))
		return true;
	reason = errno;
	if (begin_bytes >= 0)
		(void)!ftruncate(fileno(log->file), begin_bytes);
	errno = reason;
	return false;
}

enum psd_status psd_run_log_add(const struct psd_run_log *log, const struct psd_system *system,
				const struct psd_progress *progress, bool has_replay, struct psd_error *err)
{
	const double elapsed_sec = log->before_sec + progress->elapsed_sec;
	struct psd_text line = {.bytes = NULL};

	if (!log->file || *log->write_error_number)
		return PSD_OK;
	psd_text_add_csv(&line, system->name);
	psd_text_add(&line, ",%" PRIu32, progress->iteration);
	if (has_replay) {
		psd_text_add(&line, ",,,,%.9g,\n", elapsed_sec);
	} else {
		psd_text_add(&line, ",%.9g,", progress->epochs);
		if (isfinite(progress->loss))
			psd_text_add(&line, "%.9g", progress->loss);
		psd_text_add(&line, ",%.9g,%.9g,", progress->correct_ratio, elapsed_sec);
		if (progress->test_labels > 0)
			psd_text_add(&line, "%.9g", (double)progress->test_correct / (double)progress->test_labels);
		psd_text_add(&line, "\n");
	}
	if (add_line(log, &line))
		return PSD_OK;
	*log->write_error_number = errno;
	return refuse(log, errno, err);
}

void psd_run_log_keep(struct psd_run_log *log)
{
	if (log->file)
		log->kept_bytes = lseek(fileno(log->file), 0, SEEK_END);
}

void psd_run_log_drop(const struct psd_run_log *log)
{
	if (log->file && log->kept_bytes > 0)
		(void)!ftruncate(fileno(log->file), log->kept_bytes);
}

enum psd_status psd_run_log_close(struct psd_run_log *log, struct psd_error *err)
{
	const struct psd_run_log closed = *log;
	int error_number;

	*log = (struct psd_run_log){.file = NULL};
	if (!closed.write_error_number)
		return PSD_OK;
	error_number = *closed.write_error_number;
	munmap(closed.write_error_number, sizeof(int));
	if (closed.is_shown)
		psd_output_discard(closed.file);
	return error_number ? refuse(&closed, error_number, err) : PSD_OK;
}
