/* Programs of asynchronous training. */
#include <criterion/criterion.h>

#include "tests/loaded_helper.h"

#define SCENARIO(systems, cluster)                                                                                     \
	"title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 50}\n"                        \
	"compute: {device: k20}\n"                                                                                     \
	"cluster: {stack: none, nodes: 4, network: {bandwidth: 10Gbps, latency: 50us}" cluster "}\n"                   \
	"systems:\n" systems

/* Marks the operations that the host executes and for which `op` waits in its iteration. */
static void mark(const struct psd_case *made, uint32_t op, unsigned host, bool *is_marked)
{
	const struct psd_program *program = &made->program;

	for (uint32_t e = 0; e < program->ops[op].n_dependencies; e++) {
		const struct psd_edge *edge = &program->dependencies[program->ops[op].first_dependency + e];

		if (edge->distance > 0 || is_marked[edge->op] ||
		    !psd_op_runs_on(&program->ops[edge->op], &made->plan.layout, host))
			continue;
		is_marked[edge->op] = true;
		mark(made, edge->op, host, is_marked);
	}
}

/* On each host no operation of a worker's exchange waits for another worker's in its iteration. */
static void check_independence(const struct psd_case *made)
{
	const struct psd_program *program = &made->program;
	bool *is_marked = calloc(program->n_ops, sizeof(*is_marked));
	unsigned n_updates = 0;

	cr_assert(is_marked);
	for (uint32_t o = 0; o < program->n_ops; o++) {
		const struct psd_op *op = &program->ops[o];

		if (op->kind != PSD_OP_REDUCE && op->kind != PSD_OP_SEND)
			continue;
		n_updates += op->kind == PSD_OP_REDUCE;
		for (unsigned host = 0; host < psd_layout_hosts(&made->plan.layout); host++) {
			memset(is_marked, 0, program->n_ops * sizeof(*is_marked));
			if (psd_op_runs_on(op, &made->plan.layout, host))
				mark(made, o, host, is_marked);
			for (uint32_t other = 0; other < program->n_ops; other++)
				cr_expect(!is_marked[other] || program->ops[other].kind != PSD_OP_REDUCE ||
					  program->ops[other].payload.root == op->payload.root);
		}
	}
	cr_expect_geq(n_updates, made->plan.layout.workers * made->plan.n_items);
	free(is_marked);
}

Test(async, a_workers_exchange_waits_for_no_other_worker)
{
	struct loaded loaded;

	loaded_open(&loaded, SCENARIO("  - {name: A, sync: ps, asynchronous: {bound: 7}}\n"
				      "  - {name: B, sync: ps, servers: 2, barrier: layer, asynchronous: {}}\n",
				      ""));
	for (unsigned s = 0; s < 2; s++) {
		struct psd_case made;

		loaded_case(&made, &loaded, s, 0);
		cr_expect_eq(made.program.window, s ? 1001 : 8, "%u", made.program.window);
		cr_expect_eq(psd_program_under_way(&made.program), 1);
		check_independence(&made);
		psd_case_release(&made);
	}
	loaded_close(&loaded);
}

/* Each worker moves the same bytes as with synchronous servers. */
Test(async, bytes_are_those_of_synchronous_servers)
{
	struct loaded loaded;
	struct psd_case one, other;

	loaded_open(&loaded, SCENARIO("  - {name: A, sync: ps, asynchronous: {}}\n  - {name: B, sync: ps}\n", ""));
	loaded_case(&one, &loaded, 0, 0);
	loaded_case(&other, &loaded, 1, 0);
	for (unsigned node = 0; node < 4; node++) {
		const struct psd_traffic traffic = psd_program_traffic(&one.program, node),
					 expected = psd_program_traffic(&other.program, node);

		cr_expect_eq(traffic.sent_bytes, expected.sent_bytes);
		cr_expect_eq(traffic.received_bytes, expected.received_bytes);
	}
	psd_case_release(&one);
	psd_case_release(&other);
	loaded_close(&loaded);
}
