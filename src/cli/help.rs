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
holds the lowest free ones. \"group_of\": \"b\" makes jobs called b/1, b/2, … that
follow each other the groups of one job: see queues.
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
Instances that are unlike are groups of one job, which start together or not at
all; within holds for all of them, and remove for the whole job:
  {\"job\":\"b\",\"within\":\"rack\",\"groups\":[
   {\"instances\":1,\"gpus_per_instance\":0,\"cpu_milli\":4000},
   {\"instances\":4,\"gpus_per_instance\":8,\"models\":[\"H100\"]}]}
(on one line). Elsewhere its groups are called b/1, b/2 and so on.
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

// They stand below the macros, which they use.
mod generate;
mod import;
mod serve;
mod simulate;

pub(super) use generate::{GENERATE_CLUSTER, GENERATE_QUEUE, GENERATE_TRACE};
pub(super) use import::{IMPORT_KUBERNETES, IMPORT_SLURM};
pub(super) use serve::SERVE;
pub(super) use simulate::{MERGE, SIMULATE, SWEEP};

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
gpu-busy, no-cpu, no-memory. Jobs of several groups are not scored.

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
Of a job of several groups that is blocked it also says whether that is proven:
with proven false (in the table: not proven) no place was found for all groups
together, and that there is none was not shown. No room is made for such a job,
and --explain does not look at it.
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
are the jobs of the queue, or of --typical. ca-fgd and mcg are fgd for a mix of
that with what runs, and with what waits: approximations, since their sources
leave details open, and no measure of the originals. Here nobody is held back
and the queue is not reordered, as both are in simulate.
make-room is best-fit that, where the GPUs that are free do not let a job start,
moves the fewest running instances that do, pins, CPU and topology respected,
and no more than --migration-budget.

--explain adds to the line of a job (without a name: of each blocked job) the
nodes by kind: on how many an instance fits as they are, and on how many the
policy allows it without a move. A table then shows these alone.
In the cluster of --snapshot-out the placed jobs run: a queue that is to go with
it must not submit them again.
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
Shares of a GPU stay where they are. A job of several groups that ask for the same GPUs is
taken as one group, with the most CPU and memory of each; for others no plan is made.
Of a PodDisruptionBudget in a kubernetes: dump no more pods move than it allows
now (status.disruptionsAllowed): with stop-first in all, with hitless at a time,
so that there none or any number may. Where that costs moves a plan of the
fewest is not always found or proved.
  stop-first  all movers stop, then everything is placed
  hitless     one move after another; each target is free when its move begins,
              and an instance that moves twice counts twice
              (a cycle of targets is broken through a spare place); evidence has
              what proves that there is no order
optimal: no plan has fewer moves, proved; else lower_bound says how few it
could be. Then as few GPUs and jobs as possible; proved says which of these is
certain. Of plans that are as good by all of these the one of rank 1 by the
order of score is taken; choice has how many candidates there were, left_abs and
delta_sif_nodes. If there is no plan, why is the first of these that is true: capacity
(too few GPUs are free), hitless-order (only if all movers stop first), pinned
(there would be one if everything could move), constraint (CPU, memory, model or
topology forbids it), fragmentation; and relax has what little more would do.
--cost seconds takes the lesser of move_cost_s and remaining_s of each job;
--cost jobs is exact where running jobs have one instance, else often a bound.
Exit code 0 also where there is no plan.

--curve, with --target sif=0: for 0, 1, 2, … moves up to those of the plan the
fewest partial nodes and so N·SIF, with Φ* beside it, at up to 50 numbers of
moves, and whether fewer partial nodes are proved impossible. --svg draws it.
--time-limit is for the plan, and once more for the curve.

--commands writes the moves as text for a shell, in the order of the plan:
kubectl cordon and delete, where a controller makes the pod anew and the
scheduler chooses its node; or scontrol requeuehold, update ReqNodeList and
release, where a job starts anew as a whole. Neither is a move, as comments say
there; kubectl uncordon is a comment, for it must wait. Nothing is carried out.

Examples:
  slotwise plan --cluster c.json --queue q.jsonl --job b
  slotwise plan --cluster c.json --queue q.jsonl --job b --mode hitless \\
    --pin 'prod-*' --max-moves 20
  slotwise plan --cluster c.json --free-nodes 4
  slotwise plan --cluster c.json --free-domain --cost gpus
  slotwise plan --cluster c.json --target sif=0 --max-moves 100
  slotwise plan --cluster c.json --target sif=0 --curve --svg curve.svg
  slotwise plan --cluster kubernetes:dump.json --free-nodes 1 --commands"
);

pub(super) const EXPLAIN: &str = concat!(
    snapshot!(),
    queue!(),
    "\
The job is looked at alone, on the cluster as it is, whatever a policy may think
of it. why is capacity (too few GPUs are free on schedulable nodes),
fragmentation (enough, but they cannot be packed) or constraint; binding has the
fewest of cpu, memory, model, domain or rack, and cordon without which it would
fit, nothing moved.
Every node is in one class, by the first that is true: unschedulable,
wrong-model, too-small (for an instance, even when empty), topology (in no
domain or rack), gpu-busy (with the thousandths that it has: all free GPUs, or
for a share the most left of one device), no-cpu, no-memory; else one fits.
The nearest placement is the one that lacks the fewest instances, for within in
the best domain or rack. The plan is that of `slotwise plan`, which has its
options explained. Exit code 0 also where the job cannot start.

Examples:
  slotwise explain --cluster c.json --queue q.jsonl --job b
  slotwise explain --cluster slurm:nodes.json,jobs.json \\
    --queue slurm:nodes.json,jobs.json --job 1234 --mode hitless
  slotwise explain --cluster c.json --queue q.jsonl --job b --pin 'prod-*'"
);

pub(super) const AUDIT: &str = concat!(
    snapshot!(),
    queue!(),
    "\
The first finding is what an operator can gain. F is the share of partial
nodes; F* and Φ* are those that no packing of what runs avoids; SIF is the rest.
Φ*, SIF and the largest gangs are exact. WCC: there are 1-GPU instances enough
to fill every slot of the Anchor-Based Space, slack is how many are to spare.
Outside Σ: the slots of a node's larger instances are wider than the node
(slots-overflow), or 1-GPU instances take more than those slots leave them
(no-vacancy).
Instances that fit count GPUs on schedulable nodes: now, once Compact has run to
its end (pins kept), ideally packed (pins ignored), and within one NVLink domain
or rack. An intact domain or rack is schedulable and free as a whole; Φ* of one
packs what runs there inside it.
Every free GPU is counted once, under the first cause that is true: cordon;
model (no job allows it); cpu, memory (what is left of it on the node is too
little even at the least that any job asks a GPU); shape (no mix of instance
sizes fills them); else it is usable. The jobs are those of --queue, else those
that run.
--queue has the jobs that wait. Each is looked at alone on the cluster as it is:
pending though free are those blocked by fragmentation or constraint. For a job
of several groups that may be not proven.
--fail-above compares exactly: sif (the default) and f are quotients; n-sif,
stranded (free GPUs), outside-abs (nodes) and pending (jobs) are counts.

Examples:
  slotwise audit --cluster c.json
  slotwise audit --cluster c.json --queue q.jsonl
  slotwise audit --cluster kubernetes:dump.json --queue kubernetes:dump.json
  slotwise audit --cluster c.json --fail-above 0.05 || echo fragmented
  slotwise audit --cluster c.json --queue q.jsonl --fail-above pending=0
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

pub(super) const STRESS: &str = "\
Makes a cluster and a stream of jobs from the seed, decides every job, and
checks: the books after a full recount, what each decision says against the
ledger, the sum of all N·ΔSIF, and for the policy compass at most two avoidable
partial nodes a pool wherever the method promises it. Exit 1 if any fails.

Examples:
  slotwise stress
  slotwise stress --gpus 10000 --jobs 100000 --policy best-fit --seed 7";

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
  plan              the fewest moves, hitless, for a gang of whole nodes; chosen:
                    and the best of several such plans by score
Takes about two minutes and 2 GB.

Examples:
  slotwise bench
  slotwise bench --quick --threads 1
  slotwise bench --backend cuda --format json";
