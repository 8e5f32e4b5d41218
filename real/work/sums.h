/* Collectives that an external library executes in place of psd's own transfers.
 *
 * A library inside nodes has two parts on a node's leader (the worker that sums for its node). The first sums the
 * node's gradients and copies the sum to the host; then the leaders execute a ring; the second copies its result to the
 * device and broadcasts it in the node. Other workers do both in one part, which waits on the device in between. */
#ifndef PSD_REAL_SUMS_H
#define PSD_REAL_SUMS_H

#include "real/library/library.h"
#include "real/net/wire.h"
#include "real/work/work.h"

/* Checks that the library of the system's all-reduce (such as Open MPI) is available; PSD_OK if the system uses no
 * library. device: kind of device; NULL: the run is a replay, which cannot call libraries. PSD_EINVAL: the library is
 * not available, or the system has a budget (`systems.budget`), to which no library keeps; the text has the system's
 * line in the scenario. */
enum psd_status psd_worker_check_library(const struct psd_system *system, unsigned workers,
					 const struct psd_device_kind *device, struct psd_error *err) PSD_MUST_CHECK;

/* For hosts that share a secret: checks that no library sums between nodes, because libraries do not encrypt. device:
 * kind of device; NULL: the run is a replay. PSD_EINVAL: a library would; the text has the system's line in the
 * scenario. */
enum psd_status psd_worker_check_secret(const struct psd_system *system, unsigned n_nodes,
					const struct psd_device_kind *device, struct psd_error *err) PSD_MUST_CHECK;

/* For a run with restarts: checks that a library's all-reduce can be interrupted when a host is lost. PSD_EINVAL: it
 * cannot; the text has the system's line in the scenario. */
enum psd_status psd_worker_check_restarts(const struct psd_system *system, const struct psd_device_kind *device,
					  struct psd_error *err) PSD_MUST_CHECK;

/* Chooses the plan's library, if it has one, and exchanges the library's invitation between hosts. fds: connections
 * between all hosts, which carry no other messages yet; until_sec: deadline (psd_socket_now_sec()). Statuses as
 * psd_worker_check_library(); PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_sums_choose(struct psd_work *work, const struct psd_mesh_options *mesh, const int fds[],
				double until_sec, union psd_wire_payload *invitation,
				struct psd_error *err) PSD_MUST_CHECK;
/* Returns the functions of the plan's library; NULL: psd's own collectives. */
const struct psd_library_kind *psd_sums_kind(const struct psd_work *work);
/* Opens the library, in the thread that will call it. All its ranks do so at the same time. */
enum psd_status psd_sums_open(struct psd_work *work, const union psd_wire_payload *invitation,
			      struct psd_error *err) PSD_MUST_CHECK;
/* True if the library is open. */
bool psd_sums_are_open(const struct psd_work *work);
/* psd_sums_need_transfer(): true if the transfer between nodes follows after a part of the library.
 * psd_sums_need_return(): true if a part of the library follows after that transfer. */
bool psd_sums_need_transfer(const struct psd_work *work);
bool psd_sums_need_return(const struct psd_work *work);
/* If the library sums inside nodes: returns the payload of the transfer between the leaders of the nodes. Otherwise
 * returns `payload`. */
struct psd_payload psd_sums_carried(const struct psd_work *work, struct psd_payload payload);
/* True if a library is executing an all-reduce that only other hosts can end. Then the thread that waits for it stays
 * until the process ends. Call it while a lane has a job of the library. */
bool psd_sums_are_held(const struct psd_work *work);
/* Closes the plan's library. Call it when the library's lane is closed. is_orderly: all other hosts close their
 * library, too. */
void psd_sums_close(const struct psd_work *work, bool is_orderly);

#endif
