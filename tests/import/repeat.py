"""Writes a long trace: the events of a trace again and again, each time later and with numbers of their own.

    python3 tests/import/repeat.py TRACE.json.gz MEGABYTES OUT.json
"""
import gzip
import json
import sys


def shift(event, round_number, span_us):
    event = dict(event, ts=event["ts"] + round_number * span_us)
    args = dict(event.get("args", {}))
    for key in ("correlation", "External id", "Sequence number"):
        if isinstance(args.get(key), int):
            args[key] += round_number * 10_000_000
    if args:
        event["args"] = args
    return json.dumps(event)


def main():
    with gzip.open(sys.argv[1], "rt") as file:
        trace = json.load(file)
    events = [event for event in trace["traceEvents"] if "ts" in event]
    spans = [event for event in events if event.get("ph") == "X" and event.get("cat") != "Trace"]
    span_us = max(event["ts"] + event["dur"] for event in spans) - min(event["ts"] for event in spans) + 1000
    written, round_number = 0, 0
    with open(sys.argv[3], "w", encoding="utf-8") as out:
        head = {key: value for key, value in trace.items() if key != "traceEvents"}
        out.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        while written < float(sys.argv[2]) * 1e6:
            text = ",\n".join(shift(event, round_number, span_us) for event in events)
            out.write((",\n" if round_number else "") + text)
            written += len(text)
            round_number += 1
        out.write("\n]}\n")


main()
