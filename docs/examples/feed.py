#!/usr/bin/env python3
"""Feeds crawl requests to a dispatcher: feed.py [tcp://HOST:5557[,tcp://..]] '{"url": .., "appid": .., "crawlid": ..}'

The control socket takes one frame of JSON, a request or a list of them, and answers with one:
{"accepted": n}, or {"error": {"path": ..., "message": ...}}, and then nothing of it was taken.
"""
import json
import sys

import zmq


def ask(endpoints, request):
    """Sends to a dispatcher whose port is open: it serves. If it is lost, sends again: a crawl accepts a URL once."""
    for _ in range(6):
        with zmq.Context.instance().socket(zmq.REQ) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.IMMEDIATE, 1)
            for endpoint in endpoints:
                socket.connect(endpoint)
            if socket.poll(10_000, zmq.POLLOUT):
                socket.send_json(request)
                if socket.poll(10_000):
                    return socket.recv_json()
    sys.exit(f"{', '.join(endpoints)}: no answer")


endpoints = sys.argv[1] if len(sys.argv) > 2 else "tcp://127.0.0.1:5557"
answer = ask(endpoints.split(","), json.loads(sys.argv[-1]))
if "error" in answer:
    sys.exit(f"refused at {answer['error']['path']}: {answer['error']['message']}")
print(f"{answer['accepted']} accepted: durable, and to be crawled")
