/* Memory that hosts of one node share. One of them makes it, and gives it to others while all hosts join. A giver and a
 * taker meet over their connection, which carries no other messages meanwhile. One thread each. */
#ifndef PSD_REAL_NODE_MEMORY_H
#define PSD_REAL_NODE_MEMORY_H

#include "real/net/transport.h"

/* Meeting of two hosts at which one gives memory and the other one takes it. */
struct psd_node_meeting {
	const struct psd_transport_join *join;
	unsigned peer;
	int fd;		/* socket of a connection to the peer */
	size_t n_bytes; /* length of the memory; equal at both ends */
	/* Giver: initialises memory that it has made, which is filled with zeros. NULL: zeros are right. */
	void (*init)(void *bytes);
	const char *otherwise; /* clause of a remark: consequence if memory cannot be shared */
	bool *has_remarked;    /* a remark was made; only the first one is */
};

/* Memory of a giver. fd is -1 and bytes are NULL before a first peer takes it. */
struct psd_node_memory {
	int fd;
	void *bytes;
};

/* Gives memory to the peer. Makes and maps it if it is not made yet; the caller closes its descriptor and unmaps it,
 * also if the peer has not taken it. *is_taken: the peer has mapped it; false: a remark said why. PSD_ELOST: the peer
 * has closed its connection, or has sent nothing until the deadline. */
enum psd_status psd_node_memory_give(const struct psd_node_meeting *meeting, struct psd_node_memory *memory,
				     bool *is_taken, struct psd_error *err) PSD_MUST_CHECK;
/* Takes memory from the peer. *bytes: mapped memory, which psd_node_memory_unmap() unmaps; NULL: it could not be
 * shared. Statuses as psd_node_memory_give(). */
enum psd_status psd_node_memory_take(const struct psd_node_meeting *meeting, void **bytes,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Unmaps memory; NULL is allowed. */
void psd_node_memory_unmap(void *bytes, size_t n_bytes);

#endif
