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

#define HEAD "system,iteration,epoch,loss,training_accuracy_ratio,elapsed_sec,test_accuracy_ratio\n"

/* Cells of a line, counted from the iteration. */
enum { ELAPSED_CELL = 4, LAST_CELL = 5 };
enum { MOST_GAPS = 8, MOST_QUOTED = 60 };
/* Size of "/proc/self/fd/N". */
enum { OWN_PATH = 32 };

/* Keeps the first error. */
static void lose(const struct psd_run_log *log, int error_number)
{
	if (!log->loss->error_number)
		log->loss->error_number = error_number;
}

static enum psd_status tell_loss(const struct psd_run_log *log, struct psd_error *err)
{
	const struct psd_place at = {.path = log->path};
	const char *reason = strerror(log->loss->error_number);

	if (!log->loss->is_said)
		return psd_error_set(err, PSD_ERUN, at, "cannot be written: %s", reason);
	return psd_error_set(err, PSD_ERUN, at,
			     "cannot be written: %s: lines from iteration %" PRIu32 " on are missing", reason,
			     log->loss->iteration);
}

static void write_head(const struct psd_run_log *log)
{
	struct psd_text head = {.bytes = NULL};

	psd_text_add(&head, HEAD);
	if (!psd_console_write(log->file, &head))
		lose(log, errno);
}

/* Writes whole lines: two runs with one log do not mix theirs, and no line stays in the buffer. */
static void write_lines(FILE *file)
{
	setvbuf(file, NULL, _IONBF, 0);
	(void)fcntl(fileno(file), F_SETFL, O_APPEND);
}

enum psd_status psd_run_log_check(const char *path, struct psd_error *err)
{
	const struct psd_place at = {.path = path};
	struct stat about;
	char first[sizeof(HEAD)];

	if (stat(path, &about) || !S_ISREG(about.st_mode))
		return PSD_OK;
	FILE *file = fopen(path, "re");
	if (!file)
		return psd_error_set(err, PSD_EFILE, at, "cannot be read: %s", strerror(errno));
	const size_t n_bytes = fread(first, 1, sizeof(HEAD) - 1, file);
	fclose(file);
	first[n_bytes] = '\0';
	if (!memcmp(first, HEAD, n_bytes))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at,
			     "'--resume' continues a log, which begins with '%.*s', the file begins with '%.*s': name "
			     "another file",
			     (int)strcspn(HEAD, "\n"), HEAD,
			     (int)strcspn(first, "\n") < MOST_QUOTED ? (int)strcspn(first, "\n") : MOST_QUOTED, first);
}

enum psd_status psd_run_log_open(struct psd_run_log *log, const char *path, struct psd_error *err)
{
	struct psd_run_log opened = {.path = path};

	*log = opened;
	if (!path)
		return PSD_OK;
	opened.loss = mmap(NULL, sizeof(*opened.loss), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (opened.loss == MAP_FAILED)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	const enum psd_status status = psd_output_open(&opened.file, path, err);
	if (!status) {
		write_lines(opened.file);
		write_head(&opened);
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

/* True if the line has all cells and is before first_iteration; its seconds then count. */
static bool stays(struct psd_run_log *log, const char *line, uint32_t first_iteration, uint32_t *iteration)
{
	const char *cell = find_iteration(line);
	char *end;

	if (!cell || !isdigit((unsigned char)*cell) || !find_cell(cell, LAST_CELL) || find_cell(cell, LAST_CELL + 1) ||
	    !strchr(line, '\n'))
		return false;
	const unsigned long long number = strtoull(cell, &end, 10);
	if (number >= first_iteration || *end != ',')
		return false;
	*iteration = (uint32_t)number;
	log->before_sec = strtod(find_cell(cell, ELAPSED_CELL), NULL);
	return true;
}

/* Iterations without a line. The lines of a run are in order, and a system that was run later begins again with an
 * earlier iteration. */
struct gaps {
	struct psd_text *text;
	uint32_t next; /* iteration after the last line */
	unsigned n;
};

/* iteration: number in the next line, or first iteration of the run that resumes. */
static void note_gap(struct gaps *gaps, uint32_t iteration)
{
	if (iteration > gaps->next && gaps->n++ < MOST_GAPS) {
		psd_text_add(gaps->text, "%s%" PRIu32, gaps->n > 1 ? ", " : "", gaps->next);
		if (iteration - 1 > gaps->next)
			psd_text_add(gaps->text, " to %" PRIu32, iteration - 1);
		if (gaps->n == MOST_GAPS)
			psd_text_add(gaps->text, ", ...");
	}
	gaps->next = iteration + 1;
}

static void take_over(struct psd_run_log *log, const char *line)
{
	struct psd_text copy = {.bytes = NULL};

	psd_text_add(&copy, "%s", line);
	if (!psd_console_write(log->file, &copy))
		lose(log, errno);
}

static void take_all_over(struct psd_run_log *log, FILE *older, uint32_t first_iteration, struct psd_text *missing)
{
	struct gaps gaps = {.text = missing};
	uint32_t iteration;
	char *line = NULL;
	size_t room = 0;

	while (!log->loss->error_number && getline(&line, &room, older) > 0)
		if (stays(log, line, first_iteration, &iteration)) {
			note_gap(&gaps, iteration);
			take_over(log, line);
		}
	if (!log->loss->error_number)
		note_gap(&gaps, first_iteration);
	free(line);
}

/* Keeps the header and the lines that stay. older: this log itself. */
static void drop_rest(struct psd_run_log *log, FILE *older, uint32_t first_iteration)
{
	off_t kept_bytes = 0;
	bool is_head = true;
	uint32_t ignored;
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, older) > 0 && (is_head || stays(log, line, first_iteration, &ignored))) {
		kept_bytes += (off_t)strlen(line);
		is_head = false;
	}
	free(line);
	if (ftruncate(fileno(log->file), kept_bytes))
		lose(log, errno);
	if (log->loss->is_said && first_iteration < log->loss->iteration)
		log->loss->iteration = first_iteration;
}

/* Opens the log from its start, even if its path was replaced. */
static FILE *open_older(const struct psd_run_log *log)
{
	char own[OWN_PATH];

	snprintf(own, sizeof(own), "/proc/self/fd/%d", fileno(log->file));
	return fopen(log->is_shown ? own : log->path, "re");
}

enum psd_status psd_run_log_go_on(struct psd_run_log *log, uint32_t first_iteration, struct psd_text *missing,
				  struct psd_error *err)
{
	struct stat about;

	if (!log->file || (log->is_shown ? fstat(fileno(log->file), &about) : stat(log->path, &about)) ||
	    !S_ISREG(about.st_mode))
		return PSD_OK;
	FILE *older = open_older(log);
	if (!older)
		return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = log->path}, "cannot be read: %s",
				     strerror(errno));
	log->before_sec = 0.0;
	if (log->is_shown)
		drop_rest(log, older, first_iteration);
	else
		take_all_over(log, older, first_iteration, missing);
	fclose(older);
	return PSD_OK;
}

void psd_run_log_begin(struct psd_run_log *log)
{
	if (!log->file || log->is_shown || log->loss->error_number)
		return;
	log->is_shown = psd_output_show(log->file);
	if (!log->is_shown)
		lose(log, errno);
}

/* Returns false with errno, and removes a partial line if possible. */
static bool add_line(const struct psd_run_log *log, struct psd_text *line)
{
	const off_t begin_bytes = lseek(fileno(log->file), 0, SEEK_END);

	if (psd_console_write(log->file, line))
		return true;
	const int reason = errno;
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

	if (!log->file || (log->loss->error_number && log->loss->is_said))
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
	if (log->loss->error_number)
		psd_text_release(&line);
	else if (add_line(log, &line))
		return PSD_OK;
	else
		lose(log, errno);
	log->loss->iteration = progress->iteration;
	log->loss->is_said = true;
	return tell_loss(log, err);
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
	if (log->file)
		log->loss->is_said = false; /* the iterations come again */
}

enum psd_status psd_run_log_close(struct psd_run_log *log, struct psd_error *err)
{
	const struct psd_run_log closed = *log;

	*log = (struct psd_run_log){.file = NULL};
	if (!closed.loss)
		return PSD_OK;
	const enum psd_status status = closed.loss->error_number ? tell_loss(&closed, err) : PSD_OK;
	munmap(closed.loss, sizeof(*closed.loss));
	if (closed.file && (closed.is_shown || status)) /* a lost log leaves the older file */
		psd_output_discard(closed.file);
	return status;
}
