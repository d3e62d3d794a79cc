//! `--job`: a job goes by its name, or by what its owner calls it; where it is none, the error says what is near.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{pipe, run, text};

/// A dump of two nodes of 4 GPUs, and of jobs that wait: number, what it is called, and the tasks of an array.
fn slurm(jobs: &[(u32, &str, &str)]) -> String {
    let mut dump = String::new();
    for name in ["n0", "n1"] {
        writeln!(dump, "NodeName={name} CPUTot=64\n   Gres=gpu:h100:4\n   State=IDLE\n   Partitions=batch\n").unwrap();
    }
    for (id, name, tasks) in jobs {
        let tasks = if tasks.is_empty() { String::new() } else { format!(" ArrayTaskId={tasks}") };
        writeln!(
            dump,
            "JobId={id}{tasks} JobName={name}\n   JobState=PENDING Reason=Resources\n   Requeue=1 BatchFlag=1\n   \
             Partition=batch\n   NumNodes=1 NumTasks=1\n   TresPerNode=gres:gpu:2\n"
        )
        .unwrap();
    }
    dump
}

/// The same dump is the cluster and the queue.
fn asked(program: &str, dump: &str, job: &str) -> Result<String, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), dump).unwrap();
    let source = format!("{program}:{}", file.path().display());
    let output = run(&format!("plan --quiet --cluster {source} --queue {source} --job {job}"));
    if output.status.code() == Some(2) {
        return Err(text(&output.stderr).trim_end().replace(&source, "DUMP"));
    }
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    Ok(answer["job"].as_str().unwrap().to_owned())
}

#[test]
fn what_an_owner_calls_a_job_names_it_where_no_other_is_called_so() {
    let dump = slurm(&[(11, "train", ""), (12, "eval", ""), (13, "eval", ""), (14, "sweep", "1-4"), (15, "11", "")]);
    let told = |job: &str| asked("slurm", &dump, job);
    assert_eq!(told("train"), Ok("11".to_owned()));
    assert_eq!(told("14_2"), Ok("14_2".to_owned()));
    // The name that a job has here comes first.
    assert_eq!(told("11"), Ok("11".to_owned()));
    for (job, expected) in [
        ("eval", "found \"eval\", which 2 jobs of DUMP are called, expected one of 12, 13"),
        ("sweep", "found \"sweep\", which 4 jobs of DUMP are called, expected one of 14_1, 14_2, 14_3, …"),
        ("trian", "found \"trian\", expected a job that DUMP submits, such as train"),
        ("14", "found \"14\", expected a job that DUMP submits, such as 11, 12, 13"),
        ("nobody", "found \"nobody\", expected a job that DUMP submits"),
    ] {
        assert_eq!(told(job), Err(format!("slotwise: --job: {expected}")));
    }
}

#[test]
fn a_pod_needs_no_namespace_where_no_other_is_called_so() {
    let node = json!({"kind": "Node", "metadata": {"name": "n0"}, "status": {"allocatable": {"nvidia.com/gpu": "4"}}});
    let pod = |space: &str, name: &str| {
        json!({"kind": "Pod", "metadata": {"name": name, "namespace": space},
            "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}, "status": {"phase": "Pending"}})
    };
    let pods = [pod("ml", "train"), pod("ml", "eval"), pod("web", "eval")];
    let items: Vec<Value> = std::iter::once(node).chain(pods).collect();
    let dump = json!({"kind": "List", "items": items}).to_string();
    let told = |job: &str| asked("kubernetes", &dump, job);
    assert_eq!(told("train"), Ok("ml/train".to_owned()));
    assert_eq!(told("web/eval"), Ok("web/eval".to_owned()));
    assert!(told("eval").unwrap_err().ends_with("expected one of ml/eval, web/eval"));
}

#[test]
fn a_queue_of_our_own_says_what_is_near() {
    let queue = "{\"job\":\"train-a\",\"instances\":1,\"gpus_per_instance\":1}\n{\"job\":\"train-b\",\"instances\":1,\"gpus_per_instance\":1}\n";
    let output = pipe("explain --cluster synthetic:16 --queue - --job train", queue.as_bytes());
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(told.ends_with("found \"train\", expected a job that - submits, such as train-a, train-b\n"), "{told}");
}
