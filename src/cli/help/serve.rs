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
                        curve:true, time_limit_s; and budgets:[…], as below}
  POST /v1/explain     {\"version\":…, \"job\":{…}}, and mode, pin, budgets,
                        time_limit_s
  GET  /v1/audit, POST {\"version\":…, \"queue\":[…]}
  POST /v1/extender/filter, prioritize, preempt, bind: kube-scheduler's
  POST /v1/volcano/prioritize: Volcano's
  GET  /healthz, /readyz
  GET  /metrics        for Prometheus
  GET  /               a page: the map of the cluster, what was decided, latency
version and id may be left out. start holds an element of a snapshot's running, or
a job of several groups, each with its instances, which end ends as a whole:
  {\"start\":{\"job\":\"train\",\"within\":\"rack\",\"groups\":[
    {\"gpus_per_instance\":0,\"instances\":[{\"node\":\"n0\"}]},
    {\"gpus_per_instance\":8,\"instances\":[{\"node\":\"n0\"},{\"node\":\"n1\"}]}]}}
moves holds {\"job\",\"instance\",\"node\",\"gpus\"}, or what plan has as steps and
place as migrations, which say to for node; from is checked. The steps of a hitless
plan are an edit each, those of another are one.
queue, candidates and job hold the objects that queue and candidate files have a
line each; plan, explain and audit answer as the commands do. No snapshot has
disruption budgets, so who asks for a plan states them; jobs are named as by pin:
  \"budgets\":[{\"name\":\"web\",\"allowed\":1,\"jobs\":[\"web-*\"]}]
A gang whose parts start one by one, as pods do, is told part by part, each a job of
one instance: first that it waits, with how many parts it takes, then that it runs.
  {\"wait\":{\"job\":\"g-0\",\"gpus\":8,\"gang\":\"g\",\"gang_size\":2}}
  {\"start\":{\"job\":\"g-0\",\"gpus_per_instance\":8,\"gang\":\"g\",
    \"instances\":[{\"node\":\"n3\"}]}}
Only the extender goes by it: no part gets a place before gang_size of them run or
wait, all get places that go together, and what a gang lacks of which some parts
run goes to no other. Jobs that start as a whole, as by place, need no gang. The header
slotwise-deadline-ms says how long a caller waits. The same calls go over gRPC, in
packed columns: --print proto defines them. Errors are
{\"error\":\"stale\",\"message\":\"…\"}: no-cluster and stale 409, bad-input 400,
refused 422, unknown-caller 401, too-large 413, busy 429, late 504, closing 503.
A change that is late may have been made: ask again with the same id.

  slotwise serve --cluster synthetic:10000 &
  curl -s localhost:8888/v1/place -d '{\"queue\":[{\"job\":\"b\",
    \"instances\":4,\"gpus_per_instance\":8}]}'";
