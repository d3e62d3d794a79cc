//! The help of `import`.

pub(in super::super) const IMPORT_KUBERNETES: &str = "\
Reads what kubectl prints, in one file or in several (nodes and pods apart), as
JSON or YAML; also NodeList and PodList of the API server, and snapshot.json of
KAI:
  kubectl get nodes,pods,pdb -A -o json > dump.json

Pods with GPUs are jobs by their gang: schedulingGroup, else the annotations or
labels of Volcano, KAI, coscheduling, Kueue, JobSet, LeaderWorkerSet, Kubeflow,
Ray and Job, else their owner, if that is none that makes pods one by one. A pod
is moved unless it has no owner that would make it again, ends, is of a DaemonSet,
is marked as not safe to evict, or its PodDisruptionBudget allows no disruption
now (pdb may be left out). Pods without GPUs hold CPU and memory,
NODE/without-gpus, but for those of a gang of which others have GPUs.
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
nodes. A gang whose pods are unlike is a job of several groups; pods of it that
need no GPU are left out where the dump has nodes without GPUs. Affinity and
spread between pods are not kept.

Any command reads a dump itself, its files between commas:
  slotwise audit --cluster kubernetes:dump.json
  slotwise place --cluster kubernetes:nodes.yaml,pods.yaml \\
    --queue kubernetes:nodes.yaml,pods.yaml

Examples:
  slotwise import kubernetes dump.json --out c.json --queue-out q.jsonl
  kubectl get nodes,pods -A -o yaml | slotwise import kubernetes - --out c.json
  slotwise import kubernetes dump.json --topology-keys example.com/row,example.com/rack";

pub(in super::super) const IMPORT_SLURM: &str = "\
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
may be requeued, neither names nodes nor excludes open ones, and has no
reservation. What a node holds beyond its listed jobs is held by a job
NODE/unknown, devices of which somebody has shards by NODE/shards; neither is
moved. Left out, and counted on standard error: nodes without GPUs, with slices of
GPUs or more than 16; of the waiting jobs those that wait for something else than
nodes (a begin time, a limit, another job), and those that a queue has no words
for (certain nodes, uneven numbers of GPUs).
Segments of a gang (--segment) are not kept: Slurm's dumps up to 24.11 do not tell
who asked for them.
index_source of the snapshot says whether all devices were known.

Any command reads a dump itself, its files between commas:
  slotwise audit --cluster slurm:nodes.json,jobs.json,topology.txt
The queue needs the nodes too, whose partitions are walls:
  slotwise place --cluster slurm:nodes.json,jobs.json \\
    --queue slurm:nodes.json,jobs.json

Examples:
  slotwise import slurm nodes.json jobs.json topology.txt --out c.json
  slotwise import slurm nodes.txt jobs.txt --out c.json --queue-out q.jsonl";
