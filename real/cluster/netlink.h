/* Messages to the kernel that configure its network (rtnetlink). One message at a time is sent, and the kernel's answer
 * is read before the next message. So an emulated cluster needs neither of the programs `ip` and `tc`. Used only by
 * real/cluster/link.c. */
#ifndef PSD_REAL_NETLINK_H
#define PSD_REAL_NETLINK_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

/* A message that is being built. Fields are private to netlink.c. If the message becomes longer than `bytes`, an
 * assertion fails. */
struct psd_netlink_message {
	_Alignas(8) unsigned char bytes[512];
	size_t used_bytes;
};

/* Begins a message. type: RTM_*; flags: NLM_F_*, to which NLM_F_REQUEST and NLM_F_ACK are added; head: the fixed header
 * that this type of message has, head_bytes long, which is copied. */
void psd_netlink_begin(struct psd_netlink_message *message, uint16_t type, uint16_t flags, const void *head,
		       size_t head_bytes);

/* Append an attribute to the message, with a copy of its value: value_bytes bytes (_put), a number (_put_u32), or a
 * zero-terminated text (_put_text). type: number of the attribute, such as IFLA_IFNAME. They never fail. */
void psd_netlink_put(struct psd_netlink_message *message, uint16_t type, const void *value, size_t value_bytes);
void psd_netlink_put_u32(struct psd_netlink_message *message, uint16_t type, uint32_t value);
void psd_netlink_put_text(struct psd_netlink_message *message, uint16_t type, const char *text);

/* Begins an attribute that contains other attributes: all those that are appended before psd_netlink_nest_end(). The
 * returned number is the argument `nest` of that function. head: bytes that come before the inner attributes, copied;
 * NULL with head_bytes 0: none. */
size_t psd_netlink_nest_begin(struct psd_netlink_message *message, uint16_t type, const void *head, size_t head_bytes);
void psd_netlink_nest_end(struct psd_netlink_message *message, size_t nest);

/* Opens a netlink socket for the network namespace that the calling thread is in now. The socket stays in that
 * namespace even if another process uses it. The caller closes *fd; it is close-on-exec. Returns 0 or an errno. */
int psd_netlink_open(int *fd) PSD_MUST_CHECK;

/* Sends the message and waits for the kernel's answer, 10 s at most. what: the action, for the error text, such as "add
 * a bridge". PSD_ERUN: the kernel rejects the message; the text has the kernel's reason. Any thread, but only one
 * thread at a time for one fd. */
enum psd_status psd_netlink_send(int fd, struct psd_netlink_message *message, const char *what,
				 struct psd_error *err) PSD_MUST_CHECK;

#endif
