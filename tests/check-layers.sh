#!/bin/sh
# tests/check-layers.sh ROOT [ENGINE-OBJECT-OR-ARCHIVE]: every include of ROOT/engine, sim, real and plots is one that
# its layer may have, folders of a wing know only those before them, and the compiled engine calls nothing that
# prints, reads a clock, or makes threads, processes or sockets.
set -u
export LC_ALL=C
root=$1
object=${2:-}
cd "$root" || exit 1
bad=$(mktemp) || exit 1
trap 'rm -f "$bad"' EXIT

# The C library of C11, without the headers that the engine refuses (time, threads, signals, locale).
c_library='assert|ctype|errno|float|inttypes|limits|math|stdalign|stdarg|stdbool|stddef|stdint|stdio|stdlib'
c_library="$c_library|stdnoreturn|string"

# includes FOLDER...: prints "file:line:header", the header with its quotes or angle brackets.
includes() {
	grep -rnoE --include='*.[ch]' --include='*.[ch]pp' --include='*.cu' \
		'^[[:space:]]*#[[:space:]]*include[[:space:]]*([<"][^>"]*[>"])' "$@" |
		sed 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*/:/' | sort -t : -k 1,1 -k 2,2n
}

[ ! -d engine ] || includes engine | awk -v c_library="$c_library" '
	{ header = $0; sub(/^[^:]*:[0-9]*:/, "", header); file = $0; sub(/:.*/, "", file) }
	header ~ "^<(" c_library ")[.]h>$" || header ~ /^"engine\// { next }
	header == "<yaml.h>" && file == "engine/document/document.c" { next }
	header ~ "^<(dirent|fcntl|fnmatch|poll|sys/ioctl|sys/random|sys/stat|unistd)[.]h>$" &&
		file ~ "^engine/base/(file|inputs|output).c$" { next }
	header ~ "^<(sys/mman|sys/resource|ucontext)[.]h>$" && file == "engine/base/stack.c" { next }
	header == "<signal.h>" && file == "engine/base/output.c" { next }
	{ print $0 ": engine/ includes the C library and engine/ only (<yaml.h> in engine/document/document.c, " \
		"POSIX files in engine/base/file.c, inputs.c and output.c, limits in stack.c, signals in output.c)"
	}' >>"$bad"
[ ! -d sim ] || includes sim | grep -E ':"(\.\./)?real/' | sed 's/$/: sim\/ does not know real\//' >>"$bad"
[ ! -d real ] || includes real | grep -E ':"(\.\./)?sim/|:<simgrid/' | sed 's/$/: real\/ does not know sim\//' >>"$bad"
# psd-plot reads profilers' traces as psd-sim import does.
[ ! -d plots ] || includes plots | grep -E ':"(\.\./)?(real|sim)/|:<simgrid/' | grep -v ':"sim/import/[a-z]*\.h"$' |
	sed 's/$/: plots\/ knows engine\/ and the readers of sim\/import\/ only/' >>"$bad"
for wing in engine sim real; do [ ! -d "$wing" ] || includes "$wing"; done | grep ':"plots/' |
	sed 's/$/: only plots\/ knows plots\//' >>"$bad"
# folders_in_order WING FOLDER...: checks that a file of a folder includes only its own folder and those before it.
# Files of the wing itself include all.
folders_in_order() {
	wing=$1
	shift
	[ -d "$wing" ] || return 0
	includes "$wing" | awk -v wing="$wing" -v order="$*" '
		BEGIN { n = split(order, folders, " "); for (i = 1; i <= n; i++) place[folders[i]] = i }
		function folder_of(path) {
			sub("^" wing "/", "", path)
			return path ~ "/" ? substr(path, 1, index(path, "/") - 1) : "."
		}
		{
			file = $0; sub(/:.*/, "", file)
			header = $0; sub(/^[^:]*:[0-9]*:/, "", header); gsub(/[<>"]/, "", header)
			from = folder_of(file)
			if (from != "." && !(from in place)) {
				print $0 ": " wing "/" from " has no place in the order: " order
				next
			}
			if (header !~ "^" wing "/" || from == ".") next
			to = folder_of(header)
			if (to == "." || place[to] > place[from])
				print $0 ": " from "/ comes before " to "/ (" order ")"
		}'
}
{
	folders_in_order engine base document model collectives encodings scenario cost program methods estimate case \
		result
	folders_in_order sim network executor sweep output ask import
	folders_in_order real base net library device data keep work replay session cluster calibrate
} >>"$bad"
# Readers of model files know the graph, which does not know them: only readers.c includes a reader of another file.
[ ! -d engine/model ] || includes engine/model |
	grep -E ':"engine/model/(model|prototxt[a-z_0-9]*|onnx/[a-z.-]*)\.h"$' |
	grep -vE '^engine/model/(readers\.c|model\.[ch]|prototxt[a-z_0-9]*\.[ch]|onnx/[^:]*):' |
	sed 's/$/: only engine\/model\/readers.c knows readers of model files/' >>"$bad"
for folder in engine sim real; do
	[ ! -d "$folder" ] || includes "$folder" |
		grep -Ei '^[^:]*[^u]:[0-9]+:.(cuda|cublas|cudnn|nccl|curand|nvml|nvtx)' |
		sed 's/$/: CUDA headers belong in .cu files/' >>"$bad"
done
[ ! -d real ] || includes real | grep ':"real/device/cuda/' | grep -v '^real/device/cuda/' |
	sed 's/$/: others reach real\/device\/cuda\/ by real\/device\/gpu\/gpu.h/' >>"$bad"
# engine/base/banned.h covers C; C++ does not read it.
find sim real -name '*.[ch]pp' -exec grep -nHE '\<(sprintf|strcpy|strcat|strtok|atoi|atof)[ ]*\(' {} + 2>/dev/null |
	sed 's/$/: banned, see engine\/banned.h/' >>"$bad"

if [ -n "$object" ]; then
	cd - >/dev/null || exit 1
	nm -A --undefined-only "$object" | awk '
		BEGIN {
			split("printf vprintf fprintf vfprintf puts fputs putchar putc fputc fwrite perror " \
				"stdout stderr __printf_chk __fprintf_chk __vfprintf_chk " \
				"exit _exit abort system popen fork vfork execv execve execvp " \
				"time clock clock_gettime gettimeofday nanosleep usleep sleep rand srand random " \
				"socket connect bind listen accept send recv thrd_create", list)
			for (i in list) refused[list[i]] = 1
		}
		{ name = $NF; sub(/@.*/, "", name) }
		name == "fwrite" && /output\.o:/ { next } # engine/base/output.c writes for the others
		name in refused || name ~ /^(pthread|mtx|cnd|epoll|simgrid|sg|xbt|MSG|smpi|cuda|cublas|cudnn)_/ {
			where = $0; sub(/:? +[UuWw] .*/, "", where)
			print where ": calls " name ", which engine/ must not"
		}' >>"$bad"
fi

if [ -s "$bad" ]; then
	cat "$bad" >&2
	exit 1
fi
echo "check-layers: every include is in its layer"
