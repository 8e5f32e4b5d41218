/* Engines that cuDNN's graph API lists in the stand-in, and shapes that it takes, as cuDNN 9.19 does for a GPU that is
 * only described to it. */
#include <criterion/criterion.h>
#include <cudnn.h>

#include "tests/cuda/conv_helper.h"
#include "tests/cuda/stand_in.h"

#define NOTE(name) (1U << CUDNN_NUMERICAL_NOTE_##name)

static const unsigned compiles = 1U << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;

static const struct shape shape = {
	2, 4, 6, 5, 6, 3, 3, 2, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NHWC};
static const float whole[2] = {1, 0}, adding[2] = {1, 1};

static cudnnBackendDescriptor_t graph_of(const struct dnn *dnn, cudnnDataType_t type, enum tensor made,
					 const float ratios[2])
{
	const struct parts parts = describe_parts(&shape, type);
	const cudnnBackendDescriptor_t graph = describe_graph(dnn, made, &parts, ratios);

	destroy_parts(&parts);
	return graph;
}

/* ---- lists of engines ---- */

static void expect_said(const struct list *list, const struct said *said, int64_t n)
{
	cr_assert_eq(list->n, n, "%d", (int)list->n);
	for (int64_t i = 0; i < n; i++)
		cr_expect(list->said[i].index == said[i].index && list->said[i].notes == said[i].notes &&
				  list->said[i].behaviours == said[i].behaviours,
			  "%d: engine %d, notes %x, behaviours %x", (int)i, (int)list->said[i].index,
			  list->said[i].notes, list->said[i].behaviours);
}

static void expect_listed(const struct dnn *dnn, cudnnDataType_t type, enum tensor made, cudnnBackendHeurMode_t mode,
			  const struct said *said, int64_t n)
{
	const cudnnBackendDescriptor_t graph = graph_of(dnn, type, made, whole);
	const struct list list = list_engines(graph, mode);

	expect_said(&list, said, n);
	destroy_list(&list);
	destroy(graph);
}

/* The quickest engines are not the most exact ones, and those of gradients give no equal bits. */
DNN_TEST(stand_in_backend, engines_are_listed_with_what_is_known_of_them)
{
	const struct said forward[] = {{7, 0, compiles},
				       {5, NOTE(WINOGRAD) | NOTE(WINOGRAD_TILE_13x13), 0},
				       {4, NOTE(TENSOR_CORE), 0},
				       {1, 0, 0}};
	const struct said narrow_forward[] = {{7, NOTE(TENSOR_CORE), compiles},
					      {6, NOTE(TENSOR_CORE) | NOTE(REDUCED_PRECISION_REDUCTION), 0},
					      {5, NOTE(TENSOR_CORE) | NOTE(WINOGRAD) | NOTE(WINOGRAD_TILE_13x13), 0},
					      {1, NOTE(TENSOR_CORE), 0}};
	const struct said back[] = {
		{7, 0, compiles}, {4, NOTE(TENSOR_CORE), 0}, {2, NOTE(NONDETERMINISTIC), 0}, {1, 0, 0}};
	const struct said narrow_back[] = {{7, NOTE(TENSOR_CORE), compiles},
					   {2, NOTE(TENSOR_CORE) | NOTE(NONDETERMINISTIC), 0},
					   {1, NOTE(TENSOR_CORE), 0}};
	const struct said fallback[] = {{2, NOTE(NONDETERMINISTIC), 0}, {0, NOTE(STRICT_NAN_PROP), 0}};

	expect_listed(dnn, CUDNN_DATA_FLOAT, Y, CUDNN_HEUR_MODE_A, forward, 4);
	expect_listed(dnn, CUDNN_DATA_HALF, Y, CUDNN_HEUR_MODE_A, narrow_forward, 4);
	expect_listed(dnn, CUDNN_DATA_FLOAT, X, CUDNN_HEUR_MODE_A, back, 4);
	expect_listed(dnn, CUDNN_DATA_FLOAT, W, CUDNN_HEUR_MODE_A, back, 4);
	expect_listed(dnn, CUDNN_DATA_BFLOAT16, X, CUDNN_HEUR_MODE_A, narrow_back, 3);
	expect_listed(dnn, CUDNN_DATA_BFLOAT16, W, CUDNN_HEUR_MODE_A, narrow_back, 3);
	expect_listed(dnn, CUDNN_DATA_FLOAT, Y, CUDNN_HEUR_MODE_FALLBACK, fallback + 1, 1);
	expect_listed(dnn, CUDNN_DATA_BFLOAT16, Y, CUDNN_HEUR_MODE_FALLBACK, fallback + 1, 1);
	expect_listed(dnn, CUDNN_DATA_FLOAT, X, CUDNN_HEUR_MODE_FALLBACK, fallback, 2);
	expect_listed(dnn, CUDNN_DATA_FLOAT, W, CUDNN_HEUR_MODE_FALLBACK, fallback, 2);
}

/* -1: the plan is refused. The workspace is that of a filter's outputs and a map: 2 x 3 x 3 and 6 x 5 floats. */
static void expect_workspaces(const struct dnn *dnn, cudnnDataType_t type, enum tensor made, const float ratios[2],
			      const int64_t *bytes, int64_t n)
{
	const cudnnBackendDescriptor_t graph = graph_of(dnn, type, made, ratios);
	const struct list list = list_engines(graph, CUDNN_HEUR_MODE_A);

	cr_assert_eq(list.n, n);
	for (int64_t i = 0; i < n; i++) {
		cudnnStatus_t status;
		const cudnnBackendDescriptor_t plan = try_plan(dnn, list.configs[i], &status);

		cr_expect_eq(status == CUDNN_STATUS_SUCCESS, bytes[i] >= 0, "%d: %s", (int)i,
			     cudnnGetErrorString(status));
		if (status == CUDNN_STATUS_SUCCESS)
			cr_expect_eq(workspace_bytes(plan), bytes[i]);
		destroy(plan);
	}
	destroy_list(&list);
	destroy(graph);
}

DNN_TEST(stand_in_backend, plans_say_what_they_need)
{
	const int64_t bytes = 4 * (2 * 3 * 3 + 6 * 5);

	expect_workspaces(dnn, CUDNN_DATA_FLOAT, Y, whole, (const int64_t[]){-1, 0, bytes, bytes}, 4);
	expect_workspaces(dnn, CUDNN_DATA_FLOAT, X, adding, (const int64_t[]){-1, bytes, 0, bytes}, 4);
	expect_workspaces(dnn, CUDNN_DATA_HALF, X, whole, (const int64_t[]){-1, 0, bytes}, 3);
	expect_workspaces(dnn, CUDNN_DATA_HALF, X, adding, (const int64_t[]){-1, 0, -1}, 3);
	expect_workspaces(dnn, CUDNN_DATA_HALF, Y, adding, (const int64_t[]){-1, 0, 0, -1}, 4);
	expect_workspaces(dnn, CUDNN_DATA_HALF, W, adding, (const int64_t[]){-1, 0, bytes}, 3);
	psd_stand_in_set_workspaces(1000);
	expect_workspaces(dnn, CUDNN_DATA_FLOAT, W, whole, (const int64_t[]){-1, 1000 + bytes, 0, 1000 + bytes}, 4);
}

/* The count exceeds the number of fetched results by one, and a result is not fetched again. */
DNN_TEST(stand_in_backend, results_are_fetched_once)
{
	cudnnBackendDescriptor_t configs[MOST_ENGINES], graph, heuristics;
	int64_t n = 0, n_fetched;

	graph = graph_of(dnn, CUDNN_DATA_FLOAT, W, whole);
	heuristics = describe_heuristics(graph, CUDNN_HEUR_MODE_A);
	destroy(graph);
	must(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n,
				      NULL));
	cr_assert_eq(n, 4 + 1);
	n_fetched = fetch_configs(heuristics, configs, 1);
	cr_assert_eq(n_fetched, 1);
	n_fetched += fetch_configs(heuristics, configs + 1, MOST_ENGINES - 1);
	cr_assert_eq(n_fetched, 4);
	cr_assert(say(configs[0]).index == 7 && say(configs[1]).index == 4);
	cr_assert_eq(fetch_configs(heuristics, configs + 4, 1), 0);
	for (int64_t i = 0; i < n_fetched; i++)
		destroy(configs[i]);
	destroy(heuristics);
}

/* ---- estimates that are wrong ---- */

DNN_TEST(stand_in_backend, a_first_engine_may_be_refused)
{
	for (enum tensor made = X; made < TENSORS; made++) {
		const cudnnBackendDescriptor_t graph = graph_of(dnn, CUDNN_DATA_FLOAT, made, whole);
		struct list list;
		cudnnStatus_t status;

		psd_stand_in_set_estimates(PSD_STAND_IN_ESTIMATES_UNPLANNED);
		list = list_engines(graph, CUDNN_HEUR_MODE_A);
		cr_assert(list.n == 5 && list.said[0].notes == 0 && list.said[0].behaviours == 0);
		cr_assert_eq(plan_status(dnn, list.configs[0]), CUDNN_STATUS_NOT_SUPPORTED);
		destroy_list(&list);

		psd_stand_in_set_estimates(PSD_STAND_IN_ESTIMATES_UNBEGUN);
		list = list_engines(graph, CUDNN_HEUR_MODE_A);
		cr_assert(list.n == 5 && list.said[0].notes == 0 && list.said[0].behaviours == 0);
		const cudnnBackendDescriptor_t plan = try_plan(dnn, list.configs[0], &status);

		must(status);
		cr_assert_eq(workspace_bytes(plan), 0);
		cr_assert_eq(execute(dnn, plan), CUDNN_STATUS_NOT_SUPPORTED);
		destroy(plan);
		destroy_list(&list);
		destroy(graph);
	}
}

Test(stand_in_backend, equal_bits_may_be_had_in_the_fallback_alone)
{
	cudnnBackendDescriptor_t graph;
	struct list list;
	struct dnn dnn;

	psd_stand_in_set_estimates(PSD_STAND_IN_ESTIMATES_UNEQUAL);
	open_dnn(&dnn);
	graph = graph_of(&dnn, CUDNN_DATA_FLOAT, W, whole);
	list = list_engines(graph, CUDNN_HEUR_MODE_A);
	cr_assert_eq(list.n, 4);
	for (int64_t i = 0; i < list.n; i++)
		cr_assert(list.said[i].notes & NOTE(NONDETERMINISTIC));
	destroy_list(&list);
	list = list_engines(graph, CUDNN_HEUR_MODE_FALLBACK);
	cr_assert(list.n == 2 && list.said[1].notes == NOTE(STRICT_NAN_PROP));
	destroy_list(&list);
	destroy(graph);
	close_dnn(&dnn);
}

/* ---- shapes ---- */

/* Whether tensors of these sizes make an operation. */
static cudnnStatus_t fit(const int x[4], const int w[4], const int y[4])
{
	const struct parts parts = {.tensors = {describe_tensor(X, x, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW),
						describe_tensor(W, w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW),
						describe_tensor(Y, y, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW)},
				    .how = describe_how(&shape)};
	cudnnStatus_t statuses[TENSORS];

	for (enum tensor made = X; made < TENSORS; made++) {
		struct attribute attributes[OPERATION_ATTRIBUTES];

		fill_operation(attributes, made, &parts, whole);
		destroy(describe_without(-1, operations[made].kind, attributes, OPERATION_ATTRIBUTES, &statuses[made]));
	}
	destroy_parts(&parts);
	cr_assert(statuses[W] == statuses[X] && statuses[Y] == statuses[X]);
	return statuses[X];
}

DNN_TEST(stand_in_backend, shapes_that_do_not_fit_are_refused)
{
	static const struct {
		int x[4], w[4], y[4];
	} wrong[] = {
		{{2, 4, 6, 5}, {6, 2, 3, 3}, {1, 6, 6, 5}}, /* samples */
		{{2, 4, 6, 5}, {6, 2, 3, 3}, {2, 5, 6, 5}}, /* outputs */
		{{2, 4, 6, 5}, {6, 2, 3, 3}, {2, 6, 5, 5}}, /* rows */
		{{2, 4, 6, 5}, {6, 2, 3, 3}, {2, 6, 6, 6}}, /* columns */
		{{2, 4, 6, 5}, {6, 3, 3, 3}, {2, 6, 6, 5}}, /* groups of 3 of 4 channels */
		{{2, 4, 6, 5}, {6, 8, 3, 3}, {2, 6, 6, 5}}, /* and of 8 */
		{{2, 4, 6, 5}, {6, 1, 3, 3}, {2, 6, 6, 5}}, /* 6 outputs of 4 groups */
		{{2, 4, 2, 2}, {6, 2, 7, 7}, {2, 6, 1, 1}}, /* a filter that is larger than what it is for */
	};

	(void)dnn;
	must(fit((const int[]){2, 4, 6, 5}, (const int[]){6, 2, 3, 3}, (const int[]){2, 6, 6, 5}));
	must(fit((const int[]){2, 4, 6, 5}, (const int[]){6, 4, 3, 3}, (const int[]){2, 6, 6, 5}));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect_eq(fit(wrong[i].x, wrong[i].w, wrong[i].y), CUDNN_STATUS_BAD_PARAM, "%zu", i);
}

/* How many engines there are for tensors of these types and orders; 1x1 maps and one channel are in both orders. */
static int64_t n_engines(const struct dnn *dnn, const struct shape *of, const cudnnDataType_t types[TENSORS],
			 const cudnnTensorFormat_t formats[TENSORS])
{
	const struct parts parts = {
		.tensors = {describe_tensor(X, (const int[]){of->n, of->c, of->h, of->w}, types[X], formats[X]),
			    describe_tensor(W, (const int[]){of->k, of->c / of->groups, of->r, of->s}, types[W],
					    formats[W]),
			    describe_tensor(Y, (const int[]){of->n, of->k, out_h(of), out_w(of)}, types[Y],
					    formats[Y])},
		.how = describe_how(of)};
	const cudnnBackendDescriptor_t graph = describe_graph(dnn, W, &parts, whole);
	const struct list list = list_engines(graph, CUDNN_HEUR_MODE_A);

	destroy_parts(&parts);
	destroy_list(&list);
	destroy(graph);
	return list.n;
}

DNN_TEST(stand_in_backend, mixtures_of_types_and_orders_have_no_engine)
{
	const cudnnDataType_t floats[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT};
	const cudnnDataType_t mixed[] = {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16};
	const cudnnTensorFormat_t plain[] = {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NCHW};
	const cudnnTensorFormat_t other_x[] = {CUDNN_TENSOR_NHWC, CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NCHW};
	const cudnnTensorFormat_t other_w[] = {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC, CUDNN_TENSOR_NCHW};
	const struct shape thin = {
		2, 1, 6, 5, 6, 1, 1, 1, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NCHW};

	cr_expect_eq(n_engines(dnn, &shape, floats, plain), 4);
	cr_expect_eq(n_engines(dnn, &shape, mixed, plain), 0);
	cr_expect_eq(n_engines(dnn, &shape, floats, other_x), 0);
	cr_expect_eq(n_engines(dnn, &shape, floats, other_w), 0);
	cr_expect_eq(n_engines(dnn, &thin, floats, other_x), 4);
	cr_expect_eq(n_engines(dnn, &thin, floats, other_w), 4);
}
