/* Systems with a library that does the sums: operations of their programs, beside this program's own all-reduces. */
#include "engine/collectives/collective.h"
#include "tests/loaded_helper.h"

/* On a device with memory of its own. */
static const char text[] = "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 4}\n"
			   "compute: {device: k20}\n"
			   "cluster: {stack: none, network: {bandwidth: 1Gbps, latency: 0us}, host: {copy: 1GBps}}\n"
			   "systems:\n"
			   "  - {name: Ring, sync: ring, fuse: 100kB}\n"
			   "  - {name: MPI, sync: mpi, fuse: 100kB}\n"
			   "  - {name: NCCL, sync: nccl, fuse: 100kB}\n"
			   "  - {name: Two levels, sync: two-level, fuse: 100kB}\n"
			   "  - {name: NCCL inside, sync: nccl-two-level, fuse: 100kB}\n"
			   "sweep: {nodes: 2}\n";

static unsigned count(const struct psd_program *program, enum psd_op_kind kind)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < program->n_ops; i++)
		n += program->ops[i].kind == kind;
	return n;
}

static void expect_sums_of(const struct psd_program *program, const struct psd_collective *collective)
{
	for (uint32_t i = 0; i < program->n_ops; i++)
		if (program->ops[i].kind == PSD_OP_COLLECTIVE)
			cr_expect_eq(program->ops[i].payload.collective, collective);
}

Test(library, mpi_sums_what_a_ring_would_out_of_the_hosts_memory)
{
	struct loaded loaded;
	struct psd_case ring, mpi;

	loaded_open(&loaded, text);
	loaded_case(&ring, &loaded, 0, 0);
	loaded_case(&mpi, &loaded, 1, 0);
	expect_sums_of(&mpi.program, psd_libraries[0]);
	cr_assert_eq(mpi.program.n_ops, ring.program.n_ops);
	cr_assert_eq(mpi.program.n_edges, ring.program.n_edges);
	for (uint32_t i = 0; i < ring.program.n_ops; i++) {
		cr_expect_eq(mpi.program.ops[i].kind, ring.program.ops[i].kind, "operation %u", i);
		cr_expect_eq(mpi.program.ops[i].bytes, ring.program.ops[i].bytes, "operation %u", i);
	}
	psd_case_release(&mpi);
	psd_case_release(&ring);
	loaded_close(&loaded);
}

/* Each sum waits for the device to have made its gradient, and each update for its sum: no copy stands between. */
Test(library, nccl_sums_where_devices_have_the_gradients)
{
	struct loaded loaded;
	struct psd_case ring, nccl;

	loaded_open(&loaded, text);
	loaded_case(&ring, &loaded, 0, 0);
	loaded_case(&nccl, &loaded, 2, 0);
	expect_sums_of(&nccl.program, psd_libraries[1]);
	cr_expect_eq(count(&ring.program, PSD_OP_COPY_OUT), count(&ring.program, PSD_OP_COLLECTIVE));
	cr_expect_eq(count(&nccl.program, PSD_OP_COPY_OUT) + count(&nccl.program, PSD_OP_COPY_IN), 0);
	cr_expect_eq(count(&nccl.program, PSD_OP_COLLECTIVE), count(&ring.program, PSD_OP_COLLECTIVE));
	for (uint32_t i = 0; i < nccl.program.n_ops; i++) {
		const struct psd_op *op = &nccl.program.ops[i];
		const struct psd_edge *before = &nccl.program.dependencies[op->first_dependency];

		if (op->kind != PSD_OP_COLLECTIVE && op->kind != PSD_OP_APPLY)
			continue;
		cr_assert_eq(op->n_dependencies, 1);
		cr_expect_eq(nccl.program.ops[before->op].kind,
			     op->kind == PSD_OP_APPLY ? PSD_OP_COLLECTIVE : PSD_OP_BACKWARD);
	}
	psd_case_release(&nccl);
	psd_case_release(&ring);
	loaded_close(&loaded);
}

/* Transfers between nodes, and their time when alone, are those of two levels; the program makes no copy. */
Test(library, nccl_inside_nodes_goes_between_them_as_two_levels_do)
{
	struct loaded loaded;
	struct psd_case own, nccl;

	loaded_open(&loaded, text);
	loaded_case(&own, &loaded, 3, 0);
	loaded_case(&nccl, &loaded, 4, 0);
	expect_sums_of(&nccl.program, psd_libraries[2]);
	cr_expect_eq(count(&nccl.program, PSD_OP_COPY_OUT) + count(&nccl.program, PSD_OP_COPY_IN), 0);
	cr_expect_eq(count(&nccl.program, PSD_OP_COLLECTIVE), count(&own.program, PSD_OP_COLLECTIVE));
	for (unsigned node = 0; node < 2; node++)
		cr_expect_eq(psd_program_traffic(&nccl.program, node).sent_bytes,
			     psd_program_traffic(&own.program, node).sent_bytes, "node %u", node);
	psd_case_release(&nccl);
	psd_case_release(&own);
	loaded_close(&loaded);
}

Test(library, the_collective_assumed_in_its_place_is_named)
{
	for (unsigned l = 0; l < PSD_N_LIBRARIES; l++) {
		const struct psd_collective *collective = psd_libraries[l], *assumed = NULL;

		for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++)
			if (!strcmp(psd_all_reduces[p]->name, collective->assumed))
				assumed = psd_all_reduces[p];
		cr_assert(assumed, "%s", collective->name);
		cr_expect_null(assumed->assumed);
		cr_assert_not_null(collective->predicted, "%s", collective->name);
		if (collective->hops) /* NCCL's steps are its own, their sums those of the other */
			continue;
		cr_expect_eq(collective->step, assumed->step);
		cr_expect_eq(collective->alone_sec, assumed->alone_sec);
	}
}

Test(library, sums_what_was_not_rounded)
{
	struct loaded loaded;
	struct psd_case made;
	struct psd_error err;

	loaded_open(&loaded, text);
	for (unsigned s = 0; s < loaded.scenario.n_systems; s++) {
		struct psd_system system = loaded.scenario.systems[s];

		if (system.sync < PSD_SYNC_LIBRARY)
			continue;
		system.wire = 1;
		cr_expect_eq(
			psd_case_make(&made, &loaded.costed, &system, psd_scenario_point(&loaded.scenario, 0), &err),
			PSD_EINVAL);
		cr_expect(strstr(err.text, "must be 'fp32' where tensors go by method"), "%s", err.text);
	}
	loaded_close(&loaded);
}
