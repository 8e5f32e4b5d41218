#define _GNU_SOURCE
#include "real/cluster/netlink.h"

#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANSWER_WITHIN_SEC 10
/* Most answers to older messages, which timed out, that are skipped. */
#define MAX_STALE_ANSWERS 16

static struct nlmsghdr *header_of(struct psd_netlink_message *message)
{
	return (struct nlmsghdr *)(void *)message->bytes;
}

static void *append(struct psd_netlink_message *message, size_t n_bytes)
{
	unsigned char *const appended = message->bytes + message->used_bytes;

	assert(message->used_bytes + NLMSG_ALIGN(n_bytes) <= sizeof(message->bytes));
	memset(appended, 0, NLMSG_ALIGN(n_bytes));
	message->used_bytes += NLMSG_ALIGN(n_bytes);
	return appended;
}

void psd_netlink_begin(struct psd_netlink_message *message, uint16_t type, uint16_t flags, const void *head,
		       size_t head_bytes)
{
	struct nlmsghdr *header;

	message->used_bytes = 0;
	header = append(message, sizeof(*header));
	header->nlmsg_type = type;
	header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	memcpy(append(message, head_bytes), head, head_bytes);
}

void psd_netlink_put(struct psd_netlink_message *message, uint16_t type, const void *value, size_t value_bytes)
{
	const struct nlattr attribute = {.nla_len = (uint16_t)(sizeof(attribute) + value_bytes), .nla_type = type};
	unsigned char *const appended = append(message, sizeof(attribute) + value_bytes);

	memcpy(appended, &attribute, sizeof(attribute));
	memcpy(appended + sizeof(attribute), value, value_bytes);
}

void psd_netlink_put_u32(struct psd_netlink_message *message, uint16_t type, uint32_t value)
{
	psd_netlink_put(message, type, &value, sizeof(value));
}

void psd_netlink_put_text(struct psd_netlink_message *message, uint16_t type, const char *text)
{
	psd_netlink_put(message, type, text, strlen(text) + 1);
}

size_t psd_netlink_nest_begin(struct psd_netlink_message *message, uint16_t type, const void *head, size_t head_bytes)
{
	const size_t nest = message->used_bytes;
	const struct nlattr attribute = {.nla_type = type};

	memcpy(append(message, sizeof(attribute)), &attribute, sizeof(attribute));
	if (head_bytes)
		memcpy(append(message, head_bytes), head, head_bytes);
	return nest;
}

void psd_netlink_nest_end(struct psd_netlink_message *message, size_t nest)
{
	const uint16_t nest_bytes = (uint16_t)(message->used_bytes - nest);

	memcpy(message->bytes + nest + offsetof(struct nlattr, nla_len), &nest_bytes, sizeof(nest_bytes));
}

int psd_netlink_open(int *fd)
{
	const int is_on = 1;
	const struct timeval limit = {.tv_sec = ANSWER_WITHIN_SEC};
	const int opened = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (opened < 0)
		return errno;
	if (setsockopt(opened, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0) {
		const int error = errno;

		close(opened);
		return error;
	}
	/* Asks for the kernel's words with a refusal; kernels before 4.12 have none. */
	(void)setsockopt(opened, SOL_NETLINK, NETLINK_EXT_ACK, &is_on, sizeof(is_on));
	(void)setsockopt(opened, SOL_NETLINK, NETLINK_CAP_ACK, &is_on, sizeof(is_on));
	*fd = opened;
	return 0;
}

/* The kernel's words in an answer of n_bytes, or "". With NETLINK_CAP_ACK attributes follow the error's fixed part. */
static const char *kernel_words(const unsigned char *answer, size_t n_bytes)
{
	size_t at = sizeof(struct nlmsghdr) + sizeof(struct nlmsgerr);
	struct nlmsghdr header;
	struct nlattr attribute;

	memcpy(&header, answer, sizeof(header));
	if (!(header.nlmsg_flags & NLM_F_ACK_TLVS) || !(header.nlmsg_flags & NLM_F_CAPPED))
		return "";
	while (at + sizeof(attribute) < n_bytes) {
		memcpy(&attribute, answer + at, sizeof(attribute));
		if (attribute.nla_len <= sizeof(attribute) || attribute.nla_len > n_bytes - at)
			return "";
		if (attribute.nla_type == NLMSGERR_ATTR_MSG && answer[at + attribute.nla_len - 1] == '\0')
			return (const char *)answer + at + sizeof(attribute);
		at += NLMSG_ALIGN((size_t)attribute.nla_len);
	}
	return "";
}

/* Reads the answer to the message with this sequence number. Returns its errno, 0 if the kernel agreed. */
static int read_answer(int fd, uint32_t sequence, unsigned char *answer, size_t most_bytes, size_t *n_bytes)
{
	for (unsigned i = 0; i < MAX_STALE_ANSWERS; i++) {
		const ssize_t received = recv(fd, answer, most_bytes, 0);
		struct nlmsghdr header;
		struct nlmsgerr error;

		if (received < 0 && errno == EINTR)
			continue;
		if (received < 0)
			return errno == EAGAIN ? ETIMEDOUT : errno;
		if ((size_t)received < sizeof(header) + sizeof(error))
			return EPROTO;
		memcpy(&header, answer, sizeof(header));
		if (header.nlmsg_seq != sequence || header.nlmsg_type != NLMSG_ERROR)
			continue;
		memcpy(&error, answer + sizeof(header), sizeof(error));
		*n_bytes = (size_t)received;
		return -error.error;
	}
	return EPROTO;
}

enum psd_status psd_netlink_send(int fd, struct psd_netlink_message *message, const char *what, struct psd_error *err)
{
	static _Atomic uint32_t last_sequence; /* shared by all sockets: numbers need only differ */
	_Alignas(8) unsigned char answer[1024];
	struct nlmsghdr *const header = header_of(message);
	const char *words = "";
	size_t n_bytes = 0;
	int error;

	header->nlmsg_len = (uint32_t)message->used_bytes;
	header->nlmsg_seq = ++last_sequence;
	if (send(fd, message->bytes, message->used_bytes, 0) < 0)
		error = errno;
	else
		error = read_answer(fd, header->nlmsg_seq, answer, sizeof(answer), &n_bytes);
	if (!error)
		return PSD_OK;
	if (n_bytes)
		words = kernel_words(answer, n_bytes);
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "emulated cluster: cannot %s: %s%s%s", what, strerror(error),
			     *words ? ": " : "", words);
}
