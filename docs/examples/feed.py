#!/usr/bin/env python3
"""Feeds crawl requests to a dispatcher: feed.py [tcp://HOST:5557] '{"url": ..., "appid": ..., "crawlid": ...}'

The control socket takes one frame of JSON, a request or a list of them, and answers with one:
{"accepted": n}, or {"error": {"path": ..., "message": ...}}, and then nothing of it was taken.
"""
import json
import sys

import zmq

endpoint = sys.argv[1] if len(sys.argv) > 2 else "tcp://127.0.0.1:5557"
socket = zmq.Context.instance().socket(zmq.REQ)
socket.setsockopt(zmq.LINGER, 0)
socket.setsockopt(zmq.RCVTIMEO, 60_000)
socket.connect(endpoint)
socket.send_json(json.loads(sys.argv[-1]))
answer = socket.recv_json()
if "error" in answer:
    sys.exit(f"refused at {answer['error']['path']}: {answer['error']['message']}")
print(f"{answer['accepted']} accepted: durable, and to be crawled")
