/* Gloo's ring-chunked all-reduce of BYTES of floats, REPEATS times, in a node of in-cluster: one line for each on every
 * rank, "SECONDS CPU_SECONDS". CPU is the whole process's, Gloo's own thread included. Exits 1 if a sum is wrong. For
 * tests/bench/real/bench_allreduce.sh. */
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace
{

double now_sec()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_sec()
{
	rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

std::shared_ptr<gloo::rendezvous::Context> connect(int rank, int size, const char *folder)
{
	const char *const interface = getenv("GLOO_SOCKET_IFNAME");
	gloo::transport::tcp::attr attr;
	gloo::rendezvous::FileStore store(folder);

	attr.iface = interface ? interface : "lo";
	auto device = gloo::transport::tcp::CreateDevice(attr);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
	context->connectFullMesh(store, device);
	return context;
}

std::unique_ptr<gloo::Algorithm> make(const std::string &name, const std::shared_ptr<gloo::Context> &context,
				      std::vector<float> &values)
{
	const std::vector<float *> pointers = {values.data()};
	const int count = static_cast<int>(values.size());

	if (name == "ring-chunked")
		return std::make_unique<gloo::AllreduceRingChunked<float>>(context, pointers, count);
	return std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, pointers, count);
}

int number_of(const char *name)
{
	const char *const text = getenv(name);

	return text ? atoi(text) : 0;
}

} // namespace

int main(int argc, char **argv)
{
	const int rank = number_of("RANK"), size = number_of("WORLD_SIZE");

	if (argc != 6 || size < 2) {
		std::fputs("usage: allreduce-gloo ALGORITHM BYTES REPEATS FOLDER RESULT, with RANK and WORLD_SIZE\n",
			   stderr);
		return 2;
	}
	std::vector<float> values(static_cast<size_t>(atoi(argv[2])) / sizeof(float));
	FILE *const out = std::fopen((std::string(argv[5]) + "." + std::to_string(rank)).c_str(), "we");
	const auto context = connect(rank, size, argv[4]);
	const auto algorithm = make(argv[1], context, values);
	gloo::BarrierAllToAll barrier(context);

	for (int i = 0; out && i < atoi(argv[3]); i++) {
		std::fill(values.begin(), values.end(), static_cast<float>(rank + 1));
		barrier.run();
		const double start_cpu_sec = cpu_sec(), start_sec = now_sec();
		algorithm->run();
		std::fprintf(out, "%.6f %.6f\n", now_sec() - start_sec, cpu_sec() - start_cpu_sec);
		for (const float value : values)
			if (value != static_cast<float>(size * (size + 1) / 2))
				return 1;
	}
	try {
		barrier.run();
	} catch (const gloo::Exception &) {
		/* a peer that was through it first has left */
	}
	return !out || std::fclose(out);
}
