"""Wide & Deep click prediction on parameter servers: the same program is server or worker, as its environment says.

The click log is generated: 26 categorical fields, 13 numbers and a rule with a sparse and a dense part, so that both
halves of the model have something to learn. Training is asynchronous and goes through `train_from_dataset`, which
starts the thread that refreshes dense parameters; feeding `Executor.run` by hand runs too but does not learn.
How much a pass teaches depends on how stale the parameters are, and that on the machine: a worker makes `--epochs`
passes and, while its cost is still near that of tossing a coin, up to twice as many more; it ends with 1 when even that
did not help. (Its first cost is no measure: a worker that starts late finds a model that others have taught.)
Servers never end by themselves: the job is over when the workers are, and then SIGTERM ends them, which is success.

Needs a Paddle with a parameter-server core: 2.6.2 (or 3.0.0 with FLAGS_enable_pir_api=0).
"""

import argparse
import itertools
import math
import os
import re
import signal
import sys
import tempfile

if os.environ.get("TRAINING_ROLE") == "PSERVER" and (server := os.fork()):
    # This process takes the signal: the server's sits in C++ with the interpreter's lock and would run no handler.

    def end(*_):
        os.kill(server, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    _, status = os.waitpid(server, 0)
    os._exit(os.waitstatus_to_exitcode(status) % 256)

import numpy as np
import paddle
from paddle.distributed import fleet

try:
    from paddlecloud.data import report
except ImportError:  # an image without it: train all the same
    report = None

FIELDS, NUMBERS, VOCABULARY, WIDTH, BATCH = 26, 13, 500, 8, 64
LEARNED = 0.8 * math.log(2)  # the cost of tossing a coin is log(2)


def build():
    """The model as a static program: its inputs in the order of the log, and the cost to minimise."""
    numbers = paddle.static.data("numbers", [None, NUMBERS], "float32")
    fields = [paddle.static.data(f"field{i}", [None, 1], "int64") for i in range(FIELDS)]
    clicked = paddle.static.data("clicked", [None, 1], "int64")
    table = paddle.ParamAttr(name="embedding", initializer=paddle.nn.initializer.Uniform(-0.05, 0.05))
    embedded = [
        paddle.static.nn.sparse_embedding(field, size=[VOCABULARY, WIDTH], param_attr=table) for field in fields
    ]
    deep = paddle.concat([paddle.reshape(vector, [-1, WIDTH]) for vector in embedded] + [numbers], axis=1)
    for width in (32, 16):
        deep = paddle.static.nn.fc(deep, width, activation="relu")
    logit = paddle.static.nn.fc(deep, 1) + paddle.static.nn.fc(numbers, 1)
    cost = paddle.nn.functional.binary_cross_entropy_with_logits(logit, paddle.cast(clicked, "float32"))
    return [numbers, *fields, clicked], cost


def write_clicks(path, rows, rng):
    """A click log in Paddle's slot format: every slot is its length followed by its values."""
    taste = np.random.RandomState(0).randn(VOCABULARY)  # how much people like each value of the first field
    with open(path, "w") as log:
        for _ in range(rows):
            fields, numbers = rng.randint(0, VOCABULARY, FIELDS), rng.rand(NUMBERS)
            clicked = int(taste[fields[0]] + 2 * (numbers[0] - 0.5) > 0)
            values = " ".join(f"{value:.3f}" for value in numbers)
            log.write(f"{NUMBERS} {values} " + " ".join(f"1 {value}" for value in fields) + f" 1 {clicked}\n")


def train_epoch(executor, inputs, cost, path):
    """The mean cost of one pass. Paddle's C++ trainer only prints what it fetches, so its output is read back."""
    dataset = paddle.distributed.QueueDataset()
    dataset.init(batch_size=BATCH, thread_num=1, pipe_command="cat", use_var=inputs)
    dataset.set_filelist([path])
    sys.stdout.flush()
    terminal = os.dup(1)
    with tempfile.TemporaryFile("w+") as output:
        os.dup2(output.fileno(), 1)
        try:
            executor.train_from_dataset(
                paddle.static.default_main_program(),
                dataset,
                fetch_list=[cost],
                fetch_info=["cost"],
                print_period=5,
            )
        finally:
            sys.stdout.flush()
            os.dup2(terminal, 1)
            os.close(terminal)
        output.seek(0)
        printed = re.findall(r"cost\[\d+\]:\[([\d.e+-]+)\]", output.read())
    return float(np.mean([float(value) for value in printed]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batches", type=int, default=120, help="batches per epoch and worker")
    args = parser.parse_args()

    os.chdir(tempfile.mkdtemp())  # Paddle leaves descriptions and logs of its own where it runs
    paddle.enable_static()
    fleet.init()
    inputs, cost = build()
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    fleet.distributed_optimizer(paddle.optimizer.Adam(1e-2, lazy_mode=True), strategy).minimize(cost)

    if fleet.is_server():
        fleet.init_server()
        print(f"server {fleet.server_index()} of {fleet.server_num()} serves", flush=True)
        fleet.run_server()
        return 0

    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    fleet.init_worker()
    rank, rng = fleet.worker_index(), np.random.RandomState(1 + fleet.worker_index())
    for epoch in itertools.count(1):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "clicks")
            write_clicks(path, args.batches * BATCH, rng)
            loss = train_epoch(executor, inputs, cost, path)
        epochs = max(epoch, args.epochs)
        print(f"worker {rank} epoch {epoch}/{epochs} cost {loss:.4f}", flush=True)
        if report:
            report.progress(epoch=epoch, epochs=epochs, loss=loss)
        learned = loss < LEARNED
        if epoch >= 3 * args.epochs or (learned and epoch >= args.epochs):
            break
    fleet.stop_worker()
    print(f"worker {rank} of {fleet.worker_num()}: {'learned' if learned else 'did NOT learn'}", flush=True)
    return 0 if learned else 1


sys.exit(main())

# mypy: ignore-errors
