#!/usr/bin/env python3
r"""A consumer of a pull type: leases due jobs, works on them, and says what became of each. Standard library only.

    consumer.py URL TYPE [--jobs N]        URL like http://127.0.0.1:7070; stops after N jobs, else runs on

    curl -X PUT localhost:7070/v1/types/ticket.stale -H 'content-type: application/json' \
         -d '{"handler":{"kind":"pull"}}'
    curl localhost:7070/v1/jobs -H 'content-type: application/json' \
         -d '{"biz_type":"ticket.stale","biz_id":"ticket-1","delay_ms":2000,"attribute":{"level":2}}'

With tokens configured, TOCSIN_TOKEN holds one of role consumer.
"""
import argparse
import json
import os
import time
import urllib.error
import urllib.request


class Tocsin:
    """The three calls a consumer needs."""

    def __init__(self, url, token=None):
        self.url = url.rstrip("/")
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = "Bearer " + token

    def lease(self, biz_type, most, wait_ms):
        return self.post(f"/v1/types/{biz_type}/lease", {"max": most, "wait_ms": wait_ms})

    def ack(self, items):
        return self.post("/v1/leases/ack", {"items": items})

    def nack(self, items):
        return self.post("/v1/leases/nack", {"items": items})

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), self.headers)
        with urllib.request.urlopen(request, timeout=75) as response:  # longer than the longest wait
            return json.load(response)["items"]


def handle(job):
    """Your work. An exception is a failed attempt; the job comes again, or is dead after its last one."""
    if job["attribute"] == "poison":
        raise ValueError("cannot handle this")
    print(f"{job['biz_id']} is due since {job['action_time']} (attempt {job['attempts']}, data {job['attribute']})",
          flush=True)


def work_on(tocsin, jobs):
    done, failed = [], []
    for job in jobs:
        lease = {"job_id": job["job_id"], "lease_token": job["lease_token"]}
        try:
            handle(job)
            done.append(lease)
        except Exception as error:  # whatever it is: it is the job's, and the loop goes on
            failed.append(lease | {"error": f"{type(error).__name__}: {error}"[:1000]})
    answers = (tocsin.ack(done) if done else []) + (tocsin.nack(failed) if failed else [])
    for answer in answers:
        if answer["result"] == "stale":  # it took longer than the lease: the job comes again, perhaps to another one
            print(f"job {answer['job_id']} was not ours any more", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("type")
    parser.add_argument("--jobs", type=int, help="stop after so many")
    options = parser.parse_args()
    tocsin = Tocsin(options.url, os.environ.get("TOCSIN_TOKEN"))
    left = options.jobs
    while left is None or left > 0:
        try:
            jobs = tocsin.lease(options.type, min(100, left or 100), wait_ms=20000)
            work_on(tocsin, jobs)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                raise
            time.sleep(1)  # busy, or the database is down; leases that could not be settled end by themselves
            continue
        except (urllib.error.URLError, ConnectionError):
            time.sleep(1)  # the node is restarting
            continue
        if left is not None:
            left -= len(jobs)


if __name__ == "__main__":
    main()
