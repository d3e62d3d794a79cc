//! What stands below the options in a long help.

/// The most GPUs or jobs that are made.
pub(super) const MOST: u64 = 100_000_000;

pub(super) const PROGRAM: &str = "\
Try it without any file:
  slotwise audit --cluster synthetic:10000
  slotwise place --cluster synthetic:10000 --queue synthetic:2000 --format table

Exit codes: 0 = ran (blocked jobs and infeasible candidates included), 1 = failed or a mismatch was
found, 2 = bad input or usage, 3 = a threshold that you set was crossed.
Results go to standard output or --out; notes, errors and progress to standard error.";

pub(super) const SCORE: &str = "\
Every candidate is judged on the cluster as it is, alone. A candidate is a line of JSON:
  {\"job\":\"b\",\"candidate\":\"c1\",\"place\":[{\"node\":\"n0\",\"gpus\":[0,1]},{\"node\":\"n1\"}],
   \"migrate\":[{\"job\":\"a\",\"instance\":0,\"node\":\"n3\"}]}
Without \"gpus\" it takes the lowest free ones. Rank 1 is the best candidate of a job: fewest nodes that
leave the Anchor-Based Space, then least N·ΔSIF, moves, moved GPUs, empty nodes opened, room left over,
racks, domains, and the first in the file.
Of several reasons why a candidate is infeasible the first of these is told: unknown-job, unknown-node,
not-running, not-migratable, wrong-count, bad-index, unavailable-gpu, unschedulable, wrong-model,
topology, gpu-busy, no-cpu, no-memory.

Examples:
  slotwise score --cluster cluster.json --queue queue.jsonl --candidates candidates.jsonl
  zcat candidates.gz | slotwise score --cluster c.json.gz --queue q.jsonl --candidates - --format table";

pub(super) const PLACE: &str = "\
A job is a line of JSON, in the order of priority; {\"remove\":\"b\"} ends a running one:
  {\"job\":\"b\",\"instances\":4,\"gpus_per_instance\":8,\"models\":[\"H100\"],\"within\":\"rack\"}
A blocked job says why: capacity (not enough free GPUs), fragmentation (enough, but they cannot be
packed), constraint (CPU, memory, model or topology), space (the policy's own space refuses it, or the
moves that it would need are not allowed).

Examples:
  slotwise place --cluster cluster.json --queue queue.jsonl
  slotwise place --cluster cluster.json --queue queue.jsonl --policy best-fit --format table
  slotwise place --cluster cluster.json --queue - --compact when-blocked --snapshot-out after.json
  slotwise place --cluster synthetic:10000 --queue philly:cluster_job_log --load 95 --format table";

pub(super) const AUDIT: &str = "\
The first finding is what an operator can gain. F is the share of partial nodes; Φ* counts those that
no packing of what runs avoids; SIF is the rest. Φ*, SIF and the largest gangs are exact.

Examples:
  slotwise audit --cluster cluster.json
  slotwise audit --cluster cluster.json --format json --max-sif-nodes 10 || echo fragmented
  slotwise audit --cluster alibaba-2026:pods.csv";

pub(super) const PHI_STAR: &str = "\
Φ* is the least number of partial nodes over all packings of a demand, exact for every demand. Counts
may be up to 2^40.

Examples:
  slotwise phi-star --demand 1:10,3:4,5:2
  slotwise phi-star --capacity 16 --demand 9:1000000,5:3 --format json";

pub(super) const DEVICES: &str = "\
Examples:
  slotwise devices";

pub(super) const GENERATE_CLUSTER: &str = "\
Examples:
  slotwise generate cluster --gpus 10000 --busy 90 --scattered --seed 7 --out cluster.json
  slotwise generate cluster --gpus 800 | slotwise audit --cluster -";

pub(super) const GENERATE_QUEUE: &str = "\
Jobs arrive and leave so that they ask for --load percent of --gpus at a time.

Examples:
  slotwise generate queue --jobs 5000 --gpus 10000 --seed 7 --out queue.jsonl
  slotwise generate queue --mix hard --no-removals --within-rack 20";

pub(super) const STRESS: &str = "\
Makes a cluster and a stream of jobs from the seed, decides every job, and checks: the books after a
full recount, what each decision says against the ledger, the sum of all N·ΔSIF, and for the policy
compass at most two avoidable partial nodes a pool wherever the method promises it. Exit 1 if any fails.

Examples:
  slotwise stress
  slotwise stress --gpus 10000 --jobs 100000 --policy best-fit --mix venus --seed 7";

pub(super) const VERIFY: &str = "\
Compares every kernel of a backend with the serial reference on clusters and candidates made from the
seed, bit by bit. One check plants a fault, and must find it.

Examples:
  slotwise verify
  slotwise verify --backend cpu --rounds 1000 --seed 7";

pub(super) const BENCH: &str = "\
The limit of a row is a plain read of the same bytes, by as many threads, in the same run.

Examples:
  slotwise bench --format table
  slotwise bench --quick --threads 1";
