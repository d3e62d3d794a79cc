//! Readers and writers: what they accept, what they refuse and in which words.

use std::io::Write;
use std::path::{Path, PathBuf};

use slotwise::cluster::{Cluster, gpu_indices};
use slotwise::formats::*;
use slotwise::workload::synthetic::*;
use slotwise::workload::{QueueEntry, TraceEvent, natural, replay, trace_to_queue};

mod random;

const SNAPSHOT: &str = r#"{"schema": 1, "as_of": "noon", "nodes": [
 {"name": "n0", "gpus": 8, "model": "H100", "domain": "d0", "rack": "r0", "cpu_milli": 1000, "memory_mib": 10},
 {"name": "n1", "gpus": 4, "schedulable": false, "unavailable": [3]}],
 "running": [
 {"job": "a", "gpus_per_instance": 2, "cpu_milli": 600, "models": ["H100"], "within": "rack", "remaining_s": 36,
  "move_cost_s": 8, "migratable": false, "instances": [{"node": "n0", "gpus": [4, 1]}, {"node": "n0"}]},
 {"job": "b", "gpus_per_instance": 0, "instances": [{"node": "n1", "gpus": []}, {"node": "n1"}]}]}"#;

/// All that a snapshot says, in a form that two clusters share if they say the same.
fn told(cluster: &Cluster) -> String {
    let mut text = Vec::new();
    write_cluster(cluster, None, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn read(text: &str) -> Result<Snapshot, FormatError> {
    read_cluster_from("c.json", text.as_bytes())
}

#[test]
fn a_snapshot_is_read() {
    let snapshot = read(SNAPSHOT).unwrap();
    let cluster = &snapshot.cluster;
    cluster.check_books().unwrap();
    assert_eq!(snapshot.as_of.as_deref(), Some("noon"));
    let n0 = cluster.node(cluster.find_node("n0").unwrap());
    assert_eq!(gpu_indices(n0.busy()).collect::<Vec<_>>(), [0, 1, 2, 4]);
    let n1 = cluster.node(cluster.find_node("n1").unwrap());
    assert_eq!((n1.devices(), n1.capacity(), n1.schedulable()), (4, 3, false));
    let a = cluster.find_job("a").unwrap();
    assert!(!cluster.job(a).migratable());
    assert_eq!(cluster.job_times(a).remaining_s, Some(36));
    let note = &snapshot.notes[0];
    assert_eq!(note.place, "nodes[0]");
    assert!(note.text.contains("1200 of 1000 milli-cores"), "{note}");
}

#[test]
fn running_may_come_before_nodes_and_null_is_absent() {
    let text = r#"{"running": [{"job": "a", "models": null, "gpus_per_instance": 1, "instances": [{"gpus": null, "node": "n"}]}],
        "nodes": [{"gpus": 2, "rack": null, "name": "n"}], "schema": null}"#;
    assert_eq!(read(text).unwrap().cluster.job_ids().len(), 1);
    let text = text.replace("null, \"node\": \"n\"", "[2], \"node\": \"n\"");
    let error = read(&text).unwrap_err().to_string();
    assert_eq!(
        error,
        "c.json: running[0].instances[0].gpus[0]: instance 0 of job \"a\" holds GPU 2 of node \"n\", which has 2"
    );
}

#[test]
fn a_bad_snapshot_is_refused_with_its_place() {
    let node = |rest: &str| format!(r#"{{"nodes": [{{"name": "n", "gpus": 8}}, {{"name": "m", {rest}}}]}}"#);
    let job = |rest: &str| {
        format!(
            r#"{{"nodes": [{{"name": "n", "gpus": 4, "unavailable": [3]}}], "running": [
            {{"job": "a", "gpus_per_instance": 1, "instances": [{{"node": "n", "gpus": [0]}}]}}, {{"job": {rest}}}]}}"#
        )
    };
    let cases = [
        (node(r#""gpus": 0"#), "nodes[1].gpus: found integer `0`, expected an integer from 1 to 16"),
        (node(r#""gpus": 17"#), "nodes[1].gpus: found integer `17`, expected"),
        (node(r#""gpus": -1"#), "nodes[1].gpus: found integer `-1`, expected"),
        (node(r#""gpus": 1.5"#), "nodes[1].gpus: found floating point `1.5`, expected"),
        (node(r#""gpus": 99999999999999999999999"#), "nodes[1].gpus: found floating point"),
        (node(r#""gpus": 1e999"#), "nodes[1].gpus: number out of range"),
        (node(r#""gpus": "8""#), "nodes[1].gpus: found string \"8\", expected an integer"),
        (node(r#""gpus": null"#), "nodes[1].gpus: found null, expected an integer"),
        (node(r#""gpus": 8, "cpu_milli": 2147483647"#), "nodes[1].cpu_milli: found integer `2147483647`"),
        (node(r#""gpus": 8, "gpus": 8"#), "nodes[1]: duplicate field `gpus`"),
        (node(r#""gpus": 8, "colour": 8"#), "nodes[1]: unknown field `colour`, expected one of `name`"),
        (node(r#""gpus": 8, "unavailable": [1, 8]"#), "nodes[1].unavailable[1]: node \"m\" has no device 8"),
        (node(r#""gpus": 8, "unavailable": [1, 1]"#), "nodes[1].unavailable[1]: found index 1 twice"),
        (node(r#""gpus": 8, "unavailable": [99]"#), "nodes[1].unavailable[0]: found integer `99`"),
        (node(r#""rack": "r""#), "nodes[1]: missing field `gpus`"),
        (node(r#""gpus": 8, "rack": """#), "nodes[1].rack: found string \"\", expected a text that is not empty"),
        (node(r#""gpus": 8}, {"name": "n", "gpus": 1"#), "nodes[2].name: node \"n\" is there twice"),
        (job(r#""b", "gpus_per_instance": 17"#), "running[1].gpus_per_instance: found integer `17`"),
        (
            job(r#""a", "gpus_per_instance": 1, "instances": [{"node": "n"}]"#),
            "running[1].job: job \"a\" is there twice",
        ),
        (job(r#""b", "gpus_per_instance": 1, "instances": []"#), "running[1].instances: job \"b\" has no instances"),
        (job(r#""b", "gpus_per_instance": 1"#), "running[1]: missing field `instances`"),
        (
            job(r#""b", "gpus_per_instance": 2, "instances": [{"node": "n", "gpus": [1, 0]}]"#),
            "running[1].instances[0].gpus[1]: instance 0 of job \"b\" holds GPU 0 of node \"n\", which job \"a\" holds too",
        ),
        (
            job(r#""b", "gpus_per_instance": 1, "instances": [{"node": "n"}, {"node": "n", "gpus": [4]}]"#),
            "running[1].instances[1].gpus[0]: instance 1 of job \"b\" holds GPU 4 of node \"n\", which has 4",
        ),
        (
            job(r#""b", "gpus_per_instance": 1, "instances": [{"node": "n", "gpus": [3]}]"#),
            "running[1].instances[0].gpus[0]: instance 0 of job \"b\" holds GPU 3 of node \"n\", which is unavailable",
        ),
        (
            job(r#""b", "gpus_per_instance": 2, "instances": [{"node": "n", "gpus": []}]"#),
            "running[1].instances[0].gpus: instance 0 of job \"b\" lists 0 GPUs, expected 2",
        ),
        (
            job(r#""b", "gpus_per_instance": 1, "instances": [{"node": "x", "gpus": [1]}]"#),
            "running[1].instances[0].node: found node \"x\", expected one that is listed in nodes",
        ),
        (
            job(r#""b", "gpus_per_instance": 8, "instances": [{"node": "n"}]"#),
            "running[1].instances[0]: instance 0 of job \"b\" needs 8 GPUs, node \"n\" has 3",
        ),
        (
            job(r#""b", "gpus_per_instance": 3, "instances": [{"node": "n"}]"#),
            "running: instance 0 of job \"b\" needs 3 GPUs, node \"n\" has 2 left",
        ),
        (
            job(
                r#""b", "gpus_per_instance": 1, "gpu_milli": 600, "instances": [{"node": "n", "gpus": [1]}, {"node": "n", "gpus": [1]}]"#,
            ),
            "running[1].instances[1].gpus[0]: instance 1 of job \"b\" holds 600 thousandths of GPU 1 of node \"n\", which has 400 left",
        ),
        (
            job(r#""b", "gpus_per_instance": 1, "gpu_milli": 600, "instances": [{"node": "n", "gpus": [0]}]"#),
            "running[1].instances[0].gpus[0]: instance 0 of job \"b\" holds GPU 0 of node \"n\", which job \"a\" holds too",
        ),
        (
            job(r#""b", "gpus_per_instance": 0, "gpu_milli": 600, "instances": [{"node": "n"}]"#),
            "running[1].gpu_milli: job \"b\" asks 600 thousandths of each of 0 GPUs",
        ),
        (
            job(r#""b", "gpus_per_instance": 1, "models": [], "instances": [{"node": "n"}]"#),
            "running[1].models: found an empty list, expected at least one model, or no list",
        ),
        (
            job(r#""b", "gpus_per_instance": 1, "within": "room", "instances": [{"node": "n"}]"#),
            "running[1].within: found string \"room\", expected \"domain\" or \"rack\"",
        ),
        (r#"{"schema": 2, "nodes": []}"#.into(), "schema: found integer `2`, expected an integer from 1 to 1"),
        (r#"{"running": []}"#.into(), "missing field `nodes`"),
        (r#"{"nodes": []} x"#.into(), "trailing characters"),
        (r#"{"nodes": {}}"#.into(), "nodes: found map, expected a list of nodes"),
        ("[]".into(), "found sequence, expected an object that is a cluster snapshot"),
        (SNAPSHOT[..200].into(), "nodes[1]"),
        ("".into(), "EOF while parsing"),
        ("\u{1}".into(), "expected value"),
    ];
    for (text, expected) in cases {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.starts_with("c.json:") && error.contains(expected), "{text}\n{error}\n{expected}");
        assert_eq!(error.lines().count(), 1);
    }
}

fn queue(text: &str) -> Result<(Vec<QueueEntry>, Cluster), FormatError> {
    let mut cluster = read(SNAPSHOT).unwrap().cluster;
    let (queue, _) = read_queue_from("q.jsonl", text.as_bytes(), &mut cluster)?;
    Ok((queue, cluster))
}

#[test]
fn a_queue_is_read_and_written() {
    let text = "{\"job\":\"x\",\"instances\":2,\"gpus_per_instance\":16,\"cpu_milli\":5,\"migratable\":false,\"models\":[\"H100\",\"B\"],\"within\":\"rack\"}\n\
        \n{\"remove\":\"a\"}\r\n{\"remove\":\"x\"}";
    let (entries, cluster) = queue(text).unwrap();
    let mut out = Vec::new();
    write_queue(&cluster, &entries, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), text.replace("\n\n", "\n").replace('\r', "") + "\n");
    let share = "{\"job\":\"s\",\"instances\":3,\"gpus_per_instance\":1,\"gpu_milli\":250}\n";
    let (entries, cluster) = queue(share).unwrap();
    let mut out = Vec::new();
    write_queue(&cluster, &entries, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), share);
    assert_eq!(queue(" \n\n").unwrap().0, []);
}

#[test]
fn a_job_of_groups_is_read_and_written() {
    let text = "{\"job\":\"x\",\"groups\":[{\"instances\":1,\"gpus_per_instance\":0,\"cpu_milli\":4000},{\"instances\":4,\"gpus_per_instance\":8,\"memory_mib\":7,\"models\":[\"B\",\"H100\"]},{\"instances\":2,\"gpus_per_instance\":1,\"gpu_milli\":250}],\"migratable\":false,\"within\":\"rack\"}\n\
        {\"remove\":\"a\"}\n{\"remove\":\"x\"}\n";
    let (entries, cluster) = queue(text).unwrap();
    let job = cluster.find_grouped_job("x").unwrap();
    assert_eq!(entries[0], QueueEntry::SubmitGroups(job));
    assert_eq!(entries[2], QueueEntry::RemoveGroups(job));
    let mut out = Vec::new();
    write_queue(&cluster, &entries, &mut out).unwrap();
    let again = String::from_utf8(out).unwrap();
    // Models come in the order in which the cluster came to know them.
    assert_eq!(again.replace("\"H100\",\"B\"", "\"B\",\"H100\""), text);
    // A group of one is a job like any other.
    let one =
        "{\"job\":\"y\",\"within\":\"domain\",\"groups\":[{\"gpus_per_instance\":2,\"instances\":3,\"cpu_milli\":5}]}";
    let flat = "{\"job\":\"y\",\"instances\":3,\"gpus_per_instance\":2,\"cpu_milli\":5,\"within\":\"domain\"}\n";
    let (entries, cluster) = queue(one).unwrap();
    assert!(matches!(entries[..], [QueueEntry::Submit(_)]));
    let mut out = Vec::new();
    write_queue(&cluster, &entries, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), flat);
}

#[test]
fn bad_groups_are_refused_with_their_line_and_place() {
    let good = r#"{"job":"x","groups":[{"instances":1,"gpus_per_instance":1},{"instances":1,"gpus_per_instance":2}]}"#;
    let group = r#"{"instances":1,"gpus_per_instance":1}"#;
    let cases = [
        (good.to_owned(), "job: found job \"x\", which runs or is queued already"),
        (r#"{"job":"x/2","instances":1,"gpus_per_instance":1}"#.to_owned(), "job: found job \"x/2\", which runs"),
        (good.replace("\"x\"", "\"a\""), "job: found job \"a\", which runs or is queued already"),
        (r#"{"remove":"x/1"}"#.to_owned(), "remove: found \"x/1\", a group of the job \"x\", expected the whole job"),
        (format!(r#"{{"job":"y","instances":1,"groups":[{group}]}}"#), "found `instances` beside `groups`"),
        (format!(r#"{{"job":"y","gpus_per_instance":1,"groups":[{group}]}}"#), "found `gpus_per_instance` beside"),
        (
            format!(r#"{{"groups":[{group}],"models":["B"],"job":"y"}}"#),
            "`models` beside `groups`, expected it in each",
        ),
        (format!(r#"{{"remove":"x","groups":[{group}]}}"#), "found `groups` beside `remove`"),
        (format!(r#"{{"groups":[{group}]}}"#), "missing field `job`"),
        (r#"{"job":"y","groups":[]}"#.to_owned(), "groups: found an empty list, expected at least one group"),
        (r#"{"job":"y","groups":{}}"#.to_owned(), "groups: found map, expected a list of groups"),
        (
            format!(r#"{{"job":"y","groups":[{group},{{"instances":1}}]}}"#),
            "groups[1]: missing field `gpus_per_instance`",
        ),
        (
            format!(r#"{{"job":"y","groups":[{group},{{"instances":1,"gpus_per_instance":17}}]}}"#),
            "groups[1].gpus_per_instance: found integer `17`",
        ),
        (
            format!(r#"{{"job":"y","groups":[{group},{{"instances":1,"gpus_per_instance":1,"within":"rack"}}]}}"#),
            "groups[1]: unknown field `within`",
        ),
        (
            format!(r#"{{"job":"y","groups":[{group},{{"instances":1,"gpus_per_instance":2,"gpu_milli":500}}]}}"#),
            "groups[1].gpu_milli: job \"y\" asks 500 thousandths of each of 2 GPUs",
        ),
    ];
    for (bad, expected) in cases {
        let error = queue(&format!("{good}\n\n{bad}\n")).unwrap_err();
        assert_eq!(error.line(), Some(3));
        assert!(error.to_string().contains(expected), "{bad}\n{error}");
    }
}

#[test]
fn the_groups_of_a_running_job_follow_each_other() {
    let snapshot = |jobs: &[(&str, &str, &str)]| {
        let job = |(at, &(name, group, within)): (usize, &(&str, &str, &str))| {
            let group = if group.is_empty() { String::new() } else { format!("\"group_of\":\"{group}\",") };
            format!(
                "{{\"job\":\"{name}\",{group}{within}\"gpus_per_instance\":1,\"instances\":[{{\"node\":\"n\",\"gpus\":[{at}]}}]}}"
            )
        };
        let jobs: Vec<String> = jobs.iter().enumerate().map(job).collect();
        format!("{{\"nodes\":[{{\"name\":\"n\",\"gpus\":8,\"rack\":\"r\"}}],\"running\":[{}]}}", jobs.join(","))
    };
    let rack = "\"within\":\"rack\",";
    let good = [("a", "", ""), ("b/1", "b", rack), ("b/2", "b", rack), ("c/1", "", ""), ("c/2", "", rack)];
    let cluster = read(&snapshot(&good)).unwrap().cluster;
    let whole: Vec<&str> = cluster.job_ids().map(|job| cluster.whole_job_name(job)).collect();
    assert_eq!(whole, ["a", "b", "b", "c/1", "c/2"]);
    let alone: Vec<bool> = cluster.job_ids().map(|job| cluster.stands_alone(job)).collect();
    assert_eq!(alone, [true, false, false, true, true]);
    let mut text = Vec::new();
    write_cluster(&cluster, None, &mut text).unwrap();
    let again = read(std::str::from_utf8(&text).unwrap()).unwrap().cluster;
    assert_eq!(again.grouped_job_of(again.find_job("b/2").unwrap()), cluster.find_grouped_job("b"));
    for (bad, expected) in [
        (&[("b/2", "b", "")][..], "running[0].group_of: job \"b/2\" is said to be a group of \"b\", expected \"b/1\""),
        (&[("b/1", "b", ""), ("a", "", ""), ("b/2", "b", "")], "running[2].group_of"),
        (&[("b/1", "b", ""), ("b/2", "b", rack)], "running[1].group_of"),
        (&[("b", "", ""), ("b/1", "b", "")], "running[1].job: job \"b\" is there twice"),
        (&[("b/1", "b", ""), ("b", "", "")], "running[1].job: job \"b\" is there twice"),
    ] {
        let error = read(&snapshot(bad)).unwrap_err().to_string();
        assert!(error.contains(expected), "{bad:?}\n{error}");
    }
}

#[test]
fn a_bad_queue_is_refused_with_its_line() {
    let good = r#"{"job":"x","instances":1,"gpus_per_instance":1}"#;
    let cases = [
        (good, "job: found job \"x\", which runs or is queued already"),
        (r#"{"job":"a","instances":1,"gpus_per_instance":1}"#, "job: found job \"a\", which runs or is queued already"),
        (
            r#"{"job":"y","instances":0,"gpus_per_instance":1}"#,
            "instances: found integer `0`, expected an integer from 1",
        ),
        (r#"{"job":"y","instances":-4,"gpus_per_instance":1}"#, "instances: found integer `-4`"),
        (r#"{"job":"y","instances":1,"gpus_per_instance":17}"#, "gpus_per_instance: found integer `17`"),
        (r#"{"job":"y","gpus_per_instance":1}"#, "missing field `instances`"),
        (
            r#"{"job":"y","instances":1,"gpus_per_instance":1,"gpu_milli":1000}"#,
            "gpu_milli: found integer `1000`, expected an integer from 1 to 999",
        ),
        (
            r#"{"job":"y","instances":1,"gpus_per_instance":2,"gpu_milli":500}"#,
            "gpu_milli: job \"y\" asks 500 thousandths of each of 2 GPUs, expected 1 to 999 of one GPU, or whole GPUs",
        ),
        (r#"{"job":"y","instances":1,"gpus_per_instance":1,"x":1}"#, "unknown field `x`"),
        (r#"{"job":"y","instances":1,"gpus_per_instance":1,"models":[1]}"#, "models[0]: found integer `1`"),
        (r#"{"job":"y","instances":1,"#, "EOF while parsing"),
        (r#"{"remove":"y"}"#, "remove: found job \"y\", expected one that runs or is queued before"),
        (r#"{"remove":"x","job":"y"}"#, "found `job` beside `remove`"),
    ];
    for (bad, expected) in cases {
        let error = queue(&format!("{good}\n\n{bad}\n")).unwrap_err();
        assert_eq!(error.line(), Some(3));
        assert!(error.to_string().contains(expected), "{bad}\n{error}\n{expected}");
    }
}

#[test]
fn candidates_are_read_and_only_form_is_judged() {
    let line = r#"{"job":"b","candidate":"c","place":[{"node":"?","gpus":[0,0,99]},{"node":"n"}],"migrate":[{"job":"a","instance":7,"node":"n"}]}"#;
    let read = read_candidates_from("k.jsonl", format!("\n{line}\n").as_bytes()).unwrap();
    assert_eq!((read[0].line, read[0].place[0].gpus.as_deref()), (2, Some(&[0, 0, 99][..])));
    assert_eq!((read[0].place[1].gpus.as_ref(), read[0].migrate[0].instance), (None, 7));
    for (from, to, expected) in [
        ("[0,0,99]", "[0,-1]", "k.jsonl:1:60: place[0].gpus[1]: found integer `-1`, expected u64"),
        ("\"node\":\"n\"}]", "\"node\":\"n\",\"x\":1}]", "unknown field `x`"),
        ("\"candidate\":\"c\",", "", "missing field `candidate`"),
        ("[{\"node\":\"?\"", "[5,{\"node\":\"?\"", "place[0]: found integer `5`, expected an object"),
        ("{\"node\":\"n\"}],\"m", "[\"n\",[1]]],\"m", "place[1]: found sequence, expected an object"),
    ] {
        let error = read_candidates_from("k.jsonl", line.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n{expected}");
    }
}

pub(crate) fn gz(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn files_may_be_packed_and_faults_of_files_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let fault = |name: &str| read_cluster(&at(name)).unwrap_err().to_string();
    let (head, tail) = SNAPSHOT.split_at(150);
    std::fs::write(at("two-members"), [gz(head), gz(tail)].concat()).unwrap();
    assert_eq!(told(&read_cluster(&at("two-members")).unwrap().cluster), told(&read(SNAPSHOT).unwrap().cluster));
    let whole = gz(SNAPSHOT);
    std::fs::write(at("cut"), &whole[..whole.len() - 30]).unwrap();
    assert!(fault("cut").contains("gzip data that is cut short"), "{}", fault("cut"));
    std::fs::write(at("head"), &whole[..4]).unwrap();
    assert!(fault("head").contains("gzip data that is cut short"), "{}", fault("head"));
    let mut damaged = whole;
    damaged[40..60].fill(0xff);
    std::fs::write(at("damaged"), damaged).unwrap();
    assert!(fault("damaged").contains("gzip data that is damaged"), "{}", fault("damaged"));
    std::fs::write(at("empty"), "").unwrap();
    assert!(fault("empty").ends_with("found an empty file, expected a cluster snapshot in JSON"));
    assert!(fault("").ends_with("found a directory, expected a file"));
    assert!(fault("none").ends_with("found no such file, expected one to read"));
    assert!(cluster_source("slurm:none,x", None).unwrap_err().to_string().starts_with("none: found no such file"));
    assert!(cluster_source("synthetic:0", None).is_err() && cluster_source("synthetic:8:x", None).is_err());
    assert_eq!(cluster_source("synthetic:1001:7", None).unwrap().cluster.gpus(), 1001);
}

#[test]
fn an_output_appears_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("out");
    let failed = write_file(&target, |out| {
        out.write_all(b"half")?;
        Err(std::io::Error::other("full"))
    });
    assert!(failed.is_err());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    for text in ["one", "another"] {
        write_file(&target, |out| out.write_all(text.as_bytes())).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), text);
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let plain = directory.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
        assert_eq!(mode(&target), mode(&plain));
        write_file("/dev/null", |out| out.write_all(b"x")).unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }
    assert!(AtomicFile::create(directory.path()).is_err());
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn data(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
    }
    path.exists().then_some(path)
}

#[test]
fn the_real_alibaba_nodes_are_read() {
    let Some(path) = data("alibaba-spot-2026/node_info_df.csv") else { return };
    let snapshot = cluster_source(&format!("alibaba-2026:{}", path.display()), None).unwrap();
    let cluster = snapshot.cluster;
    let of = |gpus: u8| cluster.nodes().iter().filter(|node| node.devices() == gpus).count();
    assert_eq!((cluster.nodes().len(), cluster.gpus(), snapshot.notes.len()), (4278, 10_412, 0));
    assert_eq!((of(8), of(4), of(1)), (872, 10, 3396));
    assert_eq!(cluster.nodes()[0].cpu_milli(), 192_000);
}

#[test]
fn the_real_philly_jobs_are_read_and_replayed() {
    let Some(path) = data("philly-2017/jobs.csv.gz") else { return };
    let Trace { jobs, report } = read_philly(path.to_str().unwrap()).unwrap();
    assert_eq!(jobs.len(), 82_247 - 7);
    let notes = report.notes();
    assert!(notes[0].text.starts_with("7 of 82247 jobs are left out"), "{}", notes[0]);
    assert!(jobs.is_sorted_by_key(|job| job.submit_s) && jobs[0].submit_s == 0);
    for events in [natural(&jobs), replay(&jobs, 10_412_000, 95)] {
        assert_eq!(events.len(), jobs.len() * 2);
        let mut cluster = Cluster::default();
        let queue = trace_to_queue(&jobs, &events, &mut cluster).unwrap();
        let mut out = Vec::new();
        write_queue(&cluster, &queue, &mut out).unwrap();
        let (again, _) = read_queue_from("q", &out[..], &mut Cluster::default()).unwrap();
        assert_eq!(again.len(), queue.len());
    }
    let (mut demand, mut most) = (0, 0);
    for event in replay(&jobs, 10_412_000, 95) {
        match event {
            TraceEvent::Submit(job) => demand += jobs[job].gpus(),
            TraceEvent::Remove(job) => demand -= jobs[job].gpus(),
        }
        most = most.max(demand);
    }
    assert!((9_850..=9_891).contains(&most), "{most}");
}

#[test]
fn bad_tables_are_refused_with_line_and_column() {
    let nodes = "node_name,gpu_capacity_num,cpu_num,gpu_model,more\na,8,1,X,\nb,0,1,X,\n";
    let snapshot = read_alibaba_2026_from("n.csv", nodes.as_bytes()).unwrap();
    assert_eq!((snapshot.cluster.nodes().len(), snapshot.notes.len()), (1, 1));
    for (row, expected) in [
        ("c,17,1,X,", "n.csv:4: gpu_capacity_num: found \"17\", expected an integer from 0 to 16"),
        ("c,8,-1,X,", "n.csv:4: cpu_num: found \"-1\""),
        ("a,8,1,X,", "n.csv:4: node_name: node \"a\" is there twice"),
        ("c,8", "n.csv:4: found 2 fields, expected 5"),
    ] {
        let error = read_alibaba_2026_from("n.csv", format!("{nodes}{row}\n").as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = read_alibaba_2026_from("n.csv", &b"a,b\n"[..]).unwrap_err().to_string();
    assert_eq!(error, "n.csv:1: found the columns a,b, expected a column `gpu_model`");
    for (row, expected) in [
        ("2017-10-09,1.0,1", "timestamp: found \"2017-10-09\""),
        ("2017-10-09 07:01:55,1e99,1", "duration: found \"1e99\""),
        ("2017-10-09 07:01:55,1,one", "num_gpus: found \"one\""),
    ] {
        let text = format!("timestamp,duration,num_gpus\n{row}\n");
        let error = read_philly_from("p.csv", text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("p.csv:2: {expected}")), "{error}");
    }
}

#[test]
fn what_a_seed_makes_is_always_the_same_and_has_the_shares_of_its_mix() {
    for mix in Mix::ALL {
        let options = StreamOptions { jobs: 50_000, mix, gpus: 100_000, ..StreamOptions::default() };
        let jobs = synthetic_trace(&options);
        assert_eq!(jobs, synthetic_trace(&options));
        assert_ne!(jobs, synthetic_trace(&StreamOptions { seed: 2, ..options }));
        let all: u64 = jobs.iter().map(|job| u64::from(job.instances)).sum();
        for (gpus, weight) in mix.weights() {
            let of = jobs.iter().filter(|job| job.gpus_per_instance == gpus).map(|job| u64::from(job.instances));
            let (share, wanted) = (of.sum::<u64>() * 1000 / all, weight * 1000 / 40_000);
            assert!(share.abs_diff(wanted) <= 25, "{mix:?} {gpus}: {share} of 1000, expected {wanted}");
        }
    }
    for tidy in [true, false] {
        let options = ClusterOptions { gpus: 10_001, tidy, preload_percent: 80, ..ClusterOptions::default() };
        let cluster = synthetic_cluster(&options).unwrap();
        cluster.check_books().unwrap();
        assert_eq!(told(&cluster), told(&synthetic_cluster(&options).unwrap()));
        let free: u64 = cluster.nodes().iter().map(|node| u64::from(node.free_gpus())).sum();
        assert!((1_990..=2_001).contains(&free), "{free}");
    }
}
