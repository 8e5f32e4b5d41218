# awk -f tests/keys-said.awk FILE.yaml...: "key.path FILE" for each key that a file has, without numbers of entries.
# Reads YAML as the tree's scenarios have it: block and flow mappings, lists, comments, quoted texts.

function enter(name, column,    path, i) {
	while (depth > flow && columns[depth] >= column) depth--
	columns[++depth] = column; names[depth] = name
	for (i = 1; i <= depth; i++) path = path (path == "" ? "" : ".") names[i]
	print path, FILENAME
}

# Values in braces and brackets, which may go on in the next lines. flows[n] is the depth at which the nth was opened.
function read_flow(text,    c) {
	while (text != "") {
		c = substr(text, 1, 1)
		if (c == "{" || c == "[") { flows[++n_flows] = depth; flow = depth }
		if (c == "}" || c == "]") {
			depth = flows[n_flows--]; flow = n_flows ? flows[n_flows] : 0
			if (!n_flows) return
		}
		if (c == ",") depth = flows[n_flows]
		if (match(text, /^[a-z_0-9]+:( |$)/))
			enter(substr(text, 1, index(text, ":") - 1), 0)
		else if (!match(text, /^("[^"]*"|'[^']*'|[A-Za-z_0-9]+)/))
			RLENGTH = 1
		text = substr(text, RLENGTH + 1)
	}
}

FNR == 1 { depth = n_flows = flow = 0 }
{
	sub(/(^|[ \t])#.*/, "")
	text = $0
	if (!n_flows && match(text, /^ *- */)) while (depth && columns[depth] >= RLENGTH) depth--
	if (!n_flows && match(text, /^[ -]*[a-z_0-9]+:( |$)/)) {
		text = substr($0, RLENGTH + 1)
		match($0, /^[ -]*/)
		enter(substr($0, RLENGTH + 1, index($0, ":") - RLENGTH - 1), RLENGTH)
	}
	sub(/^[ -]*/, "", text)
	if (n_flows || text ~ /^[[{]/) read_flow(text)
}
