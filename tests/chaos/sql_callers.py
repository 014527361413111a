"""Callers by SQL: business transactions that create and cancel jobs beside rows of their own."""
import subprocess
import threading
import time

from caller import PSQL, TIMEOUT_S, Caller, time_text


class Business(Caller):
    """Does business by SQL: creates, cancels and moves jobs, of whatever shards, in transactions with rows of its own
    that name them. Some have keys and are asked for again, some transactions are rolled back."""

    number = 0

    def __init__(self, load, name):
        super().__init__(load, name)
        self.orders = []  # (database, job_id, biz_id) that may still be pending

    def work(self):
        self.random.choice([self.create_some, self.create_some, self.create_some, self.change_its_mind, self.ask_again,
                            self.cancel_one, self.cancel_key, self.move_one])()
        self.is_over.wait(self.load.pause_s)

    def run_sql(self, dsn, sql):
        """(answer, lines): refused if the server said why not, unknown if nobody knows what became of it."""
        try:
            done = subprocess.run([PSQL, "-qXAt", "-v", "ON_ERROR_STOP=1", "-c", sql, dsn], text=True,
                                  capture_output=True, check=False, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return "unknown", []
        return self.answer_of(done.returncode, done.stderr), done.stdout.split()

    @staticmethod
    def answer_of(code, errors):
        # psql: 1 an error that the server told, 2 a connection that was lost, 3 an error of a script
        lost = code == 2 or "connection" in errors or "terminating" in errors
        return "ok" if code == 0 else "unknown" if lost else "refused"

    def orders_of(self, n, pauses):
        self.number += 1
        now = time.time()
        return [(f"sql-{self.name}-{self.number}-{i}", round(now + self.random.choice(pauses), 3)) for i in range(n)]

    def sql_of(self, jobs, type, key="NULL"):
        values = ", ".join(f"('{biz_id}', '{time_text(at)}'::timestamptz)" for biz_id, at in jobs)
        return (f"INSERT INTO public.witness (biz_id, job_id) SELECT k, tocsin.create_job('{type}', k, at, NULL, {key})"
                f" FROM (VALUES {values}) v (k, at) RETURNING job_id")

    def create_some(self):
        began, dsn = time.time(), self.random.choice(self.load.databases)
        type, jobs = self.random.choice(["noop", "noop", "ledger"]), self.orders_of(5, [0, 0.3, 2, 4])
        answer, ids = self.run_sql(dsn, self.sql_of(jobs, type))
        # A refusal in mid-flight (a shard that moves, a crash) is rolled back as a whole.
        self.told(began, time.time(), answer, type, jobs, ids if answer == "ok" else None)
        if answer == "ok":
            self.orders = (self.orders + [(dsn, job_id, key) for job_id, (key, _) in zip(ids, jobs)])[-100:]

    def change_its_mind(self):
        """Nothing of a transaction that is rolled back may ever be seen: neither its jobs nor its cancels."""
        began, dsn = time.time(), self.random.choice(self.load.databases)
        jobs = self.orders_of(2, [0, 0.5])
        cancel = f"SELECT tocsin.cancel_job({self.orders[-1][1]});" if self.orders and self.orders[-1][0] == dsn else ""
        self.run_sql(dsn, f"BEGIN; {self.sql_of(jobs, 'noop')}; {cancel} ROLLBACK")
        self.told(began, time.time(), "refused", "noop", jobs, None)

    def ask_again(self):
        """With a key, and once more by whatever way: one job, and every id that was answered stands for it."""
        jobs = self.orders_of(1, [0.3, 2])
        if not self.create_with_key(jobs, self.random.choice(self.load.databases)):
            return
        if dsn := self.random.choice([*self.load.databases, None]):
            self.create_with_key(jobs, dsn)
        else:
            self.create("noop", jobs)

    def create_with_key(self, jobs, dsn):
        """Again and again until the answer is known; whether they were created."""
        while not self.load.is_giving_up.is_set():
            began = time.time()
            answer, ids = self.run_sql(dsn, self.sql_of(jobs, "noop", "k"))
            self.told(began, time.time(), answer, "noop", jobs, ids if answer == "ok" else None)
            if answer != "unknown":
                return answer == "ok"
            self.load.is_giving_up.wait(0.1)
        return False

    def cancel_key(self):
        if not self.orders:
            return
        dsn, job_id, key = self.orders.pop(self.random.randrange(len(self.orders)))
        began = time.time()
        answer, lines = self.run_sql(dsn, f"SELECT job_id, replace(result, ' ', '_') FROM tocsin.cancel_jobs('{key}')")
        results = [line.split("|") for line in lines] or [[job_id, "not_found"]]
        for told, result in results if answer == "ok" else [[job_id, None]]:
            self.history.write("cancel", b=began, t=time.time(), answer=answer, id=told, result=result)

    def move_one(self):
        if not self.orders:
            return
        dsn, job_id, _ = self.random.choice(self.orders)
        began, at = time.time(), round(time.time() + self.random.uniform(0, 5), 3)
        answer, lines = self.run_sql(dsn, f"SELECT tocsin.reschedule_job({job_id}, '{time_text(at)}')")
        if answer == "ok" and lines != ["rescheduled"]:
            answer = "refused"
        self.history.write("move", b=began, t=time.time(), answer=answer, id=job_id, at=at)

    def cancel_one(self):
        if not self.orders:
            return
        dsn, job_id, _ = self.orders.pop(self.random.randrange(len(self.orders)))
        began = time.time()
        answer, lines = self.run_sql(dsn, f"SELECT tocsin.cancel_job({job_id})")
        result = lines[0] if answer == "ok" and lines else None
        self.history.write("cancel", b=began, t=time.time(), answer=answer, id=job_id, result=result)


class KeyHolder(Business):
    """Creates a job with a key in a transaction that stays open for seconds, while others ask for the same key."""

    def work(self):
        self.number += 1
        # No "sql-": the job may be that of a caller by REST, whose transaction is not this one.
        jobs = [(f"{self.name}-{self.number}", round(time.time() + self.random.choice([0.5, 2, 4]), 3))]
        is_held = threading.Event()
        holder = threading.Thread(target=self.hold, args=(jobs, self.random.choice(self.load.databases), is_held))
        holder.start()
        is_held.wait()
        for ask in self.random.sample([lambda: self.create("noop", jobs), lambda: self.create_each("noop", jobs),
                                       lambda: self.create_with_key(jobs, self.random.choice(self.load.databases))], 2):
            ask()
        holder.join()
        self.is_over.wait(1)

    def hold(self, jobs, dsn, is_held):
        began, is_kept = time.time(), self.random.random() < 0.5
        with subprocess.Popen([PSQL, "-qXAt", "-v", "ON_ERROR_STOP=1", dsn], text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as psql:
            killer = threading.Timer(TIMEOUT_S, psql.kill)  # then nobody knows
            killer.start()
            try:
                psql.stdin.write(f"BEGIN; {self.sql_of(jobs, 'noop', 'k')};\n")
                psql.stdin.flush()
                job_id = psql.stdout.readline().strip()
                is_held.set()
                self.is_over.wait(self.random.uniform(0.3, 3))
                psql.stdin.write("COMMIT;\n" if is_kept else "ROLLBACK;\n")
                _, errors = psql.communicate()
            except BrokenPipeError:
                errors = "connection"
            finally:
                is_held.set()
                killer.cancel()
        answer = self.answer_of(psql.returncode, errors) if psql.returncode >= 0 else "unknown"
        if not is_kept:
            answer = "refused"
        self.told(began, time.time(), answer, "noop", jobs, [job_id] if answer == "ok" else None)
