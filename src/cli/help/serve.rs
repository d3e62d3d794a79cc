//! The help of `serve`.

pub(in super::super) const SERVE: &str = "\
What is kept is a cache: after a restart a client puts the snapshot again. Every
answer has the version that it is about, EPOCH-GENERATION; a call that names
another version is refused with 409 and the current one. Edits are all done or
none; a change with an id is made once, however often it is sent.
  PUT  /v1/cluster     a snapshot, as --cluster reads it
  GET  /v1/cluster     what is here now
  GET  /v1/version
  POST /v1/edits       {\"version\":…, \"id\":\"…\", \"edits\":[{\"start\":{…}}, {\"end\":\"a\"},
                        {\"moves\":[…]}, {\"cordon\":\"n\"}, {\"uncordon\":\"n\"},
                        {\"gang\":{\"gang\":\"g\",\"size\":4,\"within\":\"rack\"}}]}
  POST /v1/score       {\"version\":…, \"queue\":[…], \"candidates\":[…]}
  POST /v1/place       {\"version\":…, \"id\":\"…\", \"queue\":[…], \"policy\":\"compass\",
                        \"commit\":false}
  POST /v1/plan        {\"version\":…, \"job\":{…} or \"free_nodes\":2, \"free_domain\":true,
                        \"free_rack\":true, \"target\":\"sif=0\", and as plan has them:
                        mode, cost, max_moves, max_jobs_disturbed, pin:[…],
                        time_limit_s}
  POST /v1/explain     {\"version\":…, \"job\":{…}}, and mode, pin, time_limit_s
  GET  /v1/audit, POST {\"version\":…, \"queue\":[…]}
  POST /v1/extender/filter, prioritize, preempt, bind: kube-scheduler's
  POST /v1/volcano/prioritize: Volcano's
  GET  /healthz, /readyz
  GET  /metrics        for Prometheus
  GET  /               a page: the map of the cluster, what was decided, latency
version and id may be left out. start holds an element of a snapshot's running;
queue, candidates and job hold the objects that queue and candidate files have a
line each; plan, explain and audit answer as the commands do. The header
slotwise-deadline-ms says how long a caller waits. The same calls go over gRPC, in
packed columns: --print proto defines them. Errors are
{\"error\":\"stale\",\"message\":\"…\"}: no-cluster and stale 409, bad-input 400,
refused 422, unknown-caller 401, too-large 413, busy 429, late 504, closing 503.
A change that is late may have been made: ask again with the same id.

  slotwise serve --cluster synthetic:10000 &
  curl -s localhost:8888/v1/place -d '{\"queue\":[{\"job\":\"b\",
    \"instances\":4,\"gpus_per_instance\":8}]}'";
