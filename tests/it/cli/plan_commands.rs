//! `plan --commands`: text for a shell, which names pods, nodes and jobs as their scheduler does.

use std::fmt::Write;

use expect_test::expect_file;
use serde_json::{Value, json};

use super::{pipe, text};

/// A dump of nodes of 4 GPUs, and of pods: name, labels, node and GPUs.
fn kubernetes(nodes: &[&str], pods: &[(&str, Value, &str, u32)]) -> String {
    let node = |name: &&str| json!({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"nvidia.com/gpu": "4"}}});
    let pod = |&(name, ref labels, node, gpus): &(&str, Value, &str, u32)| {
        json!({"kind": "Pod",
            "metadata": {"name": name, "namespace": "ml", "labels": labels, "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": name}]},
            "spec": {"nodeName": node, "containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus.to_string()}}}]},
            "status": {"phase": "Running"}})
    };
    let items: Vec<Value> = nodes.iter().map(node).chain(pods.iter().map(pod)).collect();
    json!({"kind": "List", "items": items}).to_string()
}

/// A dump of nodes of 4 GPUs, and of jobs: number, and the nodes with the devices held there.
fn slurm(nodes: &[&str], jobs: &[(u32, &[(&str, &str)])]) -> String {
    let mut dump = String::new();
    for name in nodes {
        writeln!(dump, "NodeName={name} CPUTot=64\n   Gres=gpu:h100:4\n   State=MIXED\n   Partitions=batch\n").unwrap();
    }
    for (id, seats) in jobs {
        let hosts: Vec<&str> = seats.iter().map(|seat| seat.0).collect();
        let (hosts, n) = (hosts.join(","), seats.len());
        writeln!(
            dump,
            "JobId={id} JobName=a\n   JobState=RUNNING\n   Requeue=1 BatchFlag=1\n   Partition=batch\n   \
             ReqNodeList=(null)\n   NodeList={hosts}\n   NumNodes={n}"
        )
        .unwrap();
        for (node, gres) in *seats {
            writeln!(dump, "     Nodes={node} CPU_IDs=0 Mem=1 GRES=gpu:h100:{gres}").unwrap();
        }
        dump.push('\n');
    }
    dump
}

fn commands(source: &str, dump: &str, options: &str) -> String {
    let output = pipe(&format!("plan --cluster {source}:- --commands {options}"), dump.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

#[test]
fn pods_are_deleted_and_nodes_closed_meanwhile() {
    let gang = || json!({"training.kubeflow.org/job-name": "train"});
    let pods = [
        ("train-0", gang(), "n0", 2),
        ("train-1", gang(), "n1", 3),
        ("one", json!({}), "n2", 1),
        ("big", json!({}), "n3", 3),
    ];
    let dump = kubernetes(&["n0", "n1", "n2", "n3"], &pods);
    let told = commands("kubernetes", &dump, "--free-nodes 1");
    expect_file!["../../golden/plan-commands-kubernetes.txt"].assert_eq(&told);
    let mut commands = told.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    assert_eq!(commands.next(), Some("kubectl cordon node/n2"));
    assert_eq!(commands.next(), Some("kubectl delete --namespace=ml pod/one"));
    assert_eq!(commands.next(), None);
}

#[test]
fn jobs_are_requeued_as_a_whole_and_told_all_their_nodes() {
    let nodes = ["n0", "n1", "n2", "n3"];
    let jobs: [(u32, &[(&str, &str)]); 3] = [
        (7, &[("n0", "3(IDX:0-2)"), ("n1", "3(IDX:0-2)")]),
        (8, &[("n2", "2(IDX:0-1)")]),
        (9, &[("n3", "2(IDX:0,2)")]),
    ];
    let dump = slurm(&nodes, &jobs);
    let told = commands("slurm", &dump, "--free-nodes 1");
    expect_file!["../../golden/plan-commands-slurm.txt"].assert_eq(&told);
    // 8 and 9 are alike, but both nodes of a job are told where only one instance of it moves.
    let jobs: [(u32, &[(&str, &str)]); 2] =
        [(7, &[("n0", "1(IDX:0)"), ("n1", "3(IDX:0-2)")]), (8, &[("n2", "2(IDX:0-1)")])];
    let told = commands("slurm", &slurm(&nodes[..3], &jobs), "--free-nodes 1 --mode hitless");
    assert!(
        told.contains("scontrol requeuehold 7\nscontrol update JobId=7 ReqNodeList=n2,n1\nscontrol release 7\n"),
        "{told}"
    );
    // Two instances of a job on one node are nothing that Slurm can be told.
    let jobs: [(u32, &[(&str, &str)]); 1] = [(7, &[("n0", "2(IDX:0-1)"), ("n1", "2(IDX:0-1)")])];
    let told = commands("slurm", &slurm(&nodes[..2], &jobs), "--free-nodes 1");
    assert!(told.contains("scontrol requeuehold 7\n") && !told.contains("ReqNodeList=n"), "{told}");
    assert!(told.contains("# the plan has two instances of job 7 on one node"), "{told}");
}

#[test]
fn where_nothing_moves_all_lines_are_comments() {
    let dump = kubernetes(&["n0", "n1"], &[("a", json!({}), "n0", 4), ("b", json!({}), "n1", 1)]);
    for (options, part) in
        [("--free-nodes 1", "There is no plan"), ("--target sif=0", "0 moves lead to 1 partial node")]
    {
        let told = commands("kubernetes", &dump, options);
        assert!(told.contains(part) && told.lines().all(|line| line.is_empty() || line.starts_with('#')), "{told}");
    }
}

#[test]
fn who_tells_no_handles_gets_no_commands() {
    for source in ["plan-cluster.json", "synthetic:80"] {
        let output = super::run(&format!("plan --cluster {source} --free-nodes 1 --commands"));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        let told = text(&output.stderr);
        assert!(told.contains(source) && told.contains("kubernetes:FILE or slurm:FILE"), "{told}");
    }
}

/// A shell in which `kubectl` prints its words, one a line, gets every name back, whatever is in it.
#[cfg(unix)]
#[test]
fn names_are_safe_in_a_shell() {
    let (pod, node) = ("it's; echo $(echo gone) `echo` \"x\" *", "-n 2\necho gone");
    let dump = kubernetes(&[node, "n1"], &[(pod, json!({}), node, 1), ("b", json!({}), "n1", 3)]);
    let told = commands("kubernetes", &dump, "--free-nodes 1 --pin ml/b");
    let script = format!("kubectl() {{ printf '<%s>\\n' \"$@\"; }}\n{told}");
    let output = std::process::Command::new("sh").args(["-euc", &script]).output().unwrap();
    assert!(output.status.success(), "{script}\n{}", text(&output.stderr));
    let expected = format!("<cordon>\n<node/{node}>\n<delete>\n<--namespace=ml>\n<pod/{pod}>\n");
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn labels_of_the_users_own_say_where_nodes_of_a_dump_are() {
    let node = |name: &str, rack: &str| {
        json!({"kind": "Node", "metadata": {"name": name, "labels": {"a.b/rack": rack}},
            "status": {"allocatable": {"nvidia.com/gpu": "4"}}})
    };
    let mut dump: Value =
        serde_json::from_str(&kubernetes(&[], &[("one", json!({}), "n0", 1), ("two", json!({}), "n2", 3)])).unwrap();
    let nodes = [node("n0", "r0"), node("n1", "r0"), node("n2", "r1"), node("n3", "r1")];
    dump["items"].as_array_mut().unwrap().splice(0..0, nodes);
    let dump = dump.to_string();
    let told = commands("kubernetes", &dump, "--topology-keys a.b/rack --free-rack");
    assert!(told.contains("kubectl delete --namespace=ml pod/one"), "{told}");
    let without = pipe("plan --cluster kubernetes:- --free-rack", dump.as_bytes());
    assert_eq!(without.status.code(), Some(2), "{}", text(&without.stderr));
    let elsewhere = pipe("plan --cluster synthetic:8 --topology-keys a.b/rack --free-nodes 1", b"");
    let expected = "--topology-keys: found the cluster \"synthetic:8\", expected kubernetes:FILE";
    assert!(elsewhere.status.code() == Some(2) && text(&elsewhere.stderr).contains(expected));
}
