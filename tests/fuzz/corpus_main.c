/* Runs a fuzz target once on no bytes and on each file of the folders in its arguments, without libFuzzer: an input
 * that once broke a parser never does again. A missing folder has no files. Refuses to look for new inputs. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_file(const char *path)
{
	FILE *in = fopen(path, "rb");
	uint8_t *data;
	long size;

	if (!in || fseek(in, 0, SEEK_END) != 0 || (size = ftell(in)) < 0) {
		perror(path);
		exit(1);
	}
	rewind(in);
	data = malloc((size_t)size + 1);
	if (!data || fread(data, 1, (size_t)size, in) != (size_t)size) {
		perror(path);
		exit(1);
	}
	fclose(in);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
}

/* Returns the number of its files. */
static unsigned run_folder(const char *folder)
{
	DIR *opened = opendir(folder);
	unsigned n_files = 0;

	for (const struct dirent *entry; opened && (entry = readdir(opened));) {
		char path[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		fprintf(stderr, "corpus: %s\n", path); /* the last one before a crash */
		run_file(path);
		n_files++;
	}
	if (opened)
		closedir(opened);
	return n_files;
}

int main(int argc, char **argv)
{
	unsigned n_files = 0;

	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++)
		n_files += run_folder(argv[i]);
	printf("%u\n", n_files);
	return 0;
}
