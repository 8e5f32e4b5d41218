/* The host that takes memory listens on a local socket with a random abstract name, and sends name and secret over the
 * connection. The host that gives memory passes its descriptor there with the secret, since all processes can list
 * names. This works if both share a network namespace, as processes without a link between them do. */
#define _GNU_SOURCE
#include "real/net/node_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "real/net/frame.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL }; /* shortening mapped memory would kill its users */
enum { MOST_STRANGERS = 64 };				    /* limit of messages examined */

/* ---- memory ---- */

/* Closes fd if valid and keeps errno. Returns -1. */
static int drop(int fd)
{
	const int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return -1;
}

/* Allocates all pages at once, so that a lack of memory shows here. Returns a descriptor, or -1 with errno. */
static int make_memory(size_t n_bytes)
{
	const int fd = memfd_create("psd", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	errno = posix_fallocate(fd, 0, (off_t)n_bytes);
	return errno || fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? drop(fd) : fd;
}

static bool is_memory(int fd, size_t n_bytes)
{
	const int seals = fcntl(fd, F_GET_SEALS); /* such memory only */
	struct stat file;

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &file) == 0 && file.st_size == (off_t)n_bytes;
}

/* Returns NULL with errno on failure. */
static void *map_memory(int fd, size_t n_bytes)
{
	void *bytes = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

void psd_node_memory_unmap(void *bytes, size_t n_bytes)
{
	if (bytes)
		munmap(bytes, n_bytes);
}

/* ---- passing memory ---- */

/* Random key of one connection. */
struct key {
	uint64_t name[2], secret[2];
};

static const struct key no_key;

static socklen_t write_address(const struct key *key, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* leading zero: abstract name, gone with the socket */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
	       (socklen_t)snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
				   "psd-%016" PRIx64 "%016" PRIx64, key->name[0], key->name[1]);
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Opens the local socket. Returns a descriptor, or -1 with errno. */
static int open_local_socket(struct key *key)
{
	struct sockaddr_un address;

	if (getrandom(key, sizeof(*key), 0) != (ssize_t)sizeof(*key))
		return -1;
	const int fd = open_socket();
	return fd < 0 || bind(fd, (struct sockaddr *)&address, write_address(key, &address)) < 0 ? drop(fd) : fd;
}

/* Space for one descriptor beside a message, aligned for the kernel. */
union passed {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static bool pass(int memory_fd, const struct key *key)
{
	struct sockaddr_un address;
	struct iovec secret = {(void *)key->secret, sizeof(key->secret)}; /* read only */
	union passed passed = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	const struct msghdr message = {.msg_name = &address,
				       .msg_namelen = write_address(key, &address),
				       .msg_iov = &secret,
				       .msg_iovlen = 1,
				       .msg_control = &passed,
				       .msg_controllen = sizeof(passed)};
	const int fd = open_socket();

	memcpy(CMSG_DATA(&passed.head), &memory_fd, sizeof(memory_fd));
	const bool is_passed = fd >= 0 && sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(key->secret);
	(void)drop(fd);
	return is_passed;
}

/* Returns a passed descriptor, or -1. *is_known: the secret matched. *is_empty: no message was there. */
static int take_passed(int local_fd, const struct key *key, bool *is_known, bool *is_empty)
{
	uint64_t secret[2] = {0, 0};
	struct iovec piece = {secret, sizeof(secret)};
	union passed passed = {.bytes = {0}};
	struct msghdr message = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &passed, .msg_controllen = sizeof(passed)};
	const ssize_t n_bytes = recvmsg(local_fd, &message, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head = n_bytes < 0 ? NULL : CMSG_FIRSTHDR(&message);
	int fd = -1;

	*is_empty = n_bytes < 0;
	*is_known = n_bytes == (ssize_t)sizeof(secret) && memcmp(secret, key->secret, sizeof(secret)) == 0;
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

/* The peer says that it has sent. Returns NULL with errno on failure. */
static void *map_passed(int local_fd, const struct key *key, size_t n_bytes)
{
	bool is_known = false, is_empty = false;
	void *bytes = NULL;
	int fd = -1;

	for (unsigned i = 0; i < MOST_STRANGERS && !is_known && !is_empty; i++) {
		(void)drop(fd);
		fd = take_passed(local_fd, key, &is_known, &is_empty);
	}
	if (!is_known)
		errno = EAGAIN;
	else if (fd < 0)
		errno = EMFILE; /* a process without free descriptors receives none */
	else if (!is_memory(fd, n_bytes))
		errno = EPROTO;
	else
		bytes = map_memory(fd, n_bytes);
	(void)drop(fd);
	return bytes;
}

/* Makes the memory when the first peer takes it. Returns false with errno on failure. */
static bool pass_memory(const struct psd_node_meeting *meeting, struct psd_node_memory *memory, const struct key *key)
{
	if (memory->fd < 0)
		memory->fd = make_memory(meeting->n_bytes);
	if (memory->fd >= 0 && !memory->bytes) {
		memory->bytes = map_memory(memory->fd, meeting->n_bytes);
		if (memory->bytes && meeting->init)
			meeting->init(memory->bytes);
	}
	return memory->bytes && pass(memory->fd, key);
}

/* ---- agreement ---- */

static const char *name_of(const struct psd_node_meeting *meeting, char name[PSD_MESH_NAME_MAX])
{
	const struct psd_mesh_options *mesh = meeting->join->mesh;

	return psd_mesh_name(mesh->layout, mesh->hosts, meeting->peer, name);
}

static enum psd_status say(const struct psd_node_meeting *meeting, bool is_yes, const struct key *key,
			   struct psd_error *err)
{
	uint8_t words[PSD_WIRE_TRANSPORT_BYTES] = {is_yes};
	char name[PSD_MESH_NAME_MAX];

	memcpy(words + 1, key, sizeof(*key)); /* machines of another byte order share no memory */
	return psd_frame_send(name_of(meeting, name), meeting->fd, meeting->join->mesh->secret, PSD_WIRE_TRANSPORT,
			      words, err);
}

static enum psd_status listen_to(const struct psd_node_meeting *meeting, bool *is_yes, struct key *key,
				 struct psd_error *err)
{
	union psd_wire_payload words;
	char name[PSD_MESH_NAME_MAX];

	PSD_TRY(psd_frame_read(name_of(meeting, name), meeting->fd, meeting->join->mesh->secret, PSD_WIRE_TRANSPORT,
			       &words, meeting->join->until_sec, err));
	*is_yes = words.raw[0] != 0;
	memcpy(key, words.raw + 1, sizeof(*key));
	return PSD_OK;
}

/* Once; errno says why. */
static void remark(const struct psd_node_meeting *meeting)
{
	const struct psd_mesh_options *mesh = meeting->join->mesh;
	const char *why = strerror(errno);
	char name[PSD_MESH_NAME_MAX];
	struct psd_error line;

	psd_error_set(&line, PSD_ERUN, PSD_NOWHERE, "cannot share memory with %s, %s: %s", name_of(meeting, name),
		      meeting->otherwise, why);
	if (mesh->remark && !*meeting->has_remarked)
		mesh->remark(mesh->context, line.text);
	*meeting->has_remarked = true;
}

enum psd_status psd_node_memory_take(const struct psd_node_meeting *meeting, void **bytes, struct psd_error *err)
{
	struct key key = no_key, ignored;
	const int local_fd = open_local_socket(&key);
	bool is_given = false;

	*bytes = NULL;
	if (local_fd < 0)
		remark(meeting);
	enum psd_status status = say(meeting, local_fd >= 0, &key, err);
	if (!status)
		status = listen_to(meeting, &is_given, &ignored, err);
	if (!status && is_given) {
		*bytes = map_passed(local_fd, &key, meeting->n_bytes);
		if (!*bytes)
			remark(meeting);
	}
	if (!status)
		status = say(meeting, *bytes, &no_key, err);
	if (status) {
		psd_node_memory_unmap(*bytes, meeting->n_bytes);
		*bytes = NULL;
	}
	(void)drop(local_fd);
	return status;
}

enum psd_status psd_node_memory_give(const struct psd_node_meeting *meeting, struct psd_node_memory *memory,
				     bool *is_taken, struct psd_error *err)
{
	bool is_open = false, is_passed = false;
	struct key key;

	PSD_TRY(listen_to(meeting, &is_open, &key, err));
	if (is_open) {
		is_passed = pass_memory(meeting, memory, &key);
		if (!is_passed)
			remark(meeting);
	}
	PSD_TRY(say(meeting, is_passed, &no_key, err));
	return listen_to(meeting, is_taken, &key, err);
}
