#include "sim/import/nsight.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"

/* Columns of all queries: text, start and end in ns, thread or process, number, then two of the kind's own. */
enum column { TEXT, START, END, THREAD, NUMBER, BLOCKS, THREADS };

struct reader {
	struct psd_trace *trace;
	struct psd_error *err;
	const char *path;
	sqlite3 *database;
};

/* A table of the export, and the query that reads it. A table that was not recorded is absent. */
struct table {
	const char *name;
	const char *query;
	enum psd_status (*take)(struct reader *reader, sqlite3_stmt *row);
};

static double us_of(sqlite3_stmt *row, enum column column)
{
	return (double)sqlite3_column_int64(row, (int)column) / 1e3;
}

/* Numbers of correlation are a process's own. Bits 24 to 47 of a thread's number are its process. */
static uint64_t correlation_of(sqlite3_stmt *row)
{
	const uint64_t process = (uint64_t)sqlite3_column_int64(row, THREAD) >> 24 & 0xffffff;

	return process << 32 | ((uint64_t)sqlite3_column_int64(row, NUMBER) & UINT32_MAX);
}

static uint32_t intern_text(struct reader *reader, const char *text, size_t length)
{
	return psd_trace_intern(reader->trace, text, length);
}

static uint32_t thread_of(struct reader *reader, sqlite3_stmt *row)
{
	const char *text = (const char *)sqlite3_column_text(row, THREAD);

	return text ? intern_text(reader, text, strlen(text)) : PSD_TRACE_NONE;
}

/* ---- NVTX ranges ---- */

/* The value behind `key` in PyTorch's text, "aten::mm, seq = 5, sizes = [[8, 4], [4, 2]]"; NULL: absent. */
static const char *value_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? at + strlen(key) : NULL;
}

/* Length of the lists at `text`, up to the bracket that closes the first. */
static size_t list_length(const char *text)
{
	size_t length = 0, depth = 0;

	do {
		depth += text[length] == '[';
		depth -= text[length] == ']' && depth;
		length += text[length] != '\0';
	} while (text[length] && depth);
	return length;
}

static enum psd_status take_range(struct reader *reader, sqlite3_stmt *row)
{
	struct psd_trace *trace = reader->trace;
	const char *text = (const char *)sqlite3_column_text(row, TEXT);
	const char *sequence, *sizes;
	struct psd_trace_op op = {
		.sequence = -1, .dims = PSD_TRACE_NONE, .parent = PSD_TRACE_NONE, .collective = PSD_TRACE_NONE};

	if (!text || sqlite3_column_type(row, END) == SQLITE_NULL)
		return PSD_OK;
	sequence = value_of(text, ", seq = ");
	sizes = value_of(text, ", sizes = [");
	op.start_us = us_of(row, START);
	op.dur_us = us_of(row, END) - op.start_us;
	op.is_range = !sequence && !sizes && !value_of(text, ", op_id = ") && !strstr(text, "::");
	op.sequence = sequence ? strtoll(sequence, NULL, 10) : -1;
	op.thread = thread_of(reader, row);
	op.name = intern_text(reader, text, op.is_range ? strlen(text) : strcspn(text, ","));
	if (sizes) {
		op.dims = intern_text(reader, sizes - 1, list_length(sizes - 1));
		trace->has_dims = true;
	}
	void *grown = psd_grown(trace->ops, trace->n_ops, &trace->ops_room, sizeof(*trace->ops));
	if (!grown || op.name == PSD_TRACE_NONE || op.thread == PSD_TRACE_NONE)
		return psd_out_of_memory(reader->err);
	trace->ops = grown;
	if (op.dur_us >= 0)
		trace->ops[trace->n_ops++] = op;
	return PSD_OK;
}

/* ---- launches and kernels ---- */

static enum psd_status take_launch(struct reader *reader, sqlite3_stmt *row)
{
	struct psd_trace *trace = reader->trace;
	void *grown = psd_grown(trace->launches, trace->n_launches, &trace->launches_room, sizeof(*trace->launches));
	const uint32_t thread = thread_of(reader, row);

	if (!grown || thread == PSD_TRACE_NONE)
		return psd_out_of_memory(reader->err);
	trace->launches = grown;
	trace->launches[trace->n_launches++] = (struct psd_trace_launch){
		.start_us = us_of(row, START), .correlation = correlation_of(row), .thread = thread};
	return PSD_OK;
}

static enum psd_status take_kernel_of(struct reader *reader, sqlite3_stmt *row, enum psd_trace_copy copy)
{
	struct psd_trace *trace = reader->trace;
	const char *text = (const char *)sqlite3_column_text(row, TEXT);
	void *grown = psd_grown(trace->kernels, trace->n_kernels, &trace->kernels_room, sizeof(*trace->kernels));
	const uint32_t name = intern_text(reader, text ? text : "", text ? strlen(text) : 0);
	const double start_us = us_of(row, START), dur_us = us_of(row, END) - start_us;

	if (!grown || name == PSD_TRACE_NONE)
		return psd_out_of_memory(reader->err);
	trace->kernels = grown;
	if (dur_us >= 0)
		trace->kernels[trace->n_kernels++] = (struct psd_trace_kernel){
			.start_us = start_us,
			.dur_us = dur_us,
			.correlation = correlation_of(row),
			.n_blocks = (uint64_t)sqlite3_column_int64(row, BLOCKS),
			.n_threads = (uint64_t)sqlite3_column_int64(row, THREADS),
			.name = name,
			.op = PSD_TRACE_NONE,
			.copy = copy,
		};
	return PSD_OK;
}

static enum psd_status take_kernel(struct reader *reader, sqlite3_stmt *row)
{
	return take_kernel_of(reader, row, PSD_TRACE_KERNEL);
}

static enum psd_status take_copy(struct reader *reader, sqlite3_stmt *row)
{
	return take_kernel_of(reader, row, PSD_TRACE_COPY);
}

static enum psd_status take_set(struct reader *reader, sqlite3_stmt *row)
{
	return take_kernel_of(reader, row, PSD_TRACE_SET);
}

static enum psd_status take_device(struct reader *reader, sqlite3_stmt *row)
{
	const char *text = (const char *)sqlite3_column_text(row, TEXT);

	if (text && reader->trace->device == PSD_TRACE_NONE)
		reader->trace->device = intern_text(reader, text, strlen(text));
	return PSD_OK;
}

/* ---- the database ---- */

/* The kind of copy 1 is from host to device. */
static const struct table tables[] = {
	{"NVTX_EVENTS",
	 "SELECT coalesce(e.text, s.value), e.start, e.end, e.globalTid, 0 FROM NVTX_EVENTS e "
	 "LEFT JOIN StringIds s ON s.id = e.textId WHERE e.eventType IN (59, 60)",
	 take_range},
	{"CUPTI_ACTIVITY_KIND_RUNTIME",
	 "SELECT NULL, start, end, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME", take_launch},
	{"CUPTI_ACTIVITY_KIND_KERNEL",
	 "SELECT s.value, k.start, k.end, k.globalPid, k.correlationId, k.gridX * k.gridY * k.gridZ, k.blockX * "
	 "k.blockY * k.blockZ FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN StringIds s ON s.id = k.demangledName",
	 take_kernel},
	{"CUPTI_ACTIVITY_KIND_MEMCPY",
	 "SELECT CASE copyKind WHEN 1 THEN 'Memcpy HtoD' ELSE 'Memcpy' END, start, end, globalPid, correlationId, 0, 0 "
	 "FROM CUPTI_ACTIVITY_KIND_MEMCPY",
	 take_copy},
	{"CUPTI_ACTIVITY_KIND_MEMSET",
	 "SELECT 'Memset', start, end, globalPid, correlationId, 0, 0 FROM CUPTI_ACTIVITY_KIND_MEMSET", take_set},
	{"TARGET_INFO_GPU", "SELECT name, 0, 0, 0, 0 FROM TARGET_INFO_GPU", take_device},
};

static enum psd_status refuse(const struct reader *reader, const char *where)
{
	return psd_error_set(reader->err, PSD_EINVAL, (struct psd_place){.path = reader->path},
			     "'%s' cannot be read (%s), must be an SQLite export of Nsight Systems", where,
			     sqlite3_errmsg(reader->database));
}

static enum psd_status has_table(const struct reader *reader, const char *name, bool *is_there)
{
	sqlite3_stmt *row = NULL;
	const int code = sqlite3_prepare_v2(reader->database,
					    "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", -1,
					    &row, NULL);
	enum psd_status status = PSD_OK;

	if (code != SQLITE_OK || sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC) != SQLITE_OK ||
	    sqlite3_step(row) != SQLITE_ROW)
		status = refuse(reader, "sqlite_master");
	else
		*is_there = sqlite3_column_int(row, 0) > 0;
	sqlite3_finalize(row);
	return status;
}

static enum psd_status read_table(struct reader *reader, const struct table *table)
{
	sqlite3_stmt *row = NULL;
	enum psd_status status = PSD_OK;
	bool is_there = false;

	PSD_TRY(has_table(reader, table->name, &is_there));
	if (!is_there)
		return PSD_OK;
	int code = sqlite3_prepare_v2(reader->database, table->query, -1, &row, NULL);
	while (code == SQLITE_OK || code == SQLITE_ROW) {
		code = sqlite3_step(row);
		if (code != SQLITE_ROW)
			break;
		reader->trace->n_events++;
		status = table->take(reader, row);
		if (status)
			break;
	}
	if (!status && code != SQLITE_DONE)
		status = refuse(reader, table->name);
	sqlite3_finalize(row);
	return status;
}

static enum psd_status read_tables(struct reader *reader)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		PSD_TRY(read_table(reader, &tables[i]));
	if (!reader->trace->n_ops)
		return psd_error_set(reader->err, PSD_EINVAL, (struct psd_place){.path = reader->path},
				     "has no NVTX ranges, must be an SQLite export of Nsight Systems with those of "
				     "torch.autograd.profiler.emit_nvtx(record_shapes=True)");
	return PSD_OK;
}

bool psd_nsight_is_one(const void *bytes, size_t length)
{
	static const char magic[] = "SQLite format 3";

	return length >= sizeof(magic) && !memcmp(bytes, magic, sizeof(magic));
}

enum psd_status psd_nsight_read(struct psd_trace *trace, const char *path, struct psd_error *err)
{
	struct reader reader = {.trace = trace, .err = err, .path = path};
	enum psd_status status;

	if (sqlite3_open_v2(path, &reader.database, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		status = refuse(&reader, "sqlite_master");
	else
		status = read_tables(&reader);
	sqlite3_close(reader.database);
	return status;
}
