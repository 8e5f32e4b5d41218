/* Traces by rank: keys of PyTorch's profiler, steps, launches, and the begins of receives. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "engine/base/output.h"
#include "engine/result/trace_files.h"
#include "tests/loaded_helper.h"
#include "tests/scratch_folder.h"

static const char scenario[] = "title: t\n"
			       "model: {graph: scenarios/models/mlp.yaml, batch_per_worker: 32}\n"
			       "compute: {device: v100}\n"
			       "cluster: {stack: none, nodes: 4, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			       "systems:\n"
			       "  - {name: Ring, sync: ring}\n"
			       "  - {name: PS, sync: ps, servers: 1}\n";

static uint32_t find_op(const struct psd_program *program, enum psd_op_kind kind)
{
	uint32_t op = 0;

	while (op < program->n_ops && program->ops[op].kind != kind)
		op++;
	cr_assert_lt(op, program->n_ops);
	return op;
}

/* ---- a trace of rank 1, as a tree ---- */

struct made_trace {
	struct loaded loaded;
	struct psd_case made;
	struct psd_rank_trace trace;
	struct psd_text text;
	yajl_val tree;
};

static void begin(struct made_trace *made, unsigned system, bool is_predicted)
{
	struct psd_error err;

	memset(made, 0, sizeof(*made));
	loaded_open(&made->loaded, scenario);
	loaded_case(&made->made, &made->loaded, system, 0);
	cr_assert_eq(psd_rank_trace_init(&made->trace, &made->made, 1, is_predicted, &err), PSD_OK);
	psd_rank_trace_add_head(&made->trace, &made->text, &made->made, "sim-flow");
}

static void add(struct made_trace *made, struct psd_span span)
{
	span.host = 1;
	psd_rank_trace_add_span(&made->trace, &made->text, &made->made.program, &span);
}

static void finish(struct made_trace *made)
{
	char reason[256] = "";

	psd_rank_trace_add_end(&made->trace, &made->text);
	cr_assert_not(made->text.is_out_of_memory);
	made->tree = yajl_tree_parse(made->text.bytes, reason, sizeof(reason));
	cr_assert_not_null(made->tree, "%s", reason);
}

static void release(struct made_trace *made)
{
	yajl_tree_free(made->tree);
	psd_text_release(&made->text);
	psd_rank_trace_release(&made->trace);
	psd_case_release(&made->made);
	loaded_close(&made->loaded);
}

/* Value at keys that dots separate; ends the test if it is missing. */
static yajl_val at(yajl_val value, const char *keys)
{
	char copy[128], *rest = copy;

	snprintf(copy, sizeof(copy), "%s", keys);
	for (char *key; value && (key = strsep(&rest, "."));) {
		const char *path[] = {key, NULL};

		value = yajl_tree_get(value, path, yajl_t_any);
	}
	cr_assert_not_null(value, "%s", keys);
	return value;
}

static double number_at(yajl_val value, const char *keys)
{
	return YAJL_GET_DOUBLE(at(value, keys));
}

static const char *text_at(yajl_val value, const char *keys)
{
	return YAJL_GET_STRING(at(value, keys));
}

/* Event number `wanted`, from 0, of a category. */
static yajl_val event_of(const struct made_trace *made, const char *category, unsigned wanted)
{
	const char *cat[] = {"cat", NULL};
	const yajl_val events = at(made->tree, "traceEvents");

	for (size_t i = 0; i < YAJL_GET_ARRAY(events)->len; i++) {
		const yajl_val event = YAJL_GET_ARRAY(events)->values[i],
			       found = yajl_tree_get(event, cat, yajl_t_string);

		if (found && !strcmp(found->u.string, category) && wanted-- == 0)
			return event;
	}
	cr_assert_fail("no event %s", category);
	return NULL;
}

static void expect_near(double actual, double expected)
{
	cr_expect_float_eq(actual, expected, 1e-6, "%.9g, expected %.9g", actual, expected);
}

/* ---- claims ---- */

Test(rank_trace, an_all_reduce_has_kinetos_keys)
{
	struct made_trace made;
	char counter[160];
	yajl_val kernel;

	begin(&made, 0, true);
	const uint32_t op = find_op(&made.made.program, PSD_OP_COLLECTIVE);
	const uint64_t elements = made.made.program.ops[op].payload.elements;

	add(&made, (struct psd_span){.task = {3, op}, .start_sec = 1.0, .end_sec = 1.5});
	finish(&made);
	cr_expect_eq(number_at(made.tree, "distributedInfo.rank"), 1);
	cr_expect_eq(number_at(made.tree, "distributedInfo.world_size"), 4);
	cr_expect_not_null(strstr(made.text.bytes, "\"rank\": 1,")); /* readers want the blank */
	kernel = event_of(&made, "kernel", 0);
	cr_expect_str_eq(text_at(kernel, "name"), "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
	expect_near(number_at(kernel, "ts"), 1e6);
	expect_near(number_at(kernel, "dur"), 0.5e6);
	cr_expect_str_eq(text_at(kernel, "args.Collective name"), "allreduce");
	cr_expect_str_eq(text_at(kernel, "args.dtype"), "Float");
	cr_expect_str_eq(text_at(kernel, "args.Process Group Ranks"), "[0, 1, 2, 3]");
	cr_expect_eq(number_at(kernel, "args.In msg nelems"), (double)elements);
	cr_expect_eq(number_at(kernel, "args.Group size"), 4);
	/* a ring's member sends 2 (n-1)/n of the values to the next one, and receives as many from the one before */
	const yajl_val sends = at(kernel, "args.sends"), receives = at(kernel, "args.receives");
	const double share_bytes = 2.0 * 3 / 4 * 4 * (double)elements;

	cr_assert_eq(YAJL_GET_ARRAY(sends)->len, 1);
	cr_assert_eq(YAJL_GET_ARRAY(receives)->len, 1);
	cr_expect_eq(YAJL_GET_INTEGER(YAJL_GET_ARRAY(YAJL_GET_ARRAY(sends)->values[0])->values[0]), 2);
	cr_expect_eq(YAJL_GET_INTEGER(YAJL_GET_ARRAY(YAJL_GET_ARRAY(receives)->values[0])->values[0]), 0);
	expect_near(YAJL_GET_DOUBLE(YAJL_GET_ARRAY(YAJL_GET_ARRAY(sends)->values[0])->values[1]), share_bytes);
	snprintf(counter, sizeof(counter),
		 "{\"name\":\"bytes received\",\"ph\":\"C\",\"pid\":0,\"ts\":1500000.000,\"args\":{\"bytes\":%.0f}}",
		 share_bytes);
	cr_expect_not_null(strstr(made.text.bytes, counter), "%s", made.text.bytes);
	release(&made);
}

/* A launch has the number of its kernel, and its time is in the step of the kernel's iteration. */
Test(rank_trace, steps_begin_with_the_first_layer_of_an_iteration)
{
	struct made_trace made;
	yajl_val step, launch;

	begin(&made, 0, true);
	const uint32_t forward = find_op(&made.made.program, PSD_OP_FORWARD),
		       backward = find_op(&made.made.program, PSD_OP_BACKWARD);

	add(&made, (struct psd_span){.task = {0, forward}, .start_sec = 0.0, .end_sec = 1.0});
	add(&made, (struct psd_span){.task = {0, backward}, .start_sec = 2.0, .end_sec = 3.0});
	add(&made, (struct psd_span){.task = {1, forward}, .start_sec = 5.0, .end_sec = 6.0});
	add(&made, (struct psd_span){.task = {1, backward}, .start_sec = 7.0, .end_sec = 9.0});
	finish(&made);
	for (unsigned i = 0; i < 2; i++) {
		step = event_of(&made, "user_annotation", i);
		cr_expect_str_eq(text_at(step, "name"), i ? "ProfilerStep#1" : "ProfilerStep#0");
		expect_near(number_at(step, "ts"), i ? 5e6 : 0.0);
		expect_near(number_at(step, "dur"), i ? 4e6 : 5e6);
	}
	for (unsigned i = 0; i < 4; i++) {
		launch = event_of(&made, "cuda_runtime", i);
		cr_expect_eq(number_at(launch, "args.correlation"),
			     number_at(event_of(&made, "kernel", i), "args.correlation"));
		expect_near(number_at(launch, "ts"), i < 2 ? 0.0 : 5e6); /* one ahead, in its own step */
	}
	release(&made);
}

Test(rank_trace, a_step_ends_with_its_iteration_where_that_is_told)
{
	struct made_trace made;

	begin(&made, 0, false);
	const uint32_t forward = find_op(&made.made.program, PSD_OP_FORWARD);

	add(&made, (struct psd_span){.task = {0, forward}, .start_sec = 0.0, .end_sec = 1.0});
	add(&made, (struct psd_span){.task = {0, made.made.program.next_op}, .start_sec = 3.0, .end_sec = 3.0});
	add(&made, (struct psd_span){.task = {1, forward}, .start_sec = 3.5, .end_sec = 4.0});
	add(&made, (struct psd_span){.task = {1, made.made.program.next_op}, .start_sec = 6.0, .end_sec = 6.0});
	finish(&made);
	for (unsigned i = 0; i < 2; i++) {
		expect_near(number_at(event_of(&made, "user_annotation", i), "ts"), i ? 3e6 : 0.0);
		expect_near(number_at(event_of(&made, "user_annotation", i), "dur"), 3e6);
	}
	cr_expect_null(strstr(made.text.bytes, "ProfilerStep#2")); /* nothing is in it */
	release(&made);
}

/* In a prediction a receive waits from the end of the worker's own push on, in a real run from the first byte on. */
static void expect_begin_of_receive(bool is_predicted, double begin_sec)
{
	struct made_trace made;
	yajl_val receive;

	begin(&made, 1, is_predicted);
	uint32_t push = find_op(&made.made.program, PSD_OP_SEND), pull = push + 1;

	while (made.made.program.ops[pull].kind != PSD_OP_SEND ||
	       made.made.program.ops[pull].item != made.made.program.ops[push].item ||
	       made.made.program.ops[pull].where != PSD_WHERE_SHARDS)
		pull++;
	add(&made, (struct psd_span){.task = {0, push}, .start_sec = 1.0, .end_sec = 2.0});
	add(&made,
	    (struct psd_span){
		    .task = {0, pull}, .is_arrival = true, .bytes = 400, .start_sec = 3.0, .end_sec = 4.0, .peer = 4});
	finish(&made);
	receive = event_of(&made, "kernel", 1);
	cr_expect_str_eq(text_at(receive, "name"), "ncclDevKernel_SendRecv");
	cr_expect_eq(number_at(receive, "args.Src Rank"), 4);
	cr_expect_eq(number_at(receive, "args.In msg nelems"), 100);
	expect_near(number_at(receive, "ts"), 1e6 * begin_sec);
	expect_near(number_at(receive, "dur"), 1e6 * (4.0 - begin_sec));
	release(&made);
}

Test(rank_trace, a_predicted_receive_waits_for_the_server)
{
	expect_begin_of_receive(true, 2.0);
}

Test(rank_trace, a_real_receive_begins_with_its_first_byte)
{
	expect_begin_of_receive(false, 3.0);
}

Test(rank_trace, a_kernel_lasts_as_long_as_its_device_works)
{
	struct made_trace made;

	begin(&made, 0, false);
	add(&made, (struct psd_span){.task = {0, find_op(&made.made.program, PSD_OP_FORWARD)},
				     .start_sec = 1.0,
				     .end_sec = 2.0,
				     .work_sec = 0.75});
	finish(&made);
	expect_near(number_at(event_of(&made, "kernel", 0), "ts"), 1.25e6);
	expect_near(number_at(event_of(&made, "kernel", 0), "dur"), 0.75e6);
	release(&made);
}

/* ---- files ---- */

Test(rank_trace, each_mark_in_a_path_is_the_rank)
{
	static const char *const paths[] = {"%r/t%r%r.json", "t.json"}, *const expected[] = {"12/t1212.json", "t.json"};

	for (unsigned i = 0; i < 2; i++) {
		char *path = psd_trace_path_of(paths[i], 12);

		cr_expect_str_eq(path, expected[i]);
		free(path);
	}
}

FOLDER_TEST(rank_trace, each_worker_has_a_file_and_a_server_none, scratch_folder_make())
{
	struct psd_trace_files files;
	struct loaded loaded;
	struct psd_case made;
	struct psd_error err;

	loaded_open(&loaded, scenario);
	loaded_case(&made, &loaded, 1, 0);
	cr_assert_eq(psd_trace_files_open(&files, scratch_folder_path(&folder, "rank-%r.json").text, 0, 4, 4, &err),
		     PSD_OK);
	cr_assert_eq(psd_trace_files_begin(&files, &made, "sim-flow", true, &err), PSD_OK);
	for (unsigned host = 0; host < 5; host++)
		psd_trace_files_add(&files, &made.program,
				    &(struct psd_span){.host = host,
						       .task = {0, find_op(&made.program, PSD_OP_FORWARD)},
						       .end_sec = 1.0});
	cr_assert_eq(psd_trace_files_end(&files, &err), PSD_OK);
	cr_assert_eq(psd_outputs_commit(&err), PSD_OK);
	psd_trace_files_release(&files);
	for (unsigned rank = 0; rank < 4; rank++) {
		char name[32], *text;

		snprintf(name, sizeof(name), "rank-%u.json", rank);
		text = scratch_folder_read(&folder, name);
		snprintf(name, sizeof(name), "\"rank\": %u,", rank);
		cr_expect_not_null(strstr(text, name), "%s", text);
		cr_expect_not_null(strstr(text, "\"forward fc1\""), "%s", text);
		free(text);
	}
	cr_expect_neq(access(scratch_folder_path(&folder, "rank-4.json").text, F_OK), 0);
	/* a folder with files of more workers would be read as one run */
	cr_expect_eq(psd_trace_files_open(&files, scratch_folder_path(&folder, "rank-%r.json").text, 0, 3, 3, &err),
		     PSD_EFILE);
	cr_expect_not_null(strstr(err.text, "rank-3.json: is the trace of another run"), "%s", err.text);
	psd_case_release(&made);
	loaded_close(&loaded);
}
