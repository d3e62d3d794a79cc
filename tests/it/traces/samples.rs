//! Small samples of every trace, made up, with a row for each of its traps.

pub(crate) const PODS: &str = "\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,6000,12288,1,460,,LS,Running,427,1000,430
p1,8000,4096,8,1000,V100M32|V100M16|V100M32,BE,Succeeded,100,700,120
p2,1000,1024,0,0,,LS,Failed,500,500,500
p3,1000,1024,2,1000,T4,BE,Pending,400,900,
p4,1000,1024,1,1000,,LS,Running,100,300,100
p4,1000,1024,1,1000,,LS,Running,100,300,100
p5,1000,1024,1,1000,,LS,Failed,100,300,400
p6,1000,1024,17,1000,,LS,Failed,100,300,100
p7,1000,1024,1,1000,,LS,Failed,,300,100
p8,1000,1024,1,1000,,LS,Failed,100,,
p9,-1,1024,1,1000,,LS,Failed,100,300,100
";

pub(crate) const SPOT: &str = "\
job_type,job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,more
HP,j0,o1,A100,12,1,94,5,3600,
Spot,j1,o2,,1.5,8.0,2,0,59.5,
Spot,j2,o2,A10,4,0.5,1,1,60,
Odd,j3,o2,A10,4,0,3,1,60,
HP,j4,o2,A10,4,1,0,1,60,
HP,j5,o2,A10,4,17,1,1,60,
HP,j6,o2,A10,4,1,1,1,-60,
HP,j7,o2,A10,4,1,1,1,,
HP,j8,o2,A10,4,-2,1,1,1,
HP,j9,o2,A10,9999999,1,1,1,1,
";

pub(crate) const PHILLY: &str = "\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.5,16,2951.0,6214e9
2017-10-09 06:13:03,1,12,1,6214e9
2017-10-09 06:13:03,-1,8,1,6214e9
2017-10-09 06:13:03,,8,1,6214e9
2017-10-09 06:13:03,1,0,1,6214e9
,1,1,1,6214e9
";

pub(crate) const PHILLY_LOG: &str = r#" [
{"status": "Pass", "vc": "v1", "jobid": "a_1", "user": "u1", "submitted_time": "2017-10-09 07:00:00", "attempts": [
  {"start_time": "2017-10-09 07:00:10", "end_time": "2017-10-09 07:00:20",
   "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu7"]}]},
  {"start_time": "2017-10-09 07:01:00", "end_time": "2017-10-09 07:01:50", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
{"status": "Killed", "vc": "v1", "jobid": "a_2", "user": null, "submitted_time": "2017-10-09 06:59:00", "extra": [1],
 "attempts": [{"start_time": "2017-10-09 07:00:10", "end_time": null, "detail": [
   {"ip": "m1", "gpus": ["0", "1", "2", "3", "4", "5", "6", "7"]}, {"ip": "m2", "gpus": ["0", "1", "2", "3", "4", "5", "6", "7"]}]}]},
{"status": "Failed", "jobid": "a_3", "submitted_time": "2017-10-09 07:00:00", "attempts": []},
{"status": "Killed", "jobid": "a_4", "submitted_time": "2017-10-09 07:00:00", "attempts": [
  {"start_time": "None", "end_time": "", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
{"status": "Pass", "jobid": "a_5", "submitted_time": null, "attempts": [
  {"start_time": "2017-10-09 07:00:10", "end_time": "2017-10-09 07:00:20", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
{"status": "Pass", "jobid": "a_1", "submitted_time": "2017-10-09 07:00:00", "attempts": [
  {"start_time": "2017-10-09 07:00:10", "end_time": "2017-10-09 07:00:20", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
{"status": "Pass", "jobid": "a_6", "submitted_time": "2017-10-09 07:00:00", "attempts": [
  {"start_time": "2017-10-09 07:00:30", "end_time": "2017-10-09 07:00:20", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]}
]"#;

pub(crate) const HELIOS: &str = "\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,u1,vcA,16,64,4,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:01:20,60,10
2,u1,vcA,0,10,3,FAILED,2020-04-01 00:00:00,2020-04-01 00:00:20,2020-04-01 00:01:20,60,20
3,u2,vcB,16,8,3,TIMEOUT,2020-04-01 00:00:10,2020-04-01 00:00:05,2020-04-01 00:01:20,99,0
4,u2,vcB,12,8,5,CANCELLED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:01:20,60,10
5,u2,vcB,1,8,1,CANCELLED,2020-04-01 00:00:10,,2020-04-01 00:01:20,0,70
6,u2,vcB,1,8,1,NODE_FAIL,2020-04-01 00:00:10,2020-04-01 00:00:20,None,60,10
7,u2,vcB,1,8,1,STRANGE,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:00:20,0,10
8,u2,vcB,1.5,8,1,FAILED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:00:20,0,10
9,u2,vcB,,8,1,FAILED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:00:20,0,10
,u2,vcB,1,8,1,FAILED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 00:00:20,0,10
";

pub(crate) const SEREN: &str = "\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
5778432,u4,1,8,120,Other,COMPLETED,2023-03-01 08:00:00+08:00,2023-03-01 08:00:03+08:00,2023-03-01 08:02:00+08:00,117,3,936
5778433,u4,2,9,1,Eval,FAILED,2023-03-01 00:30:00+00:00,2023-03-01 08:30:03+08:00,2023-03-01 08:31:03+08:00,60,3,540
";

pub(crate) const KALOS: &str = "\
job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time
d1,u1,4,32,480,1000.0,100.0,Pretrain,COMPLETED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,,2023-05-17 11:01:16+00:00,18.0,10.0,576.0
d2,u1,1,1,4,10.0,,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:10+00:00,2023-05-17 11:02:20+00:00,,,82.0,12.0,82.0
";

pub(crate) const SWF: &str = "\
; Version: 2.2
;  UnixStartTime: 1000000
; MaxProcs: 128

  1 100 5 60.4 64 -1 -1 128 -1 -1 1 3 1 -1 2 -1 -1 -1
2 50 5 0 64 -1 -1 -1 -1 -1 0 3 1 -1 2 -1 -1 -1
3 50 5 -1 64 -1 -1 64 -1 -1 5 3 1 -1 2 -1 -1 -1
4 50 5 -1 64 -1 -1 64 -1 -1 1 3 1 -1 2 -1 -1 -1
5 50 5 10 65 -1 -1 -1 -1 -1 1 3 1 -1 2 -1 -1 -1
6 50 5 10 -1 -1 -1 -1 -1 -1 1 3 1 -1 2 -1 -1 -1
1 -1 5 10 64 -1 -1 128 -1 -1 2 3 1 -1 2 -1 -1 -1
7 -1 5 10 64 -1 -1 128 -1 -1 1 3 1 -1 2 -1 -1 -1
8 50 5 10 96 -1 -1 -1 -1 -1 1 -1 1 -1 -1 -1 -1 -1
9 50 5 10 96.5 -1 -1 -1 -1 -1 1 3 1 -1 2 -1 -1 -1
";

pub(crate) const SACCT: &str = "\
JobIDRaw|User|Account|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|ReqTRES|AllocTRES|NodeList|Reservation
10|al|acc|gpu|normal|2024-01-02T00:00:10|x|2024-01-02T00:00:20|2024-01-02T00:01:20|60|60|COMPLETED|2|billing=8,cpu=64,gres/gpu:h100=8,gres/gpu=8,mem=1T,node=2|billing=8,cpu=64,gres/gpu:h100=8,gres/gpu=8,mem=1T,node=2|n[1-2]|\"r
10.batch|||||2024-01-02T00:00:10|x|2024-01-02T00:00:20|2024-01-02T00:01:20|60||COMPLETED|1||cpu=32,gres/gpu=4|n1|
11|bo|acc|gpu|normal|2024-01-02T00:00:00|x|2024-01-02T00:00:20|Unknown|3000|60|RUNNING|1|cpu=8,gres/gpu=1|cpu=8,gres/gpu:a100=1|n1|
12|bo|acc|gpu|normal|2024-01-02T00:00:30|x|Unknown|Unknown|0|60|PENDING|1|cpu=8,gres/gpu=1||None assigned|
13|bo|acc|gpu|normal|2024-01-02T00:00:30|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|CANCELLED by 1000|1|cpu=8|cpu=8|n1|
14|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|REQUEUED|1|gres/gpu=1|gres/gpu=1|n1|
14|bo|acc|gpu|normal|2024-01-02T00:00:50|x|2024-01-02T00:01:40|2024-01-02T00:03:20|100|60|COMPLETED|1|gres/gpu=1|gres/gpu=1|n1|
15|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|FAILED|1|cpu=1,gres/shard=2|cpu=1,gres/shard=2|n1|
16|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|FAILED|1|gres/gpu:a=1,gres/gpu:b=1|gres/gpu=2|n1|
17|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|FAILED|2|gres/gpu:a=9|gres/gpu:a=9|n1|
18|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-02T00:00:40|2024-01-02T00:00:50|10|60|CANCELLED by 0|3|gres/gpu=16||n1|
19|bo|acc|gpu|normal|2024-01-02T00:00:40|x|2024-01-03T00:00:40|Unknown|0|60|PENDING|1|gres/gpu=1||n1|
";
