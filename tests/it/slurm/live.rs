//! A Slurm that runs beside the test, started by `tests/slurm/with-cluster`: every view of it says what its daemons gave, and
//! the commands of a plan, carried out, let the job start.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use slotwise::formats::{Import, IndexSource};

use super::{holdings, read_files, told};

/// What jobs hold: node by node, by the number of the job.
type Holdings = BTreeMap<String, BTreeMap<String, Vec<u64>>>;

/// The lines of a table, each as its words.
fn table(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm")
}

/// What was set up, and what Slurm's daemons said when they did it.
struct Truth {
    folder: PathBuf,
    /// Name, switch and GPUs of the nodes that have GPUs.
    nodes: Vec<(String, String, u64)>,
    /// The lines of the file `jobs`.
    script: Vec<Vec<String>>,
    /// The number of each job by its name.
    ids: BTreeMap<String, String>,
}

impl Truth {
    fn new(folder: PathBuf) -> Self {
        let count = |kind: &str| kind.rsplit(':').next().unwrap().parse::<u64>().ok();
        let nodes = table(&scripts().join("nodes")).into_iter().filter_map(|line| {
            let gpus: Option<u64> = line[6].split(',').map(count).sum();
            Some((line[0].clone(), line[3].clone(), gpus?))
        });
        let ids = table(&folder.join("ids")).into_iter().map(|line| (line[0].clone(), line[1].clone())).collect();
        Self { nodes: nodes.collect(), script: table(&scripts().join("jobs")), ids, folder }
    }

    /// The second words of the lines that begin with this one.
    fn script(&self, verb: &str) -> impl Iterator<Item = &String> {
        self.script.iter().filter(move |line| line[0] == verb).map(|line| &line[1])
    }

    /// What slurmd gave each job, and has not got back.
    fn given(&self) -> Holdings {
        let with_gpus: BTreeSet<&str> = self.nodes.iter().map(|node| node.0.as_str()).collect();
        let mut given = Holdings::new();
        for line in table(&self.folder.join("given")) {
            let [job, node, gpus] = &line[..] else { panic!("{line:?}") };
            let of_job = given.entry(job.clone()).or_default();
            if gpus == "back" {
                of_job.remove(node);
            } else if with_gpus.contains(node.as_str()) {
                let gpus = gpus.split(',').filter(|&gpu| gpu != "-").map(|gpu| gpu.parse().unwrap()).collect();
                of_job.insert(node.clone(), gpus);
            }
        }
        given.retain(|_, nodes| !nodes.is_empty());
        given
    }

    /// Compares a dump with it.
    fn check(&self, import: &Import, form: &[&str]) {
        let cluster = &import.snapshot.cluster;
        cluster.check_books().unwrap();
        assert_eq!(import.snapshot.index_source, Some(IndexSource::Stated), "{form:?}");
        assert_eq!(cluster.nodes().len(), self.nodes.len(), "{form:?}");
        let closed: Vec<&String> = self.script("drain").collect();
        for (name, switch, gpus) in &self.nodes {
            let node = cluster.node(cluster.find_node(name).unwrap());
            let told = (u64::from(node.devices()), cluster.rack_name(node.rack().unwrap()), node.schedulable());
            assert_eq!(told, (*gpus, switch.as_str(), !closed.contains(&name)), "{form:?} {name}");
        }
        assert_eq!(holdings(cluster), self.given(), "{form:?}");
    }
}

/// The files of a folder of dumps that begin so.
fn views(dump: &Path, start: &str) -> Vec<String> {
    let names = std::fs::read_dir(dump).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.filter(|name| name.starts_with(start)).collect();
    names.into_iter().collect()
}

fn output(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

/// Slurm's word for the state of a job, and its nodes.
fn state(job: &str) -> (String, String) {
    let line = output("timeout", &["20", "squeue", "-h", "-j", job, "-o", "%T %N"]);
    let (state, nodes) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
    (state.to_owned(), nodes.to_owned())
}

fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        let queue = || output("timeout", &["20", "squeue"]);
        assert!(start.elapsed() < Duration::from_secs(90), "{what} did not happen in time:\n{}", queue());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// `slotwise` about a dump and what waits in it.
fn slotwise(command: &[&str], dump: &Path) -> String {
    let file = |name: &str| dump.join(name).to_str().unwrap().to_owned();
    let source = format!("slurm:{},{}", file("nodes-scontrol.txt"), file("jobs-scontrol.txt"));
    output(env!("CARGO_BIN_EXE_slotwise"), &[command, &["--quiet", "--cluster", &source, "--queue", &source]].concat())
}

fn json(command: &[&str], dump: &Path) -> Value {
    serde_json::from_str(&slotwise(command, dump)).unwrap()
}

#[test]
#[ignore = "wants the Slurm that tests/slurm/with-cluster starts"]
fn a_running_slurm_is_imported_explained_and_given_room() {
    let Some(folder) = std::env::var_os("SLOTWISE_SLURM") else {
        println!("skipped: not started by tests/slurm/with-cluster");
        return;
    };
    let truth = Truth::new(folder.into());
    let dump = truth.folder.join("dump");
    let mut first: Option<Vec<String>> = None;
    let mut n_forms = 0;
    for nodes in views(&dump, "nodes-") {
        for jobs in views(&dump, "jobs-") {
            let form = [nodes.as_str(), jobs.as_str(), "topology.txt"];
            let import = read_files(&dump, &form);
            truth.check(&import, &form);
            let waiting: Vec<&String> = import.waiting.iter().map(|job| &job.name).collect();
            let expected: Vec<&String> = truth.script("wait").map(|name| &truth.ids[name]).collect();
            assert_eq!(waiting, expected, "{form:?}");
            let told = told(&import.snapshot.cluster);
            assert_eq!(first.get_or_insert_with(|| told.clone()), &told, "{form:?}");
            n_forms += 1;
        }
    }
    println!("{n_forms} pairs of views agree");
    assert!(n_forms >= 4);

    let job = truth.ids["whole"].as_str();
    let audit = json(&["audit"], &dump);
    assert_eq!(audit["pending"]["though_free"][0]["job"], *job, "{audit}");
    let explained = json(&["explain", "--job", "whole"], &dump);
    assert_eq!(explained["why"], "fragmentation");
    let plan = json(&["plan", "--job", job], &dump);
    assert_eq!((&plan["moves"], &plan["optimal"], &plan), (&1.into(), &true.into(), &explained["plan"]));

    // The commands, part by part; the plan says to go on when the movers are pending.
    let step = &plan["steps"][0];
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let (mover, to, place) = (word(&step["job"]), word(&step["to"]), word(&plan["place"][0]["node"]));
    let commands = slotwise(&["plan", "--job", job, "--commands"], &dump);
    for part in commands.split("\n\n") {
        output("bash", &["-euc", part]);
        if part.contains("requeuehold") {
            wait_until("the end of the mover", || state(&mover).0 == "PENDING");
        }
    }
    let both = [(job, place), (&*mover, to)].map(|(job, node)| (job, ("RUNNING".to_owned(), node)));
    wait_until("the start of both", || both.iter().all(|(job, expected)| state(job) == *expected));

    let after = truth.folder.join("after");
    output(scripts().join("dump").to_str().unwrap(), &[after.to_str().unwrap()]);
    let form = ["nodes-scontrol.txt", "jobs-scontrol.txt", "topology.txt"];
    truth.check(&read_files(&after, &form), &form);
    let audit = json(&["audit"], &after);
    assert_eq!((&audit["partial"], &audit["n_sif"]), (&plan["partial"]["after"], &plan["n_sif"]["after"]));
    assert!(!audit["pending"].to_string().contains(&format!("{job:?}")), "{audit}");
}
