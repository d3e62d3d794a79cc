//! The help of `simulate`, and of what runs many of them.

pub(in super::super) const SIMULATE: &str = concat!(
    "\
A trace has one job a line; instances (1) and priority (0, higher goes first)
may be left out:
  {\"job\":\"a\",\"submit_s\":0,\"duration_s\":3600,
   \"gpus_per_instance\":8,\"instances\":2,\"priority\":1}
(each on a line of its own). With gpus_per_instance 1, \"gpu_milli\":250 asks a
quarter of a GPU, as in a queue. Other traces: synthetic:JOBS[:SEED] with Poisson
arrivals, and those of others:
",
    traces!(),
    "\
The nodes of --nodes and --eta have all models, and CPU and memory without
limit; those of --cluster have what it says. Jobs that would not even fit on
the empty cluster are left out. A job whose trace has no times never ends.

--events has nodes that fail (what runs there starts again from its beginning,
at its old place in the queue), drain (nothing new starts there) and return, by
name (those of --nodes and --eta are n0, n1, …), in seconds of the trace:
  {\"at_s\": 86400, \"node\": \"n3\", \"event\": \"fail\"}

At one instant all departures come first, then all changes of nodes as one
event, then all arrivals, then one pass over the queue. fifo: the head starts or
the pass ends; easy: jobs behind the head may start if they do not keep it from
the GPUs that it is promised (a device that shares lie on is free when the last
of them has left, and a share behind the head counts as all that it could take
from it, wherever it will lie); sjf and priority: as fifo, in another order. Each
event (all departures of an instant, or one start) pauses every running job that
it moves by --move-cost.

AFR: mean share of avoidable partial nodes while jobs wait. AGU: mean share of
busy GPUs then; BUSY: the same over the whole run. AJCT: mean time from
submission to finish. SAT: allocation at saturation, the largest share of GPUs
busy while jobs waited. FRAG: share of the time with a queue in which as many
GPUs were free as its head asked for; CAP: in which fewer were. EMPTY: mean
number of empty nodes. WCC: share of time in which fillers sufficed for all
slots. A JOB: mean number of migrations of a job. KILLED and GPU-H KILLED: runs
that failing nodes ended, and the GPU-hours that they had held. NEVER RAN: jobs
that wait when nothing happens any more. --format json has one object a
run, with the exact sums, quantiles of waits and completion times by size (1,
2-4, 5-8, >8 GPUs), and what migrations cost.

--series has a row for each interval in which nothing happened; --minutes one
for each minute and policy, with sums over its seconds: busy_gpu_s / seconds is
the mean number of busy GPUs. --jobset has the jobs that finished: workload_name
is the policy, allocated_resources the GPUs that a job held last, numbered from
0 node by node.
--html writes one page: the measures with the best values marked; charts of
N·SIF, utilisation, empty nodes and the queue over time, of completion times and
waits, and of allocation and fragmentation by the load that had arrived (what all
jobs ask for that run or wait, shares of a GPU as such); maps of the nodes. Its
size does not grow with the run: it shows at most 512 stretches of time, with the
exact least, mean and most value of each. --svg writes its pictures as files.

fft places by best-fit and every --round seconds packs all that runs onto the
fewest nodes, if that frees one. drr places by best-fit and every --round seconds
empties the least used nodes onto others; an approximation, since its source
leaves details open. Both pay --move-cost. compass:TRIGGER:BUDGET has a budget of
moves an event.

ca-fgd and mcg are approximations as well. ca-fgd holds a job back, up to 300 s
after it came, if fewer than an eighth of all GPUs are free and wherever it went
it would leave more GPUs that are of no use to typical jobs. Under mcg, of the
first 16 jobs of the queue the one goes first that leaves the least of them,
fifo or not, past jobs that are blocked too; each is overtaken 16 times at most.

make-room places by best-fit. Where the GPUs that are free do not let the head of
the queue start, it moves the fewest instances that do, if the pauses of their jobs sum to less
than the head would wait for departures alone. make-room:PRICE wants PRICE
seconds of waiting saved for each job that moves, if that is more than the pause:
fewer moves, later jobs. make-room:PRICE:BUDGET has a budget of moves an event.

sif-opt starts a job whenever everything that runs and the job could be packed
somehow, moves for free: a bound, not a policy.

--explain JOB tells instead when and why a job waited: behind whom, and what kept
them (capacity, fragmentation, constraint, space; see help place; or held, by
ca-fgd), or what kept itself; and at its first try the nodes by kind: on how many an instance would
have fitted, and on how many the policy allows it without a move.

Examples:
  slotwise simulate --trace philly:jobs.csv.gz --eta 0.90
  slotwise simulate --trace t.jsonl --nodes 90 --explain job-77 --format table
  slotwise simulate --trace philly:jobs.csv.gz --day 40 --nodes 60 \\
    --policy compass,compass:when-blocked,best-fit,sif-opt --html report.html
  slotwise simulate --trace synthetic:20000 --nodes 250 --load 100 --mix venus
  slotwise simulate --trace t.jsonl --cluster c.json --discipline easy"
);

pub(in super::super) const SWEEP: &str = "\
Plays the trace once for every cell of the grid DAYS × SIZES × COSTS × SEEDS ×
POLICIES, on all cores, and writes a row for each: a line of JSON with the whole
key, the measures of simulate (see slotwise help simulate) and the exact sums
behind them. Rows come by cell, whatever the number of threads. A table says
instead on how many days each policy ranks first in AFR, AJCT and AGU.

--events happen in every cell, in seconds of the trace, so those before a day
have happened when it begins; they may name the nodes that every cell has. Rows
then say how many runs failing nodes ended, and the GPU-seconds lost with them.

Rows go to FILE.partial as they are done, which becomes FILE at the end. If the
process ends before, --resume goes on: cells whose row is in FILE or
FILE.partial are not played again, and a last line that was cut off is removed.
Rows of another trace or other events (by content), of other options or of
another version are an error. Parts of a sweep run anywhere: merge puts their files together.

Examples:
  slotwise sweep --trace philly:jobs.csv.gz --days all --eta 0.85,0.90,0.95 \\
    --policy compass,compass:when-blocked,best-fit --move-cost 1,8 --out r.jsonl
  slotwise sweep --trace philly:jobs.csv.gz --days 0..75 --format table
  slotwise sweep --trace t.jsonl --nodes 100 --policy random --seed 0..20
  sbatch --array=1-16 --wrap 'slotwise sweep --trace t.jsonl --days all \\
    --shard $SLURM_ARRAY_TASK_ID/16 --out r$SLURM_ARRAY_TASK_ID.jsonl --resume'
A Kubernetes indexed job counts from 0: --shard $((JOB_COMPLETION_INDEX+1))/16";

pub(in super::super) const MERGE: &str = "\
Files of one sweep, in any order, unfinished ones (FILE.partial) included. Rows of
different sweeps, and different rows of one cell, are an error; equal ones count
once. If cells are missing, it says which and fails, unless --partial is there.
A table then compares the days alone of which every policy has a row (2 of 3 days:
one is left out); json has all rows, and a note says how many such days there are.

FIRST IN AFR, AJCT, AGU: on how many days no other policy is better, of those
that can be ranked: by AFR and AGU if jobs wait under every policy, by AJCT if as
many jobs end. Ties are first together. sif-opt is shown and not ranked.

Examples:
  slotwise merge r1.jsonl r2.jsonl r3.jsonl --out r.jsonl
  slotwise merge r*.jsonl --format table
  slotwise merge r.jsonl.partial --partial --format table";
