/* Streams a trace's JSON through yajl, event by event. Values that no import uses are skipped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "engine/base/grow.h"
#include "engine/base/spelling.h"
#include "engine/base/text.h"
#include "engine/base/units.h"
#include "sim/import/gzip.h"
#include "sim/import/inner.h"
#include "sim/import/nsight.h"
#include "sim/import/trace.h"

enum { CHUNK_BYTES = 1 << 16, DIMS_BYTES_MAX = 4096, LONGEST_NUMBER = 40 };

/* Keys of an event, of its `args`, and of the file itself. */
enum key {
	KEY_OTHER,
	KEY_PH,
	KEY_CAT,
	KEY_NAME,
	KEY_PID,
	KEY_TID,
	KEY_TS,
	KEY_DUR,
	KEY_ARGS,
	KEY_EXTERNAL,
	KEY_CORRELATION,
	KEY_SEQUENCE,
	KEY_DIMS,
	KEY_TYPES,
	KEY_GRID,
	KEY_BLOCK,
	KEY_COLLECTIVE,
	KEY_ELEMENTS,
	KEY_GROUP,
	KEY_DTYPE,
	KEY_EVENTS,
	KEY_DISTRIBUTED,
	KEY_WORLD,
	KEY_RANK,
	KEY_DEVICES,
	N_KEYS
};

static const char *const key_names[N_KEYS] = {
	[KEY_PH] = "ph",
	[KEY_CAT] = "cat",
	[KEY_NAME] = "name",
	[KEY_PID] = "pid",
	[KEY_TID] = "tid",
	[KEY_TS] = "ts",
	[KEY_DUR] = "dur",
	[KEY_ARGS] = "args",
	[KEY_EXTERNAL] = "External id",
	[KEY_CORRELATION] = "correlation",
	[KEY_SEQUENCE] = "Sequence number",
	[KEY_DIMS] = "Input Dims",
	[KEY_TYPES] = "Input type",
	[KEY_GRID] = "grid",
	[KEY_BLOCK] = "block",
	[KEY_COLLECTIVE] = "Collective name",
	[KEY_ELEMENTS] = "In msg nelems",
	[KEY_GROUP] = "Group size",
	[KEY_DTYPE] = "dtype",
	[KEY_EVENTS] = "traceEvents",
	[KEY_DISTRIBUTED] = "distributedInfo",
	[KEY_WORLD] = "world_size",
	[KEY_RANK] = "rank",
	[KEY_DEVICES] = "deviceProperties",
};

/* Part of the file in which the parser is. */
enum part { PART_FILE, PART_EVENTS, PART_DISTRIBUTED, PART_DEVICES, PART_OTHER };

/* Fields of the event that is being read. */
struct event {
	double ts, dur;
	uint64_t external, correlation, elements, n_ranks, n_blocks, n_threads;
	int64_t sequence;
	uint32_t cat, ph, collective, dtype;
	bool has_name, has_ts, has_dur, has_dims;
	char thread[64]; /* "pid/tid" */
	char pid[24];
};

struct reader {
	struct psd_trace *trace;
	struct psd_error *err;
	const char *path;
	yajl_handle yajl;
	enum part part;
	unsigned depth;	      /* open mappings and lists */
	unsigned event_depth; /* depth of a mapping that is an event */
	bool is_in_args;
	bool is_list_file; /* the file is a list of events without a mapping around it */
	bool has_events;   /* the file has a list of events */
	enum key key;	   /* last key at the depth of the event, its arguments, or the file */
	struct event event;
	struct psd_text name; /* name of the event */
	struct psd_inner inner;
	bool keeps_all;	      /* no operator is left out */
	struct psd_text dims; /* JSON of "Input Dims" of the event */
	unsigned dims_depth;  /* depth of its list; 0: it is not being read */
	bool dims_need_comma;
	unsigned line;
	enum psd_status status;
};

static enum key key_of(const unsigned char *text, size_t length)
{
	for (unsigned i = KEY_OTHER + 1; i < N_KEYS; i++)
		if (key_names[i][0] == (char)text[0] && strlen(key_names[i]) == length &&
		    !memcmp(key_names[i], text, length))
			return (enum key)i;
	return KEY_OTHER;
}

static int fail(struct reader *reader, enum psd_status status)
{
	reader->status = status;
	return 0;
}

/* ---- the file's strings ---- */

uint32_t psd_trace_intern(struct psd_trace *trace, const char *text, size_t length)
{
	char near[512];
	char *scratch = length < sizeof(near) ? near : malloc(length + 1);
	const char *kept;
	unsigned number = PSD_TRACE_NONE;
	const char **grown;

	if (!scratch)
		return PSD_TRACE_NONE;
	memcpy(scratch, text, length);
	scratch[length] = '\0';
	if (psd_names_find(&trace->names, scratch, &number))
		goto done;
	grown = psd_grown(trace->strings, trace->n_strings, &trace->strings_room, sizeof(*grown));
	kept = grown ? psd_arena_copy(&trace->arena, scratch, length) : NULL;
	if (grown)
		trace->strings = grown;
	if (kept && psd_names_put(&trace->names, kept, trace->n_strings)) {
		trace->strings[trace->n_strings] = kept;
		number = trace->n_strings++;
	}
done:
	if (scratch != near)
		free(scratch);
	return number;
}

/* ---- events ---- */

static const char *string_of(const struct reader *reader, uint32_t number)
{
	return psd_trace_string(reader->trace, number);
}

static const char *name_of(const struct reader *reader)
{
	return reader->name.length ? reader->name.bytes : "";
}

/* Number of the string with the name of the event; PSD_TRACE_NONE: out of memory. */
static uint32_t keep_name(struct reader *reader)
{
	return reader->name.is_out_of_memory ? PSD_TRACE_NONE
					     : psd_trace_intern(reader->trace, name_of(reader), reader->name.length);
}

static uint32_t keep_collective(struct reader *reader, uint32_t name)
{
	const struct event *event = &reader->event;
	struct psd_trace *trace = reader->trace;

	void *grown = psd_grown(trace->collectives, trace->n_collectives, &trace->collectives_room,
				sizeof(*trace->collectives));
	if (!grown) {
		reader->status = psd_out_of_memory(reader->err);
		return PSD_TRACE_NONE;
	}
	trace->collectives = grown;
	trace->collectives[trace->n_collectives] = (struct psd_trace_collective){
		.name = event->collective == PSD_TRACE_NONE ? name : event->collective,
		.dtype = event->dtype,
		.elements = event->elements,
		.n_ranks = event->n_ranks > UINT32_MAX ? 0 : (uint32_t)event->n_ranks,
	};
	return trace->n_collectives++;
}

/* Interns texts of an operator that the trace needs, and appends it. */
static int append_op(struct reader *reader, struct psd_trace_op op)
{
	struct psd_trace *trace = reader->trace;
	void *grown = psd_grown(trace->ops, trace->n_ops, &trace->ops_room, sizeof(*trace->ops));

	if (grown)
		trace->ops = grown;
	op.name = grown ? keep_name(reader) : PSD_TRACE_NONE;
	if (op.name == PSD_TRACE_NONE)
		return fail(reader, psd_out_of_memory(reader->err));
	if (reader->event.has_dims) {
		op.dims = psd_trace_intern(trace, reader->dims.bytes, reader->dims.length);
		if (op.dims == PSD_TRACE_NONE)
			return fail(reader, psd_out_of_memory(reader->err));
	}
	if (op.collective != PSD_TRACE_NONE)
		op.collective = keep_collective(reader, op.name);
	trace->ops[trace->n_ops++] = op;
	return !reader->status;
}

static int keep_op(struct reader *reader, bool is_range)
{
	const struct event *event = &reader->event;
	struct psd_trace *trace = reader->trace;
	const bool is_collective = event->collective != PSD_TRACE_NONE || strncmp(name_of(reader), "nccl:", 5) == 0;
	struct psd_trace_op op = {
		.start_us = event->ts,
		.dur_us = event->dur,
		.external = event->external,
		.sequence = event->sequence,
		.dims = PSD_TRACE_NONE,
		.thread = psd_trace_intern(trace, event->thread, strlen(event->thread)),
		.parent = PSD_TRACE_NONE,
		.collective = is_collective ? 0 : PSD_TRACE_NONE,
		.is_range = is_range,
	};
	bool is_needed = true;

	if (op.thread == PSD_TRACE_NONE || reader->name.is_out_of_memory)
		return fail(reader, psd_out_of_memory(reader->err));
	trace->has_dims |= event->has_dims;
	if (!reader->keeps_all && !psd_inner_take(&reader->inner, trace, &op, name_of(reader), &is_needed))
		return fail(reader, psd_out_of_memory(reader->err));
	return !is_needed || append_op(reader, op);
}

static int keep_launch(struct reader *reader)
{
	const struct event *event = &reader->event;
	struct psd_trace *trace = reader->trace;
	void *grown = psd_grown(trace->launches, trace->n_launches, &trace->launches_room, sizeof(*trace->launches));
	const uint32_t thread = psd_trace_intern(trace, event->thread, strlen(event->thread));

	if (grown)
		trace->launches = grown;
	if (!grown || thread == PSD_TRACE_NONE)
		return fail(reader, psd_out_of_memory(reader->err));
	trace->launches[trace->n_launches++] =
		(struct psd_trace_launch){.start_us = event->ts, .correlation = event->correlation, .thread = thread};
	return 1;
}

static int keep_kernel(struct reader *reader, enum psd_trace_copy copy)
{
	const struct event *event = &reader->event;
	struct psd_trace *trace = reader->trace;
	void *grown = psd_grown(trace->kernels, trace->n_kernels, &trace->kernels_room, sizeof(*trace->kernels));
	const uint32_t name = keep_name(reader);

	if (grown)
		trace->kernels = grown;
	if (!grown || name == PSD_TRACE_NONE)
		return fail(reader, psd_out_of_memory(reader->err));
	trace->kernels[trace->n_kernels++] = (struct psd_trace_kernel){
		.start_us = event->ts,
		.dur_us = event->dur,
		.correlation = event->correlation,
		.external = event->external,
		.n_blocks = event->n_blocks,
		.n_threads = event->n_threads,
		.name = name,
		.op = PSD_TRACE_NONE,
		.copy = copy,
	};
	return 1;
}

/* Kineto's categories, today's and those of older versions. */
static int keep_event(struct reader *reader)
{
	static const char *const ops[] = {"cpu_op", "Operator", "operator", NULL};
	static const char *const ranges[] = {"user_annotation", NULL};
	static const char *const launches[] = {"cuda_runtime", "cuda_driver",	      "Runtime",     "runtime",
					       "hip_runtime",  "privateuse1_runtime", "xpu_runtime", NULL};
	static const char *const kernels[] = {"kernel", "Kernel", NULL};
	static const char *const copies[] = {"gpu_memcpy", "Memcpy", NULL};
	static const char *const sets[] = {"gpu_memset", "Memset", NULL};
	const struct event *event = &reader->event;
	const char *cat = string_of(reader, event->cat);

	reader->trace->n_events++;
	if (strcmp(string_of(reader, event->ph), "X") != 0 || !event->has_ts || !event->has_dur || !event->has_name)
		return 1;
	if (event->dur < 0)
		return fail(reader, psd_error_set(reader->err, PSD_EINVAL,
						  (struct psd_place){.path = reader->path, .line = reader->line},
						  "'dur' of the event '%.80s' is %g, must be 0 or more",
						  name_of(reader), event->dur));
	if (psd_spelling_is_one_of(cat, ops))
		return keep_op(reader, false);
	if (psd_spelling_is_one_of(cat, ranges))
		return keep_op(reader, true);
	if (!strcmp(cat, "python_function"))
		return strncmp(name_of(reader), "nn.Module: ", 11) != 0 || keep_op(reader, true);
	if (psd_spelling_is_one_of(cat, launches))
		return !event->correlation || keep_launch(reader);
	if (psd_spelling_is_one_of(cat, kernels))
		return keep_kernel(reader, PSD_TRACE_KERNEL);
	if (psd_spelling_is_one_of(cat, copies))
		return keep_kernel(reader, PSD_TRACE_COPY);
	return !psd_spelling_is_one_of(cat, sets) || keep_kernel(reader, PSD_TRACE_SET);
}

/* ---- values ---- */

/* A value as text: a number or a string. */
static int take_event_value(struct reader *reader, const char *text, size_t length)
{
	struct event *event = &reader->event;
	uint32_t *string = NULL;
	char number[LONGEST_NUMBER];
	double value = 0;

	switch (reader->key) {
	case KEY_PH: string = &event->ph; break;
	case KEY_CAT: string = &event->cat; break;
	case KEY_NAME:
		event->has_name = true;
		psd_text_clear(&reader->name);
		psd_text_add_bytes(&reader->name, text, length);
		return 1;
	case KEY_COLLECTIVE: string = &event->collective; break;
	case KEY_DTYPE: string = &event->dtype; break;
	case KEY_PID: snprintf(event->pid, sizeof(event->pid), "%.*s", (int)(length & 31), text); return 1;
	case KEY_TID:
		snprintf(event->thread, sizeof(event->thread), "%s/%.*s", event->pid, (int)(length & 31), text);
		return 1;
	default: break;
	}
	if (string) {
		*string = psd_trace_intern(reader->trace, text, length);
		return *string != PSD_TRACE_NONE || fail(reader, psd_out_of_memory(reader->err));
	}
	if (reader->key == KEY_OTHER || !length || length >= sizeof(number))
		return 1;
	memcpy(number, text, length);
	number[length] = '\0';
	switch (reader->key) {
	case KEY_EXTERNAL: psd_units_read_count(number, &event->external); break;
	case KEY_CORRELATION: psd_units_read_count(number, &event->correlation); break;
	case KEY_ELEMENTS: psd_units_read_count(number, &event->elements); break;
	case KEY_GROUP: psd_units_read_count(number, &event->n_ranks); break;
	case KEY_SEQUENCE:
		if (psd_units_read_number(number, &value) && value >= 0 && value < 1e15)
			event->sequence = (int64_t)value;
		break;
	case KEY_TS: event->has_ts = psd_units_read_number(number, &event->ts); break;
	case KEY_DUR: event->has_dur = psd_units_read_number(number, &event->dur); break;
	default: break;
	}
	return 1;
}

static int take_file_value(struct reader *reader, const char *text, size_t length)
{
	struct psd_trace *trace = reader->trace;
	char number[LONGEST_NUMBER];
	uint64_t count = 0;

	if (reader->part == PART_DEVICES && reader->key == KEY_NAME && trace->device == PSD_TRACE_NONE) {
		trace->device = psd_trace_intern(trace, text, length);
		return trace->device != PSD_TRACE_NONE || fail(reader, psd_out_of_memory(reader->err));
	}
	if (reader->part != PART_DISTRIBUTED || reader->depth != 2 || length >= sizeof(number))
		return 1;
	memcpy(number, text, length);
	number[length] = '\0';
	if (!psd_units_read_count(number, &count) || count > UINT32_MAX)
		return 1;
	if (reader->key == KEY_WORLD)
		trace->n_ranks = (uint32_t)count;
	else if (reader->key == KEY_RANK)
		trace->rank = (uint32_t)count;
	return 1;
}

static bool is_in_event(const struct reader *reader)
{
	return reader->event_depth && reader->depth == reader->event_depth + reader->is_in_args;
}

static void add_dims(struct reader *reader, const char *text, size_t length)
{
	if (reader->dims_need_comma)
		psd_text_add_bytes(&reader->dims, ",", 1);
	if (reader->dims.length < DIMS_BYTES_MAX)
		psd_text_add_bytes(&reader->dims, text, length);
	reader->dims_need_comma = true;
}

/* Multiplies a side of a grid. The product of a real one is below 2^63. */
static void take_side(uint64_t *product, const char *text, size_t length)
{
	char number[LONGEST_NUMBER];
	uint64_t side = 0;

	if (length >= sizeof(number))
		return;
	memcpy(number, text, length);
	number[length] = '\0';
	if (!psd_units_read_count(number, &side) || (side && *product > UINT64_MAX / 2 / side))
		side = 0;
	*product = (*product ? *product : 1) * side;
}

/* An entry of a list: the type of the first input, or a side of a kernel's grid. */
static int take_entry(struct reader *reader, const char *text, size_t length, bool is_number)
{
	struct event *event = &reader->event;

	if (reader->key == KEY_GRID && is_number)
		take_side(&event->n_blocks, text, length);
	else if (reader->key == KEY_BLOCK && is_number)
		take_side(&event->n_threads, text, length);
	else if (reader->key == KEY_TYPES && event->dtype == PSD_TRACE_NONE)
		event->dtype = psd_trace_intern(reader->trace, text, length);
	return 1;
}

static int take_value(struct reader *reader, const char *text, size_t length, bool is_number)
{
	if (reader->dims_depth) {
		if (is_number)
			add_dims(reader, text, length);
		return 1;
	}
	if (is_in_event(reader))
		return take_event_value(reader, text, length);
	if (reader->is_in_args && reader->depth == reader->event_depth + 2)
		return take_entry(reader, text, length, is_number);
	return reader->event_depth ? 1 : take_file_value(reader, text, length);
}

static int on_number(void *context, const char *text, size_t length)
{
	return take_value(context, text, length, true);
}

static int on_string(void *context, const unsigned char *text, size_t length)
{
	return take_value(context, (const char *)text, length, false);
}

static int on_null(void *context)
{
	(void)context;
	return 1;
}

static int on_boolean(void *context, int value)
{
	(void)context;
	(void)value;
	return 1;
}

/* ---- mappings and lists ---- */

static int on_map_start(void *context)
{
	struct reader *reader = context;

	reader->depth++;
	if (reader->part == PART_EVENTS && !reader->event_depth) {
		reader->event_depth = reader->depth;
		reader->event = (struct event){.sequence = -1,
					       .cat = PSD_TRACE_NONE,
					       .ph = PSD_TRACE_NONE,
					       .collective = PSD_TRACE_NONE,
					       .dtype = PSD_TRACE_NONE};
	} else if (reader->event_depth && reader->depth == reader->event_depth + 1 && reader->key == KEY_ARGS) {
		reader->is_in_args = true;
	}
	return 1;
}

static int on_map_key(void *context, const unsigned char *text, size_t length)
{
	struct reader *reader = context;

	if (is_in_event(reader)) {
		reader->key = key_of(text, length);
		if (reader->is_in_args && reader->key <= KEY_ARGS)
			reader->key = KEY_OTHER;
	} else if (!reader->event_depth) {
		reader->key = key_of(text, length);
	}
	if (reader->depth == 1 && !reader->is_list_file)
		reader->part = reader->key == KEY_EVENTS	? PART_EVENTS
			       : reader->key == KEY_DISTRIBUTED ? PART_DISTRIBUTED
			       : reader->key == KEY_DEVICES	? PART_DEVICES
								: PART_OTHER;
	return 1;
}

static int on_map_end(void *context)
{
	struct reader *reader = context;
	const bool is_event = reader->event_depth && reader->depth == reader->event_depth;

	reader->depth--;
	if (reader->event_depth && reader->is_in_args && reader->depth == reader->event_depth) {
		reader->is_in_args = false;
		reader->key = KEY_OTHER;
	}
	if (!is_event)
		return 1;
	reader->event_depth = 0;
	return keep_event(reader);
}

static int on_list_start(void *context)
{
	struct reader *reader = context;
	const bool is_dims = is_in_event(reader) && reader->is_in_args && reader->key == KEY_DIMS;

	reader->depth++;
	if (reader->depth == 1) {
		reader->part = PART_EVENTS;
		reader->is_list_file = true;
		reader->has_events = true;
	} else if (reader->depth == 2 && reader->part == PART_EVENTS && !reader->event_depth) {
		reader->has_events = true;
	}
	if (is_dims && !reader->dims_depth) {
		reader->dims_depth = reader->depth;
		reader->dims_need_comma = false;
		psd_text_clear(&reader->dims);
	}
	if (reader->dims_depth) {
		add_dims(reader, "[", 1);
		reader->dims_need_comma = false;
	}
	return 1;
}

static int on_list_end(void *context)
{
	struct reader *reader = context;

	reader->depth--;
	if (!reader->dims_depth)
		return 1;
	reader->dims_need_comma = false;
	add_dims(reader, "]", 1);
	if (reader->depth >= reader->dims_depth)
		return 1;
	reader->dims_depth = 0;
	if (reader->dims.is_out_of_memory)
		return fail(reader, psd_out_of_memory(reader->err));
	reader->event.has_dims = reader->dims.length < DIMS_BYTES_MAX;
	return 1;
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_map_start,
	.yajl_map_key = on_map_key,
	.yajl_end_map = on_map_end,
	.yajl_start_array = on_list_start,
	.yajl_end_array = on_list_end,
};

/* ---- the file ---- */

static unsigned count_lines(const unsigned char *bytes, size_t length)
{
	unsigned n = 0;

	for (const unsigned char *at = bytes; (at = memchr(at, '\n', length - (size_t)(at - bytes))); at++)
		n++;
	return n;
}

/* The error of a parser that stopped in this chunk. */
static enum psd_status refuse(const struct reader *reader, const unsigned char *chunk, size_t length)
{
	const size_t used = chunk ? yajl_get_bytes_consumed(reader->yajl) : 0;
	const struct psd_place at = {.path = reader->path,
				     .line = reader->line +
					     (chunk ? count_lines(chunk, used < length ? used : length) : 0)};
	unsigned char *why = yajl_get_error(reader->yajl, 0, NULL, 0);
	const char *words = why ? (const char *)why : "";

	if (!strncmp(words, "parse error: ", 13))
		words += 13;
	else if (!strncmp(words, "lexical error: ", 15))
		words += 15;
	const enum psd_status status =
		psd_error_set(reader->err, PSD_EINVAL, at, "is not JSON (%.*s), must be a trace of PyTorch's profiler",
			      (int)strcspn(words, "\n"), words);
	if (why)
		yajl_free_error(reader->yajl, why);
	return status;
}

static enum psd_status parse_chunk(struct reader *reader, const unsigned char *chunk, size_t length)
{
	const yajl_status parsed = length ? yajl_parse(reader->yajl, chunk, length) : yajl_complete_parse(reader->yajl);

	if (reader->status)
		return reader->status;
	if (parsed != yajl_status_ok)
		return refuse(reader, length ? chunk : NULL, length);
	reader->line += length ? count_lines(chunk, length) : 0;
	return PSD_OK;
}

static enum psd_status check_kept(const struct reader *reader)
{
	const struct psd_place at = {.path = reader->path};

	if (!reader->has_events)
		return psd_error_set(reader->err, PSD_EINVAL, at,
				     "has no list 'traceEvents', must be a trace of PyTorch's profiler");
	if (!reader->trace->n_ops)
		return psd_error_set(
			reader->err, PSD_EINVAL, at,
			"has %llu event%s but no operator ('cat' is 'cpu_op'), must be a trace of PyTorch's "
			"profiler with ProfilerActivity.CPU",
			(unsigned long long)reader->trace->n_events, psd_text_plural(reader->trace->n_events));
	return PSD_OK;
}

static enum psd_status parse_all(struct reader *reader, struct psd_gzip *gzip)
{
	unsigned char *chunk = malloc(CHUNK_BYTES);
	enum psd_status status = chunk ? PSD_OK : psd_out_of_memory(reader->err);
	size_t length = 1;

	while (!status && length) {
		status = psd_gzip_take(gzip, chunk, CHUNK_BYTES, &length, reader->err);
		if (!status)
			status = parse_chunk(reader, chunk, length);
	}
	free(chunk);
	return status ? status : check_kept(reader);
}

static enum psd_status read_once(struct psd_trace *trace, const char *path, struct psd_gzip *gzip, bool keeps_all,
				 struct psd_error *err)
{
	struct reader reader = {.trace = trace, .err = err, .path = path, .line = 1, .keeps_all = keeps_all};

	reader.yajl = yajl_alloc(&callbacks, NULL, &reader);
	if (!reader.yajl)
		return psd_out_of_memory(err);
	yajl_config(reader.yajl, yajl_dont_validate_strings, 1);
	const enum psd_status status = parse_all(&reader, gzip);
	yajl_free(reader.yajl);
	psd_text_release(&reader.name);
	psd_text_release(&reader.dims);
	psd_inner_release(&reader.inner);
	return status;
}

/* A pipe can be read only once, so all operators are kept. */
static enum psd_status read_all(struct psd_trace *trace, const char *path, struct psd_gzip *gzip, struct psd_error *err)
{
	struct psd_trace fresh = {.device = PSD_TRACE_NONE};
	const bool keeps_all = !psd_gzip_rewind(gzip);
	enum psd_status status = read_once(&fresh, path, gzip, keeps_all, err);

	if (!status && !psd_trace_settle(&fresh) && psd_gzip_rewind(gzip)) {
		psd_trace_release(&fresh);
		status = read_once(&fresh, path, gzip, true, err);
		if (!status)
			(void)psd_trace_settle(&fresh);
	}
	if (status)
		psd_trace_release(&fresh);
	else
		*trace = fresh;
	return status;
}

static enum psd_status read_database(struct psd_trace *trace, const char *path, struct psd_error *err)
{
	struct psd_trace fresh = {.device = PSD_TRACE_NONE};
	const enum psd_status status = psd_nsight_read(&fresh, path, err);

	if (status) {
		psd_trace_release(&fresh);
		return status;
	}
	(void)psd_trace_settle(&fresh);
	*trace = fresh;
	return PSD_OK;
}

enum psd_status psd_trace_read(struct psd_trace *trace, const char *path, struct psd_error *err)
{
	struct psd_gzip *gzip;
	size_t length;

	PSD_TRY(psd_gzip_open(&gzip, path, err));
	const void *begin = psd_gzip_peek(gzip, &length);
	const bool is_database = psd_nsight_is_one(begin, length);
	const enum psd_status status = is_database ? PSD_OK : read_all(trace, path, gzip, err);
	psd_gzip_close(gzip);
	return is_database ? read_database(trace, path, err) : status;
}

enum psd_status psd_trace_parse(struct psd_trace *trace, const char *path, const void *bytes, size_t length,
				struct psd_error *err)
{
	struct psd_gzip *gzip;

	PSD_TRY(psd_gzip_open_bytes(&gzip, path, bytes, length, err));
	const enum psd_status status = read_all(trace, path, gzip, err);
	psd_gzip_close(gzip);
	return status;
}

void psd_trace_release(struct psd_trace *trace)
{
	free(trace->ops);
	free(trace->launches);
	free(trace->kernels);
	free(trace->collectives);
	free(trace->strings);
	psd_names_release(&trace->names);
	psd_arena_release(&trace->arena);
	*trace = (struct psd_trace){.device = PSD_TRACE_NONE};
}
