#include "plots/trace.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"
#include "engine/base/text.h"
#include "engine/base/units.h"
#include "plots/words.h"
#include "sim/import/gzip.h"

enum { PIECE = 1 << 16, HEAD_BYTES = 8192, LONGEST_NAME = 1000, KEY_ROOM = 64 };
static const double longest_us = 1e15;

/* ---- members of a line ---- */

/* The text behind "key":; NULL: the key is missing. */
static const char *behind_key(const char *json, const char *key)
{
	char quoted[KEY_ROOM];

	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	const char *found = strstr(json, quoted);
	return found ? found + strlen(quoted) : NULL;
}

const char *psd_plot_json_text(struct psd_arena *arena, const char *json, const char *key)
{
	const char *from = behind_key(json, key);
	size_t length = 0, n = 0;

	while (from && *from == ' ')
		from++;
	if (!from || *from++ != '"')
		return "";
	while (from[length] && from[length] != '"')
		length += from[length] == '\\' && from[length + 1] ? 2 : 1;
	char *text = psd_arena_take(arena, length + 1);
	if (!text)
		return "";
	for (size_t i = 0; i < length; i++) {
		const bool is_escape = from[i] == '\\';

		i += is_escape;
		if (is_escape && strchr("bfnrtu", from[i])) {
			i += from[i] == 'u' ? 4 : 0;
			text[n++] = ' ';
		} else {
			text[n++] = from[i];
		}
	}
	psd_text_make_plain(text);
	return text;
}

const char *psd_plot_json_number(struct psd_arena *arena, const char *json, const char *key)
{
	const char *from = behind_key(json, key);
	char *text, *end;

	while (from && *from == ' ')
		from++;
	if (!from || (!isdigit((unsigned char)from[*from == '-'])))
		return "";
	(void)strtod(from, &end);
	if (!*end || !strchr(",} ", *end))
		return "";
	text = psd_arena_copy(arena, from, (size_t)(end - from));
	return text ? text : "";
}

/* ---- reading ---- */

struct reader {
	struct psd_plot_trace *trace;
	struct psd_error *err;
	struct psd_arena scratch;
	unsigned line;
	bool is_closed;
};

static enum psd_status refuse(const struct reader *reader, const char *text)
{
	return psd_error_set(reader->err, PSD_EINVAL,
			     (struct psd_place){.path = reader->trace->path, .line = reader->line}, "%s", text);
}

static enum psd_status refuse_value(const struct reader *reader, const char *key, const char *value, const char *must)
{
	return psd_error_set(reader->err, PSD_EINVAL,
			     (struct psd_place){.path = reader->trace->path, .line = reader->line},
			     "'%s' is %.80s, must be %s", key, value, must);
}

/* Begin of a trace that --trace writes for each rank. */
static const char by_rank[] = "{\"schemaVersion\":";

static enum psd_status take_head(struct reader *reader, const char *line)
{
	struct psd_plot_trace *trace = reader->trace;

	if (!strncmp(line, by_rank, strlen(by_rank)))
		return refuse(reader,
			      "a trace of one rank, for tools that read PyTorch's; psd-plot reads the trace of all "
			      "workers, that of --trace FILE without %r");
	if (*line != '{' || !psd_words_ends_with(line, "\"traceEvents\":["))
		return refuse(reader,
			      "not a trace of psd-sim or psd-run, the first line must end in '\"traceEvents\":['");
	trace->scenario = psd_plot_json_text(&trace->arena, line, "scenario");
	trace->system_name = psd_plot_json_text(&trace->arena, line, "system");
	trace->executor = psd_plot_json_text(&trace->arena, line, "executor");
	trace->nodes = psd_plot_json_number(&trace->arena, line, "nodes");
	trace->workers = psd_plot_json_number(&trace->arena, line, "workers");
	trace->bandwidth_bps = psd_plot_json_number(&trace->arena, line, "bandwidth_bps");
	if (strlen(trace->scenario) > LONGEST_NAME || strlen(trace->system_name) > LONGEST_NAME)
		return refuse(reader, "'scenario' or 'system' is longer than 1000 bytes");
	const char *list = psd_plot_json_text(&trace->arena, line, "kinds");

	char *kinds = psd_arena_copy(&trace->arena, list, strlen(list));
	if (!kinds)
		return psd_out_of_memory(reader->err);
	for (char *kind = kinds, *end; *kind && trace->n_kinds < PSD_TRACE_KINDS_MAX; kind = end) {
		end = kind + strcspn(kind, " ");
		if (*end)
			*end++ = '\0';
		trace->kinds[trace->n_kinds++] = kind;
	}
	return PSD_OK;
}

static unsigned find_process(const struct psd_plot_trace *trace, double pid)
{
	unsigned p = 0;

	while (p < trace->n_processes && trace->processes[p].pid != pid)
		p++;
	return p;
}

static enum psd_status add_process(struct reader *reader, double pid, const char *name)
{
	struct psd_plot_trace *trace = reader->trace;
	struct psd_plot_process process = {pid, name, -1};
	uint64_t worker;
	void *grown =
		psd_grown(trace->processes, trace->n_processes, &trace->processes_room, sizeof(*trace->processes));

	if (!grown)
		return psd_out_of_memory(reader->err);
	trace->processes = grown;
	if (!strncmp(name, "worker ", 7) && psd_units_read_count(name + 7, &worker) && worker < INT32_MAX) {
		process.worker = (int64_t)worker;
		trace->n_workers++;
		for (unsigned p = 0; p < trace->n_processes; p++)
			if (trace->processes[p].worker == process.worker ||
			    (trace->processes[p].pid == pid && trace->processes[p].worker >= 0))
				return psd_error_set(reader->err, PSD_EINVAL,
						     (struct psd_place){.path = trace->path, .line = reader->line},
						     "'%.80s' or its 'pid' is there twice, must be there once", name);
	}
	trace->processes[trace->n_processes++] = process;
	return PSD_OK;
}

static enum psd_status take_name(struct reader *reader, const char *line, const char *arguments, double pid,
				 const char *tid)
{
	struct psd_plot_trace *trace = reader->trace;
	const char *name = psd_plot_json_text(&trace->arena, arguments, "name");

	if (strstr(line, "\"name\":\"process_name\""))
		return add_process(reader, pid, name);
	if (!strstr(line, "\"name\":\"thread_name\""))
		return PSD_OK;
	if (!*tid)
		return refuse(reader, "'thread_name' has no 'tid'");
	const double thread = strtod(tid, NULL);

	if (thread >= 0 && thread < PSD_TRACE_THREADS_MAX)
		trace->threads[(unsigned)thread] = name;
	return PSD_OK;
}

static enum psd_status take_span(struct reader *reader, const char *line, const char *arguments, double pid,
				 const char *tid)
{
	struct psd_plot_trace *trace = reader->trace;
	struct psd_arena *scratch = &reader->scratch;
	const char *begin = psd_plot_json_number(scratch, line, "ts"),
		   *length = psd_plot_json_number(scratch, line, "dur");
	const char *kind = psd_plot_json_text(scratch, line, "cat"),
		   *iteration = psd_plot_json_number(scratch, arguments, "iteration");
	struct psd_plot_event event = {.process = find_process(trace, pid), .iteration = -1};
	uint64_t number;

	if (!*begin || !*length || !*tid)
		return refuse(reader, "an event has no number for 'ts', 'dur' or 'tid'");
	event.begin_us = strtod(begin, NULL);
	event.length_us = strtod(length, NULL);
	event.thread = (unsigned)strtod(tid, NULL);
	if (!(event.length_us >= 0 && event.length_us <= longest_us))
		return refuse_value(reader, "dur", length, "from 0 to 1e15");
	if (!(event.begin_us >= -longest_us && event.begin_us <= longest_us))
		return refuse_value(reader, "ts", begin, "from -1e15 to 1e15");
	while (event.kind < trace->n_kinds && strcmp(trace->kinds[event.kind], kind) != 0)
		event.kind++;
	if (event.kind == trace->n_kinds)
		return psd_error_set(reader->err, PSD_EINVAL,
				     (struct psd_place){.path = trace->path, .line = reader->line},
				     "'cat' is '%.80s', must be one of the 'kinds' of the first line", kind);
	if (*iteration && (!psd_units_read_count(iteration, &number) || strlen(iteration) > 9))
		return refuse_value(reader, "iteration", iteration, "a whole number of up to nine digits");
	if (*iteration)
		event.iteration = (int64_t)number;
	if (event.iteration > trace->last_iteration)
		trace->last_iteration = event.iteration;
	event.name = psd_plot_json_text(&trace->arena, line, "name");
	void *grown = psd_grown(trace->events, trace->n_events, &trace->events_room, sizeof(*trace->events));

	if (!grown)
		return psd_out_of_memory(reader->err);
	trace->events = grown;
	trace->events[trace->n_events++] = event;
	return PSD_OK;
}

static enum psd_status take_line(struct reader *reader, char *line)
{
	size_t length = strlen(line);

	if (length && line[length - 1] == '\r')
		line[--length] = '\0';
	if (reader->is_closed && length)
		return refuse(reader, "there is text after the closing ']}'");
	if (reader->line == 1)
		return take_head(reader, line);
	if (!strcmp(line, "]}")) {
		reader->is_closed = true;
		return PSD_OK;
	}
	if (!length)
		return PSD_OK;
	if (line[length - 1] == ',')
		line[--length] = '\0';
	if (*line != '{' || line[length - 1] != '}')
		return refuse(reader, "not a trace event, must be one JSON object on a line");
	const char *phase = psd_plot_json_text(&reader->scratch, line, "ph");
	const char *pid = psd_plot_json_number(&reader->scratch, line, "pid"),
		   *tid = psd_plot_json_number(&reader->scratch, line, "tid");
	const char *arguments = strstr(line, "\"args\":{");
	enum psd_status status = PSD_OK;

	if (!*phase || !*pid)
		return refuse(reader, "not a trace event, it has no 'ph' or no 'pid'");
	if (!strcmp(phase, "M"))
		status = take_name(reader, line, arguments ? arguments : "", strtod(pid, NULL), tid);
	else if (!strcmp(phase, "X"))
		status = take_span(reader, line, arguments ? arguments : "", strtod(pid, NULL), tid);
	psd_arena_release(&reader->scratch);
	return status;
}

static enum psd_status read_bytes(struct psd_text *text, const char *path, size_t most, struct psd_error *err)
{
	struct psd_gzip *gzip = NULL;
	char *piece = malloc(PIECE);
	size_t length = 1;

	if (!piece)
		return psd_out_of_memory(err);
	enum psd_status status = psd_gzip_open(&gzip, path, err);
	while (!status && length && text->length < most) {
		status = psd_gzip_take(gzip, piece, PIECE, &length, err);
		if (!status)
			psd_text_add_bytes(text, piece, length);
		if (text->is_out_of_memory)
			status = psd_out_of_memory(err);
	}
	if (gzip)
		psd_gzip_close(gzip);
	free(piece);
	return status;
}

enum psd_status psd_plot_trace_peek(struct psd_arena *arena, const char *path, bool *is_trace, const char **head,
				    struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};
	enum psd_status status = read_bytes(&text, path, HEAD_BYTES, err);

	if (!status) {
		char *copy = psd_arena_copy(arena, text.bytes ? text.bytes : "", text.length);

		if (!copy) {
			status = psd_out_of_memory(err);
		} else {
			char *end = strchr(copy, '\n');

			*head = copy;
			*is_trace = end && end - copy > 15 && !strncmp(end - 15, "\"traceEvents\":[", 15);
		}
	}
	psd_text_release(&text);
	return status;
}

enum psd_status psd_plot_trace_read(struct psd_plot_trace *trace, const char *path, struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};
	struct reader reader = {.trace = trace, .err = err};

	*trace = (struct psd_plot_trace){.path = path};
	enum psd_status status = read_bytes(&text, path, SIZE_MAX, err);
	for (char *line = text.bytes, *next; !status && line && *line; line = next) {
		char *end = line + strcspn(line, "\n");

		next = *end ? end + 1 : end;
		*end = '\0';
		reader.line++;
		status = take_line(&reader, line);
	}
	psd_arena_release(&reader.scratch);
	psd_text_release(&text);
	reader.line = 0;
	if (!status && !trace->kinds[0] && !trace->n_events && !trace->scenario)
		status = refuse(&reader, "is empty");
	else if (!status && !reader.is_closed)
		status = refuse(&reader, "the trace is cut off, the last line must be ']}'");
	else if (!status && !trace->n_events)
		status = refuse(&reader, "there is no event in it");
	return status;
}

void psd_plot_trace_release(struct psd_plot_trace *trace)
{
	psd_arena_release(&trace->arena);
	free(trace->processes);
	free(trace->events);
}
