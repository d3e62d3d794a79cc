//! What stands below the options in a long help.

/// The most GPUs or jobs that are made.
pub(super) const MOST: u64 = 100_000_000;

pub(super) const PROGRAM: &str = "\
Try it without any file:
  slotwise audit --cluster synthetic:10000
  slotwise place --cluster synthetic:10000 --queue synthetic:2000

Exit codes: 0 = ran (blocked jobs and infeasible candidates included),
1 = failed or a mismatch was found, 2 = bad input or usage, 3 = a threshold
that you set was crossed.
Results go to standard output or --out; notes, errors and progress to
standard error.";

/// What a cluster snapshot looks like; part of several helps.
macro_rules! snapshot {
    () => {
        "\
A cluster is one JSON document; only name, gpus, job, gpus_per_instance and
instances are required:
  {\"nodes\": [
    {\"name\": \"n0\", \"gpus\": 8, \"model\": \"H100\",
     \"domain\": \"d0\", \"rack\": \"r0\",
     \"cpu_milli\": 128000, \"memory_mib\": 1048576,
     \"schedulable\": false, \"unavailable\": [5]}],
   \"running\": [
    {\"job\": \"a\", \"gpus_per_instance\": 2, \"cpu_milli\": 4000,
     \"memory_mib\": 8192, \"migratable\": false, \"models\": [\"H100\"],
     \"within\": \"rack\", \"remaining_s\": 3600, \"move_cost_s\": 8,
     \"instances\": [{\"node\": \"n0\", \"gpus\": [0, 1]}, {\"node\": \"n0\"}]}]}
gpus of a node: 1 to 16 devices; unavailable: those that are broken;
schedulable false: nothing is placed there. Without cpu_milli or memory_mib a
node is unlimited; on a job they count per instance. An instance without gpus
holds the lowest free ones.
"
    };
}

/// What a queue looks like; part of several helps.
macro_rules! queue {
    () => {
        "\
A queue has one job a line, the first in priority first; a line may also end a
running job. gpus_per_instance 0 asks for CPU and memory alone:
  {\"job\":\"b\",\"instances\":4,\"gpus_per_instance\":8,\"cpu_milli\":0,
   \"memory_mib\":0,\"models\":[\"H100\"],\"within\":\"domain\"}
  {\"remove\":\"a\"}
(each on a line of its own; models and within, \"domain\" or \"rack\", may be
left out, and so may cpu_milli and memory_mib, which are per instance). With
gpus_per_instance 1, \"gpu_milli\":250 asks a quarter of a device: several such
shares may lie on one, which counts as one busy GPU. Shares are never moved.
"
    };
}

/// The traces of others; part of several helps.
macro_rules! traces {
    () => {
        "\
  philly:FILE        cluster_job_log, or CSV of timestamp, duration, num_gpus
  openb:FILE         pods, each a job of one instance
  alibaba-2026:FILE  jobs of the spot trace, requests per worker
  helios:FILE        cluster_log.csv
  acme:FILE          trace_seren.csv or trace_kalos.csv
  swf:FILE           with --gpus-per-proc, since it counts processors
  sacct:FILE         sacct -a -X -P -o JobIDRaw,User,Partition,Submit,Start,End,
                     ElapsedRaw,State,NNodes,ReqTRES,AllocTRES
Rows that are left out are counted by reason, and what was assumed is said, on
standard error. A trace that states the GPUs of a whole job: an instance a node
where its number of nodes divides them; else up to 8 are one instance, and a
larger multiple of 8 is instances of 8.
"
    };
}

pub(super) const SCORE: &str = concat!(
    snapshot!(),
    queue!(),
    "\
Every candidate is judged on the cluster as it is, alone. It is a line of JSON:
  {\"job\":\"b\",\"candidate\":\"c1\",
   \"place\":[{\"node\":\"n0\",\"gpus\":[0,1]},{\"node\":\"n1\"}],
   \"migrate\":[{\"job\":\"a\",\"instance\":0,\"node\":\"n3\"}]}
Without gpus it takes the lowest free ones. Rank 1 is the best candidate of a
job: fewest nodes that leave the Anchor-Based Space, then least N·ΔSIF, moves,
moved GPUs, empty nodes opened, room left over, racks, domains, and the first
in the file. Of several reasons why a candidate is infeasible the first of
these is told: unknown-job, unknown-node, not-running, not-migratable,
wrong-count, bad-index, unavailable-gpu, unschedulable, wrong-model, topology,
gpu-busy, no-cpu, no-memory.

Examples:
  slotwise score --cluster c.json --queue q.jsonl --candidates k.jsonl
  zcat k.gz | slotwise score --cluster c.json --queue q.jsonl --candidates -"
);

pub(super) const PLACE: &str = concat!(
    snapshot!(),
    queue!(),
    "\
A blocked job says why: capacity (not enough free GPUs), fragmentation (enough,
but they cannot be packed), constraint (CPU, memory, model or topology), space
(the policy's own space refuses it, or the moves that it would need are not
allowed). --format json has a line for each job, with its devices and moves.
Other clusters: kubernetes:FILE[,FILE…] and slurm:FILE[,FILE…], see import;
synthetic:GPUS[:SEED]; alibaba-2026:NODES.csv (gpu_model, gpu_capacity_num,
cpu_num, node_name); openb:NODES.csv (sn, cpu_milli, memory_mib, gpu, model).
Other queues: what waits in kubernetes:FILE[,FILE…] or slurm:FILE[,FILE…];
synthetic:JOBS[:SEED]; and traces, which come and go at their own pace unless
--load presses them together:
",
    traces!(),
    "
Policies: compass (and compass-paper, as printed); best-fit, worst-fit and
first-fit, by free GPUs; random; and those of FGD's simulator, which look at CPU
and shares too: fgd (the least growth of what typical jobs could not use),
dot-product, gpu-packing and gpu-clustering, in exact integers; with :peer (also
best-fit:peer) as that simulator rounds, ties by name. What is typical for fgd
are the jobs of the queue, or of --typical.

--explain adds to the line of a job (without a name: of each blocked job) the
nodes by kind: on how many an instance fits as they are, and on how many the
policy allows it without a move. A table then shows these alone.
Small calls stay on the cpu where a device would take longer: --crossover says
from how much work on a device is asked, and auto measures it.

Examples:
  slotwise place --cluster c.json --queue q.jsonl
  slotwise place --cluster c.json --queue q.jsonl --policy best-fit
  slotwise place --cluster c.json --queue - --snapshot-out after.json
  slotwise place --cluster c.json --queue q.jsonl --compact when-blocked
  slotwise place --cluster c.json --queue q.jsonl --explain --format table
  slotwise place --cluster synthetic:10000 --queue philly:jobs.csv --load 95
  slotwise place --cluster openb:nodes.csv --queue q.jsonl --policy fgd\\
    --typical openb:pods.csv"
);

pub(super) const PLAN: &str = concat!(
    snapshot!(),
    queue!(),
    "\
The job is planned for alone, on the cluster as it is; nothing is carried out.
A move takes one running instance to another schedulable node. Never moved:
jobs that are not migratable, and those of --pin. A running job keeps its
models, CPU and memory, and its instances stay together if it says within.
Shares of a GPU stay where they are.
  stop-first  all movers stop, then everything is placed
  hitless     one move after another; each target is free when its move begins,
              and an instance that moves twice counts twice
optimal: no plan has fewer moves, proved; else lower_bound says how few it
could be. Then as few GPUs and jobs as possible; proved says which of these is
certain. If there is no plan, why is the first of these that is true: capacity
(too few GPUs are free), hitless-order (only if all movers stop first), pinned
(there would be one if everything could move), constraint (CPU, memory, model or
topology forbids it), fragmentation; and relax has what little more would do.
--cost seconds takes the lesser of move_cost_s and remaining_s of each job;
--cost jobs is exact where running jobs have one instance, else often a bound.
Exit code 0 also where there is no plan.

Examples:
  slotwise plan --cluster c.json --queue q.jsonl --job b
  slotwise plan --cluster c.json --queue q.jsonl --job b --mode hitless \\
    --pin 'prod-*' --max-moves 20
  slotwise plan --cluster c.json --free-nodes 4
  slotwise plan --cluster c.json --free-domain --cost gpus
  slotwise plan --cluster c.json --target sif=0 --max-moves 100"
);

pub(super) const AUDIT: &str = concat!(
    snapshot!(),
    "\
The first finding is what an operator can gain. F is the share of partial
nodes; Φ* counts those that no packing of what runs avoids; SIF is the rest.
Φ*, SIF and the largest gangs are exact. WCC: there are 1-GPU instances enough
to fill every slot of the Anchor-Based Space, slack is how many are to spare.
Outside Σ: the slots of a node's larger instances are wider than the node
(slots-overflow), or 1-GPU instances take more than those slots leave them
(no-vacancy).

Examples:
  slotwise audit --cluster c.json
  slotwise audit --cluster c.json --max-sif-nodes 10 || echo fragmented
  slotwise audit --cluster alibaba-2026:nodes.csv"
);

pub(super) const PHI_STAR: &str = "\
Φ* is the least number of partial nodes over all packings of a demand, exact
for every demand. Counts may be up to 2^40.

Examples:
  slotwise phi-star --demand 1:10,3:4,5:2
  slotwise phi-star --capacity 16 --demand 9:1000000,5:3";

pub(super) const DEVICES: &str = "\
Lists every backend and adapter, and why one cannot be used. --backend auto
takes CUDA, else a GPU through WebGPU, else the cpu; an adapter that is software
only counts if --backend wgpu asks for it. If a device fails in the middle of a
run, the next one goes on, at last the cpu, with the same results and a warning.

Examples:
  slotwise devices
  slotwise devices --format json";

pub(super) const IMPORT_KUBERNETES: &str = "\
Reads what kubectl prints, in one file or in several (nodes and pods apart), as
JSON or YAML; also NodeList and PodList of the API server, and snapshot.json of
KAI:
  kubectl get nodes,pods -A -o json > dump.json

Pods with GPUs are jobs by their gang: schedulingGroup, else the annotations or
labels of Volcano, KAI, coscheduling, Kueue, JobSet, LeaderWorkerSet, Kubeflow,
Ray and Job, else their owner, if that is none that makes pods one by one. A pod
is moved unless nothing would make it again, a DaemonSet made it, or it is marked
as not safe to evict. Pods without GPUs hold CPU and memory, NODE/without-gpus.
Devices are those that the kubelet reports (status.containerStatuses[]
.allocatedResourcesStatus, 1.36) or that a ResourceClaim was given (get
resourceclaims,resourceslices too), else what HAMi, Volcano, Koordinator, Alibaba's
gpu-share or HiveD wrote on the pod, else the lowest free ones: index_source of
the snapshot says which, and figures that do not depend on it are facts.

The domain is the NVLink clique, the rack the path of the levels around it. Nodes
that selectors, required affinity or taints tell apart are models of their own.
Left out, and counted on standard error: nodes without GPUs, with GPUs that are
cut (MIG) or shared out (time-slicing, HAMi), or with more than 16; of the
waiting pods those that are gated, ask for parts of GPUs, claims or certain
nodes, and gangs whose pods have unlike numbers of GPUs. Affinity and spread
between pods are not kept.

Any command reads a dump itself, its files between commas:
  slotwise audit --cluster kubernetes:dump.json
  slotwise place --cluster kubernetes:nodes.yaml,pods.yaml \\
    --queue kubernetes:nodes.yaml,pods.yaml

Examples:
  slotwise import kubernetes dump.json --out c.json --queue-out q.jsonl
  kubectl get nodes,pods -A -o yaml | slotwise import kubernetes - --out c.json
  slotwise import kubernetes dump.json --topology-keys example.com/row,example.com/rack";

pub(super) const IMPORT_SLURM: &str = "\
Reads what Slurm's own tools print, 22.05 and later; the content of a file tells
what it is:
  scontrol show nodes --json > nodes.json     22.05: sinfo --json
  scontrol show jobs --json > jobs.json       or: squeue --json
  scontrol show topology > topology.txt       or: /etc/slurm/topology.conf
In text it is scontrol -d show node and scontrol -d show job, both also with -o;
without -d nothing tells devices.

A block is a domain, a leaf switch a rack. Partitions are walls: nodes of one GPU
type that serve different partitions are models of their own, TYPE/PARTITIONS.
A job is an instance a node, with what it was given there; it can be moved if it
may be requeued, names no nodes and has no reservation. What a node holds beyond
its listed jobs is held by a job NODE/unknown, devices of which somebody has
shards by NODE/shards; neither is moved. Left out, and counted on standard error:
nodes without GPUs, with slices of GPUs or more than 16; of the waiting jobs those
that wait for something else than nodes (a begin time, a limit, another job), and
those that a queue has no words for (certain nodes, uneven numbers of GPUs).
index_source of the snapshot says whether all devices were known.

Any command reads a dump itself, its files between commas:
  slotwise audit --cluster slurm:nodes.json,jobs.json,topology.txt
The queue needs the nodes too, whose partitions are walls:
  slotwise place --cluster slurm:nodes.json,jobs.json \\
    --queue slurm:nodes.json,jobs.json

Examples:
  slotwise import slurm nodes.json jobs.json topology.txt --out c.json
  slotwise import slurm nodes.txt jobs.txt --out c.json --queue-out q.jsonl";

pub(super) const GENERATE_CLUSTER: &str = "\
Examples:
  slotwise generate cluster --gpus 10000 --busy 90 --scattered --out c.json
  slotwise generate cluster --gpus 800 | slotwise audit --cluster -";

pub(super) const GENERATE_QUEUE: &str = "\
Jobs arrive and leave so that they ask for --load percent of --gpus at a time.
With --from they are those of a trace, in random order and repeated until they
ask for --inflate percent of --gpus; none leaves.

Examples:
  slotwise generate queue --jobs 5000 --gpus 10000 --seed 7 --out q.jsonl
  slotwise generate queue --mix hard --no-removals --within-rack 20
  slotwise generate queue --from openb:pods.csv --gpus 6212 --inflate 130";

pub(super) const GENERATE_TRACE: &str = "\
Jobs arrive at a rate that makes them ask for --load percent of --gpus on
average; durations have a heavy tail, from seconds to a week. poisson: the rate
is the same all the time. diurnal: it follows the hour, from 25 % of the mean at
night to 175 % in the afternoon. bursts: calm times (3 h on average) at half the
mean, bursts (20 min on average) at 5.5 times the mean. --mix gfs and venus have
the sizes of table 1 of COMPASS-ABS. The arrivals change no job but its time.

Examples:
  slotwise generate trace --arrivals diurnal --jobs 90000 --out month.jsonl
  slotwise generate trace --jobs 20000 --gpus 2000 --mix venus --out t.jsonl
  slotwise generate trace | slotwise simulate --trace - --nodes 125";

pub(super) const STRESS: &str = "\
Makes a cluster and a stream of jobs from the seed, decides every job, and
checks: the books after a full recount, what each decision says against the
ledger, the sum of all N·ΔSIF, and for the policy compass at most two avoidable
partial nodes a pool wherever the method promises it. Exit 1 if any fails.

Examples:
  slotwise stress
  slotwise stress --gpus 10000 --jobs 100000 --policy best-fit --seed 7";

pub(super) const SIMULATE: &str = concat!(
    "\
A trace has one job a line; instances (1) and priority (0, higher goes first)
may be left out:
  {\"job\":\"a\",\"submit_s\":0,\"duration_s\":3600,
   \"gpus_per_instance\":8,\"instances\":2,\"priority\":1}
(each on a line of its own). Other traces: synthetic:JOBS[:SEED] with Poisson
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
event, then all arrivals, then one pass over the queue. fifo: the head starts or the pass ends; easy: jobs behind the head
may start if they do not keep it from the GPUs that it is promised; sjf and
priority: as fifo, in another order. Each event (all departures of an instant,
or one start) pauses every running job that it moves by --move-cost.

AFR: mean share of avoidable partial nodes while jobs wait. AGU: mean share of
busy GPUs then; BUSY: the same over the whole run. AJCT: mean time from
submission to finish. SAT: allocation at saturation, the largest share of GPUs
busy while jobs waited. FRAG: share of the time with a queue in which as many
GPUs were free as its head asked for; CAP: in which fewer were. EMPTY: mean
number of empty nodes. WCC: share of time in which fillers sufficed for all
slots. A JOB: mean number of migrations of a job. --format json has one object a
run, with the exact sums, quantiles of waits and completion times by size (1,
2-4, 5-8, >8 GPUs), and what migrations cost.

--series has a row for each interval in which nothing happened; --minutes one
for each minute and policy, with sums over its seconds: busy_gpu_s / seconds is
the mean number of busy GPUs. --jobset has the jobs that finished: workload_name
is the policy, allocated_resources the GPUs that a job held last, numbered from
0 node by node.
--html writes one page: the measures with the best values marked; charts of
N·SIF, utilisation, empty nodes and the queue over time, of completion times and
waits, and of allocation and fragmentation by the load that had arrived (GPUs of
all jobs that run or wait); maps of the nodes. Its size does not grow with the
run: it shows at most 512 stretches of time, with the exact least, mean and most
value of each. --svg writes its pictures as files.

fft places by best-fit and every --round seconds packs all that runs onto the
fewest nodes, if that frees one. drr places by best-fit and every --round seconds
empties the least used nodes onto others; an approximation, since its source
leaves details open. Both pay --move-cost. compass:TRIGGER:BUDGET has a budget of
moves an event.

sif-opt starts a job whenever everything that runs and the job could be packed
somehow, moves for free: a bound, not a policy.

--explain JOB tells instead when and why a job waited: behind whom, and what kept
them (capacity, fragmentation, constraint, space; see help place), or what kept
itself; and at its first try the nodes by kind: on how many an instance would
have fitted, and on how many the policy allows it without a move.

Examples:
  slotwise simulate --trace philly:jobs.csv.gz --eta 0.90
  slotwise simulate --trace t.jsonl --nodes 90 --explain job-77 --format table
  slotwise simulate --trace philly:jobs.csv.gz --day 40 --nodes 60 \\
    --policy compass,compass:when-blocked,best-fit,sif-opt --html report.html
  slotwise simulate --trace synthetic:20000 --nodes 250 --load 100 --mix venus
  slotwise simulate --trace t.jsonl --cluster c.json --discipline easy"
);

pub(super) const SWEEP: &str = "\
Plays the trace once for every cell of the grid DAYS × SIZES × COSTS × SEEDS ×
POLICIES, on all cores, and writes a row for each: a line of JSON with the whole
key, the measures of simulate (see slotwise help simulate) and the exact sums
behind them. Rows come by cell, whatever the number of threads. A table says
instead on how many days each policy ranks first in AFR, AJCT and AGU.

Rows go to FILE.partial as they are done, which becomes FILE at the end. If the
process ends before, --resume goes on: cells whose row is in FILE or
FILE.partial are not played again, and a last line that was cut off is removed.
Rows of another trace (by content), of other options or of another version are
an error. Parts of a sweep run anywhere: merge puts their files together.

Examples:
  slotwise sweep --trace philly:jobs.csv.gz --days all --eta 0.85,0.90,0.95 \\
    --policy compass,compass:when-blocked,best-fit --move-cost 1,8 --out r.jsonl
  slotwise sweep --trace philly:jobs.csv.gz --days 0..75 --format table
  slotwise sweep --trace t.jsonl --nodes 100 --policy random --seed 0..20
  sbatch --array=1-16 --wrap 'slotwise sweep --trace t.jsonl --days all \\
    --shard $SLURM_ARRAY_TASK_ID/16 --out r$SLURM_ARRAY_TASK_ID.jsonl --resume'
A Kubernetes indexed job counts from 0: --shard $((JOB_COMPLETION_INDEX+1))/16";

pub(super) const MERGE: &str = "\
Files of one sweep, in any order, unfinished ones (FILE.partial) included. Rows of
different sweeps, and different rows of one cell, are an error; equal ones count
once. If cells are missing, it says which and fails, unless --partial is there.

FIRST IN AFR, AJCT, AGU: on how many days no other policy is better, of those
that can be ranked: by AFR and AGU if jobs wait under every policy, by AJCT if as
many jobs end. Ties are first together. sif-opt is shown and not ranked.

Examples:
  slotwise merge r1.jsonl r2.jsonl r3.jsonl --out r.jsonl
  slotwise merge r*.jsonl --format table
  slotwise merge r.jsonl.partial --partial --format table";

pub(super) const VERIFY: &str = "\
Compares every kernel of a backend with the serial reference on clusters and
candidates made from the seed, bit by bit: mixed capacities, sizes around the
widths of words and blocks, ties, infeasible ones, edits upon edits, buffers
that hold rubbish. The first seed also has what takes more than one piece on a
device. Stops at the first seed that differs, exits with 1 and tells the command
that shows it again. Controls plant a fault in each kernel, and must find it.

Examples:
  slotwise verify
  slotwise verify --backend wgpu --quick
  slotwise verify --backend cuda --rounds 1000 --seed 7";

pub(super) const BENCH: &str = "\
Measures the cpu with one thread and with all, and every GPU, or the device that
--backend names; --backend cpu leaves devices out. SHARE is bytes a second as a
share of the LIMIT: a plain read of the same bytes by as many threads, or the
device's own copy, in the same run. × CPU is how many times as fast the cpu with
all threads is outdone in the same run.
  score_candidates  touches scored where they lie, by touches a candidate
  score_transfer    the same from host to host, best candidates included
  latency           a small batch from host to host, the median
  rank_nodes        nodes looked at, once for each class
  score_fgd         nodes scored as FGD does, once for each class
  crossover         the least work for which a device is faster than the cpu
  score_numpy       the cpu and a plain NumPy program on the same batch, where
                    python3 has NumPy
  place             decisions end to end; \"best-fit, CPU\" ranks on the backend
  plan              the fewest moves, hitless, for a gang of whole nodes
Takes about two minutes and 2 GB.

Examples:
  slotwise bench
  slotwise bench --quick --threads 1
  slotwise bench --backend cuda --format json";
