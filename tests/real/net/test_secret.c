/* Two ends that know a secret, others that do not, and a man in the middle who passes bytes on, keeps them, changes
 * them or sends them elsewhere. Both ends are in one thread; all sockets are non-blocking. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/net/secret.h"
#include "real/net/transport.h"
#include "tests/real/secret_helper.h"

#ifdef PSD_HAS_TLS
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#define WORDS "thirty-two bytes that nobody else"
#define OTHER "thirty-two bytes of somebody else"

enum { PASSED_MAX = 1 << 17, ROUNDS = 20 };

/* One end, and the man in the middle's end of its socket. */
struct party {
	struct psd_secret *secret;
	int fd, tap;
};

/* Bytes passed on in one direction. */
struct passed {
	uint8_t bytes[PASSED_MAX];
	size_t n_bytes;
};

static struct party open_party(const char *words, unsigned self, bool is_ours, unsigned peer)
{
	struct party party = {.secret = make_secret(words)};
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	party.fd = fds[0];
	party.tap = fds[1];
	cr_assert(psd_secret_begin(party.secret, party.fd, self, is_ours, peer));
	return party;
}

static void close_party(struct party *party)
{
	psd_secret_free(party->secret);
	close(party->fd);
	close(party->tap);
}

static void pass(const struct party *from, const struct party *to, struct passed *passed)
{
	uint8_t *room = passed->bytes + passed->n_bytes;
	const ssize_t n_read = recv(from->tap, room, PASSED_MAX - passed->n_bytes, 0);

	if (n_read <= 0)
		return;
	passed->n_bytes += (size_t)n_read;
	cr_assert_eq(send(to->tap, room, (size_t)n_read, MSG_NOSIGNAL), n_read);
}

/* Result of the accepting end's last read, as receive; *error of the connecting end. */
static ssize_t greet(struct party *from, struct party *to, struct passed passed[2], char word[4], int *error)
{
	bool has_greeted = false;
	ssize_t n_read = -1;

	*error = EAGAIN;
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (*error == EAGAIN)
			*error = psd_secret_prove(from->secret, from->fd);
		if (!*error && !has_greeted)
			has_greeted = psd_secret_send(from->secret, from->fd, (const uint8_t *)"word", 4);
		pass(from, to, &passed[0]);
		n_read = psd_secret_receive(to->secret, to->fd, word, 4);
		if (n_read > 0 || (n_read < 0 && errno != EAGAIN))
			break;
		pass(to, from, &passed[1]);
	}
	return n_read;
}

static bool contains(const struct passed *passed, const void *bytes, size_t n_bytes)
{
	return memmem(passed->bytes, passed->n_bytes, bytes, n_bytes);
}

/* ---- peers with and without the secret ---- */

/* Plain text is at neither end's wire: neither the words that were sent nor the secret. */
Test(secret, two_ends_that_know_it_understand_each_other_and_nobody_else_does)
{
	static struct passed passed[2];
	struct party from = open_party(WORDS, 1, true, 0), to = open_party(WORDS, 0, false, 0);
	char word[4], answer[6], again[6];
	int error;

	cr_assert_eq(greet(&from, &to, passed, word, &error), 4);
	cr_expect_eq(error, 0);
	cr_expect_arr_eq(word, "word", 4);
	cr_assert(psd_secret_send(to.secret, to.fd, (const uint8_t *)"answer", 6));
	pass(&to, &from, &passed[1]);
	cr_expect_eq(psd_secret_peek(from.secret, from.fd, answer, 6), 6);
	cr_expect_eq(psd_secret_receive(from.secret, from.fd, again, 6), 6);
	cr_expect_arr_eq(answer, "answer", 6);
	cr_expect_arr_eq(again, "answer", 6);
	cr_expect_not(contains(&passed[0], "word", 4));
	cr_expect_not(contains(&passed[1], "answer", 6));
	for (unsigned i = 0; i < 2; i++)
		cr_expect_not(contains(&passed[i], WORDS, 8));
	close_party(&from);
	close_party(&to);
}

static void expect_strange(const char *words, unsigned self, unsigned peer, const char *other_words, unsigned other)
{
	static struct passed passed[2];
	struct party from = open_party(words, self, true, peer), to = open_party(other_words, other, false, 0);
	char word[4];
	int error;

	passed[0].n_bytes = passed[1].n_bytes = 0;
	cr_expect_eq(greet(&from, &to, passed, word, &error), -1, "host %u to %u at %u", self, peer, other);
	cr_expect_eq(errno, EACCES, "host %u to %u at %u: %s", self, peer, other, strerror(errno));
	cr_expect_eq(error, EAGAIN, "it has proved nothing");
	cr_expect_eq(passed[1].n_bytes, 0, "a stranger hears nothing");
	cr_expect_not(psd_secret_send(to.secret, to.fd, (const uint8_t *)"terms", 5));
	close_party(&from);
	close_party(&to);
}

Test(secret, one_byte_that_differs_is_another_secret)
{
	expect_strange(WORDS, 1, 0, OTHER, 0);
	expect_strange(WORDS, 1, 0, WORDS "\n", 0);
}

/* Host 1 connects to host 0. The man in the middle leads that to host 1 itself, or to host 2, or says that it is host
 * 0. */
Test(secret, a_greeting_is_for_one_other_host)
{
	expect_strange(WORDS, 1, 0, WORDS, 1);
	expect_strange(WORDS, 1, 0, WORDS, 2);
	expect_strange(WORDS, 0, 0, WORDS, 0);
}

/* All that host 1 has sent, once more: host 0 asks for something else this time. */
Test(secret, a_replayed_greeting_proves_nothing)
{
	static struct passed passed[2];
	struct party from = open_party(WORDS, 1, true, 0), to = open_party(WORDS, 0, false, 0);
	struct party again = open_party(WORDS, 0, false, 0);
	char word[4];
	ssize_t n_read = -1;
	int error;

	cr_assert_eq(greet(&from, &to, passed, word, &error), 4);
	cr_assert_eq(send(again.tap, passed[0].bytes, passed[0].n_bytes, 0), (ssize_t)passed[0].n_bytes);
	errno = EAGAIN;
	for (unsigned i = 0; i < ROUNDS && n_read < 0 && errno == EAGAIN; i++)
		n_read = psd_secret_receive(again.secret, again.fd, word, 4);
	cr_expect_eq(n_read, -1);
	cr_expect_eq(errno, EACCES, "%s", strerror(errno));
	close_party(&from);
	close_party(&to);
	close_party(&again);
}

/* ---- peers that speak TLS without the key ---- */

/* A certificate for any client. */
static SSL_CTX *make_certified(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_method());
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	X509 *certificate = X509_new();

	cr_assert(context && key && certificate);
	cr_assert(ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) &&
		  X509_gmtime_adj(X509_getm_notBefore(certificate), 0) &&
		  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600) && X509_set_pubkey(certificate, key) &&
		  X509_sign(certificate, key, NULL));
	cr_assert(SSL_CTX_use_certificate(context, certificate) && SSL_CTX_use_PrivateKey(context, key));
	X509_free(certificate);
	EVP_PKEY_free(key);
	return context;
}

Test(secret, a_host_with_a_certificate_instead_is_not_believed)
{
	struct party from = open_party(WORDS, 1, true, 0), to = open_party(WORDS, 0, false, 0);
	SSL_CTX *context = make_certified();
	SSL *server = SSL_new(context), *client = SSL_new(context);
	int error = EAGAIN;
	char word[4];

	SSL_set_fd(server, from.tap);
	SSL_set_fd(client, to.tap);
	for (unsigned i = 0; i < ROUNDS && error == EAGAIN; i++) {
		error = psd_secret_prove(from.secret, from.fd);
		(void)SSL_accept(server);
	}
	cr_expect_eq(error, EACCES, "%s", strerror(error));
	cr_expect_not(psd_secret_send(from.secret, from.fd, (const uint8_t *)"terms", 5));
	error = EAGAIN;
	for (unsigned i = 0; i < ROUNDS && error == EAGAIN; i++) {
		(void)SSL_connect(client);
		error = psd_secret_receive(to.secret, to.fd, word, 4) < 0 ? errno : 0;
	}
	cr_expect_eq(error, EACCES, "%s", strerror(error));
	SSL_free(server);
	SSL_free(client);
	SSL_CTX_free(context);
	close_party(&from);
	close_party(&to);
}

/* ---- once a transport has it ---- */

static struct psd_carrier carry(const struct party *party, unsigned self)
{
	const struct psd_layout layout = psd_layout_make(2, 1, 0);
	const struct psd_mesh_options mesh = {
		.layout = &layout, .self = self, .n_connections = 1, .secret = party->secret};
	const int fds[2] = {self == 1 ? party->fd : -1, self == 0 ? party->fd : -1};
	const struct psd_transport_join join = {.mesh = &mesh, .fds = fds};
	struct psd_carrier carriers[2];
	struct psd_error err;

	cr_assert_eq(psd_transport_join(&join, carriers, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(carriers[1 - self].transport, &psd_transport_tls);
	return carriers[1 - self];
}

enum { TENSOR_BYTES = 40000 };

struct carried {
	struct party from, to;
	struct psd_carrier sender, receiver;
	uint8_t tensor[TENSOR_BYTES];
	struct passed passed; /* the tensor, on its way */
};

static void send_tensor(struct carried *carried, uint64_t renew_bytes)
{
	static struct passed greeting[2];
	const struct iovec piece = {carried->tensor, TENSOR_BYTES};
	char word[4];
	int error;

	carried->from = open_party(WORDS, 1, true, 0);
	carried->to = open_party(WORDS, 0, false, 0);
	cr_assert_eq(greet(&carried->from, &carried->to, greeting, word, &error), 4);
	psd_secret_renew_after(carried->from.secret, renew_bytes);
	carried->sender = carry(&carried->from, 1);
	carried->receiver = carry(&carried->to, 0);
	for (size_t i = 0; i < TENSOR_BYTES; i++)
		carried->tensor[i] = (uint8_t)(i % 251);
	cr_assert_eq(psd_transport_tls.send(&carried->sender, &piece, 1), TENSOR_BYTES);
	carried->passed.n_bytes = (size_t)recv(carried->from.tap, carried->passed.bytes, PASSED_MAX, 0);
	cr_assert_gt(carried->passed.n_bytes, TENSOR_BYTES);
}

static ssize_t receive_tensor(struct carried *carried, size_t n_bytes)
{
	static uint8_t received[TENSOR_BYTES];
	const struct iovec piece = {received, TENSOR_BYTES};
	ssize_t n_read;

	cr_assert_eq(send(carried->to.tap, carried->passed.bytes, n_bytes, 0), (ssize_t)n_bytes);
	n_read = psd_transport_tls.receive(&carried->receiver, &piece, 1);
	for (ssize_t i = 0; i < n_read; i++)
		cr_assert_eq(received[i], carried->tensor[i]);
	return n_read;
}

static void close_carried(struct carried *carried)
{
	psd_carrier_close(&carried->sender);
	psd_carrier_close(&carried->receiver);
	psd_secret_free(carried->from.secret);
	psd_secret_free(carried->to.secret);
	close(carried->from.tap);
	close(carried->to.tap);
}

/* No eight bytes of it are there: by chance they would be in 2^64 / 40000 tries. */
Test(secret, a_tensor_is_not_seen_on_its_way)
{
	static struct carried carried;

	send_tensor(&carried, PSD_SECRET_RENEW_BYTES);
	for (size_t i = 0; i + 8 <= TENSOR_BYTES; i += 8)
		cr_assert_not(contains(&carried.passed, carried.tensor + i, 8), "byte %zu", i);
	cr_expect_eq(receive_tensor(&carried, carried.passed.n_bytes), TENSOR_BYTES);
	close_carried(&carried);
}

/* Somewhere in the second record: the first is right, the rest is not believed, and says so at once. */
Test(secret, a_byte_that_is_changed_on_its_way_is_noticed)
{
	static struct carried carried;
	struct iovec piece = {(uint8_t[1]){0}, 1};

	send_tensor(&carried, PSD_SECRET_RENEW_BYTES);
	carried.passed.bytes[20000] ^= 1;
	cr_expect_eq(receive_tensor(&carried, carried.passed.n_bytes), 1 << 14);
	cr_expect(psd_transport_tls.is_ready(&carried.receiver, true, false));
	cr_expect_eq(psd_transport_tls.receive(&carried.receiver, &piece, 1), -1);
	cr_expect_eq(errno, EBADMSG, "%s", strerror(errno));
	close_carried(&carried);
}

/* As a peer that goes in the middle of a message does without TLS. */
Test(secret, a_stream_that_is_cut_is_a_peer_that_has_gone)
{
	static struct carried carried;
	struct iovec piece = {(uint8_t[1]){0}, 1};

	send_tensor(&carried, PSD_SECRET_RENEW_BYTES);
	cr_expect_eq(receive_tensor(&carried, 20000), 1 << 14);
	cr_expect_not(psd_transport_tls.is_ready(&carried.receiver, true, false), "the socket tells of the rest");
	cr_expect_eq(psd_transport_tls.receive(&carried.receiver, &piece, 1), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_assert_eq(shutdown(carried.to.tap, SHUT_WR), 0);
	cr_expect_eq(psd_transport_tls.receive(&carried.receiver, &piece, 1), 0);
	close_carried(&carried);
}

/* Three records, of which the second and the third have a key of their own: each key is announced in a record of 27
 * bytes, where others have 22 beside what is in them (RFC 8446, 4.6.3 and 5.2). */
Test(secret, a_key_seals_no_more_than_it_may)
{
	static struct carried carried;

	send_tensor(&carried, 1 << 14);
	cr_expect_eq(carried.passed.n_bytes, TENSOR_BYTES + 3 * 22 + 2 * 27);
	cr_expect_eq(receive_tensor(&carried, carried.passed.n_bytes), TENSOR_BYTES);
	close_carried(&carried);
}

/* The socket has nothing more to tell of: is_ready does. */
Test(secret, bytes_read_ahead_are_ready)
{
	static struct carried carried;
	struct iovec piece = {(uint8_t[100]){0}, 100};

	send_tensor(&carried, PSD_SECRET_RENEW_BYTES);
	cr_assert_eq(send(carried.to.tap, carried.passed.bytes, carried.passed.n_bytes, 0),
		     (ssize_t)carried.passed.n_bytes);
	for (size_t taken = 0; taken < TENSOR_BYTES; taken += 100) {
		cr_assert_eq(psd_transport_tls.receive(&carried.receiver, &piece, 1), 100);
		cr_assert_arr_eq(piece.iov_base, carried.tensor + taken, 100);
		cr_assert_eq(psd_transport_tls.is_ready(&carried.receiver, true, false), taken + 100 < TENSOR_BYTES);
	}
	close_carried(&carried);
}

/* ---- files ---- */

static enum psd_status load(size_t n_bytes, mode_t mode, bool *is_exposed, struct psd_error *err)
{
	static char bytes[PSD_SECRET_MOST_BYTES + 1];
	const struct scratch_folder folder = scratch_folder_make();
	const struct scratch_path path = scratch_folder_path(&folder, "secret");
	struct psd_secret *secret = NULL;
	enum psd_status status;

	scratch_folder_write(&folder, "secret", bytes, n_bytes);
	cr_assert_eq(chmod(path.text, mode), 0);
	status = psd_secret_load(path.text, &secret, is_exposed, err);
	psd_secret_free(secret);
	scratch_folder_remove(&folder);
	return status;
}

Test(secret, a_file_has_16_bytes_to_4_kib)
{
	struct psd_error err;
	bool is_exposed;

	cr_expect_eq(load(16, 0600, &is_exposed, &err), PSD_OK);
	cr_expect_eq(load(4096, 0600, &is_exposed, &err), PSD_OK);
	cr_expect_eq(load(15, 0600, &is_exposed, &err), PSD_EINVAL);
	cr_expect(strstr(err.text, "/secret: is a secret of 15 bytes, must have 16 or more"), "%s", err.text);
	cr_expect_eq(load(4097, 0600, &is_exposed, &err), PSD_EINVAL);
	cr_expect(strstr(err.text, "/secret: has more than the 4096 bytes that a secret may have"), "%s", err.text);
}

Test(secret, a_file_that_others_can_read_is_reported)
{
	static const struct {
		mode_t mode;
		bool is_exposed;
	} cases[] = {{0600, false}, {0400, false}, {0640, true}, {0604, true}, {0622, false}};
	struct psd_error err;
	bool is_exposed;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert_eq(load(32, cases[i].mode, &is_exposed, &err), PSD_OK, "%s", err.text);
		cr_expect_eq(is_exposed, cases[i].is_exposed, "mode %o", cases[i].mode);
	}
}

Test(secret, a_file_that_is_not_there_is_named)
{
	struct psd_secret *secret;
	struct psd_error err;
	bool is_exposed;

	cr_expect_eq(psd_secret_load("/no/such", &secret, &is_exposed, &err), PSD_EFILE);
	cr_expect_str_eq(err.text, "/no/such: cannot be opened: No such file or directory");
}

#endif
