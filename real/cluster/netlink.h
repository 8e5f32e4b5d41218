/* Messages to the kernel's network configuration (rtnetlink), one at a time, each answered before the next. With them
 * an emulated cluster needs neither ip nor tc on the machine. For real/cluster/link.c. */
#ifndef PSD_REAL_NETLINK_H
#define PSD_REAL_NETLINK_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

/* A message under construction. Fields are private to netlink.c. A longer message fails an assertion. */
struct psd_netlink_message {
	_Alignas(8) unsigned char bytes[512];
	size_t used_bytes;
};

/* Begins a message. type: RTM_*; flags: NLM_F_*, request and acknowledge are added; head: the type's fixed head. */
void psd_netlink_begin(struct psd_netlink_message *message, uint16_t type, uint16_t flags, const void *head,
		       size_t head_bytes);

/* Appends an attribute to the message, with a copy of its value. Never fails. */
void psd_netlink_put(struct psd_netlink_message *message, uint16_t type, const void *value, size_t value_bytes);
void psd_netlink_put_u32(struct psd_netlink_message *message, uint16_t type, uint32_t value);
void psd_netlink_put_text(struct psd_netlink_message *message, uint16_t type, const char *text);

/* Begins an attribute that contains all attributes up to psd_netlink_nest_end(), which takes the returned number. head:
 * fixed bytes before them, or NULL and 0. */
size_t psd_netlink_nest_begin(struct psd_netlink_message *message, uint16_t type, const void *head, size_t head_bytes);
void psd_netlink_nest_end(struct psd_netlink_message *message, size_t nest);

/* Opens a socket to the network namespace of the calling thread, even if another process uses it later. The caller
 * closes *fd; close-on-exec. Returns 0 or an errno. */
int psd_netlink_open(int *fd) PSD_MUST_CHECK;

/* Sends the message and waits for the kernel's answer, 10 s at most. what: words for the error, as in "add a bridge".
 * PSD_ERUN with the kernel's reason. Any thread, one at a time for each fd. */
enum psd_status psd_netlink_send(int fd, struct psd_netlink_message *message, const char *what,
				 struct psd_error *err) PSD_MUST_CHECK;

#endif
