//! The trace, our own format: JSONL, one job a line.

use std::io::{self, BufRead, BufWriter, Write};

use serde::Serialize;
use serde::de::{DeserializeSeed, Error, MapAccess};

use crate::cluster::{BuildError, MAX_GPUS, WHOLE_GPU};
use crate::workload::TraceJob;

use super::error::{FormatError, Note};
use super::job::MAX_SECONDS;
use super::json::{Int, Maybe, Object, ObjectSeed, Path, Text, require};
use super::lines::Lines;
use super::source::Source;

/// The most instances of one job: what can be numbered.
const MAX_INSTANCES: u64 = u32::MAX as u64 - 1;

/// Reads a trace from a file, or from standard input for `-`. It may be gzip'd. Blank lines are skipped. The jobs come
/// sorted by submission, ties in the order of the file.
///
/// # Errors
/// If it cannot be read, a line is malformed, a name is there twice, or a job asks a share of several GPUs.
pub fn read_trace(path: &str) -> Result<(Vec<TraceJob>, Vec<Note>), FormatError> {
    let mut source = Source::open(path)?.of_objects("a trace in JSONL")?;
    let name = source.name().to_owned();
    read_trace_from(&name, source.reader())
}

/// Reads a trace; `name` stands in errors.
///
/// # Errors
/// As for [`read_trace`].
pub fn read_trace_from(name: &str, reader: impl BufRead) -> Result<(Vec<TraceJob>, Vec<Note>), FormatError> {
    let mut lines = Lines::new(name, reader);
    let mut jobs: Vec<TraceJob> = Vec::new();
    let mut lines_of = rustc_hash::FxHashMap::default();
    let mut late = 0u64;
    let mut path = Path::default();
    while let Some((line, text)) = lines.next()? {
        let mut scratch = Scratch::default();
        let mut json = serde_json::Deserializer::from_slice(text);
        let read = ObjectSeed(&mut scratch, &mut path).deserialize(&mut json).and_then(|()| json.end());
        read.map_err(|error| FormatError::json(name, Some(line - 1), &path.to_string(), error))?;
        let job = scratch.0;
        if let Some(first) = lines_of.insert(job.name.clone(), line) {
            let text = format!("found job \"{}\", which is on line {first} already, expected a new name", job.name);
            return Err(FormatError::new(name, text).at_line(line).at_place("job"));
        }
        if job.is_share() && job.gpus_per_instance != 1 {
            // What a cluster says of such a job, as where the queue registers it.
            let share = BuildError::Share(job.name, job.gpu_milli, job.gpus_per_instance);
            return Err(FormatError::new(name, share).at_line(line).at_place("gpu_milli"));
        }
        late += u64::from(jobs.last().is_some_and(|last| job.submit_s < last.submit_s));
        jobs.push(job);
    }
    let note = |text: String| Note { place: name.to_owned(), text };
    let mut notes = Vec::new();
    if jobs.is_empty() {
        notes.push(note("the trace is empty".to_owned()));
    }
    if late > 0 {
        notes.push(note(format!("{late} jobs were submitted before the line above theirs; the trace is sorted")));
    }
    jobs.sort_by_key(|job| job.submit_s);
    Ok((jobs, notes))
}

/// One line.
#[derive(Default)]
struct Scratch(TraceJob);

impl Object for Scratch {
    const WHAT: &'static str = "a job of a trace";
    const FIELDS: &'static [&'static str] =
        &["job", "submit_s", "duration_s", "gpus_per_instance", "instances", "priority", "gpu_milli"];

    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, _: &mut Path) -> Result<(), A::Error> {
        let job = &mut self.0;
        match field {
            0 => map.next_value_seed(Text(&mut job.name))?,
            1 => job.submit_s = map.next_value_seed(Int(0, MAX_SECONDS))?,
            2 => job.duration_s = map.next_value_seed(Int(0, MAX_SECONDS))?,
            3 => job.gpus_per_instance = map.next_value_seed(Int(1, MAX_GPUS as u64))? as u8,
            4 => job.instances = map.next_value_seed(Int(1, MAX_INSTANCES))? as u32,
            5 => job.priority = map.next_value_seed(Int(0, u64::from(u32::MAX)))? as u32,
            _ => {
                let share = map.next_value_seed(Maybe(Int(1, u64::from(WHOLE_GPU) - 1)))?;
                job.gpu_milli = share.map_or(WHOLE_GPU, |milli| milli as u16);
            }
        }
        Ok(())
    }

    fn finish<E: Error>(&mut self, seen: u32, _: &mut Path) -> Result<(), E> {
        require::<Self, E>(seen, &[0, 1, 2, 3])
    }
}

/// Writes a trace that [`read_trace`] reads again: times, sizes, shares of a GPU and priorities, which is all that our own
/// format has. Jobs without GPUs are none of it.
///
/// # Errors
/// If `out` fails.
pub fn write_trace(jobs: &[TraceJob], out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, out);
    for job in jobs {
        let &TraceJob { ref name, submit_s, duration_s, instances, gpus_per_instance, priority, .. } = job;
        let gpu_milli = job.is_share().then_some(job.gpu_milli);
        let line = JobOut { job: name, submit_s, duration_s, instances, gpus_per_instance, gpu_milli, priority };
        serde_json::to_writer(&mut out, &line)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[derive(Serialize)]
struct JobOut<'a> {
    job: &'a str,
    submit_s: u64,
    duration_s: u64,
    instances: u32,
    gpus_per_instance: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_milli: Option<u16>,
    #[serde(skip_serializing_if = "is_zero")]
    priority: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Vec<TraceJob>, Vec<Note>), FormatError> {
        read_trace_from("t", text.as_bytes())
    }

    #[test]
    fn a_trace_is_sorted_and_read_back() {
        let text = r#"{"job":"b","submit_s":5,"duration_s":7,"gpus_per_instance":2,"instances":3,"priority":9}

            {"job":"a","submit_s":5,"duration_s":0,"gpus_per_instance":8,"gpu_milli":null}
            {"job":"d","submit_s":9,"duration_s":4,"gpu_milli":250,"gpus_per_instance":1,"instances":3}
            {"job":"c","submit_s":1,"duration_s":2,"gpus_per_instance":1}"#;
        let (jobs, notes) = read(text).unwrap();
        let names: Vec<&str> = jobs.iter().map(|job| &job.name[..]).collect();
        assert_eq!(names, ["c", "b", "a", "d"]);
        assert_eq!(jobs.iter().map(|job| job.gpu_milli).collect::<Vec<_>>(), [1000, 1000, 1000, 250]);
        assert_eq!((jobs[1].instances, jobs[1].priority, jobs[2].instances), (3, 9, 1));
        assert!(notes[0].text.starts_with("1 jobs"));
        let mut written = Vec::new();
        write_trace(&jobs, &mut written).unwrap();
        assert_eq!(read_trace_from("t", &written[..]).unwrap().0, jobs);
        let share = r#"{"job":"d","submit_s":9,"duration_s":4,"instances":3,"gpus_per_instance":1,"gpu_milli":250}"#;
        let written = String::from_utf8(written).unwrap();
        assert!(written.ends_with(&format!("{share}\n")) && written.matches("gpu_milli").count() == 1, "{written}");
        assert_eq!(read("").unwrap().1.len(), 1);
    }

    #[test]
    fn what_is_no_job_is_refused_with_its_line() {
        let good = r#"{"job":"a","submit_s":1,"duration_s":2,"gpus_per_instance":1}"#;
        for bad in [
            good,
            r#"{"job":"b","submit_s":1,"duration_s":2}"#,
            r#"{"job":"b","submit_s":-1,"duration_s":2,"gpus_per_instance":1}"#,
            r#"{"job":"b","submit_s":1,"duration_s":2.5,"gpus_per_instance":1}"#,
            r#"{"job":"b","submit_s":1,"duration_s":2,"gpus_per_instance":0}"#,
            r#"{"job":"b","submit_s":1,"duration_s":2,"gpus_per_instance":17}"#,
            r#"{"job":"b","submit_s":1,"duration_s":2,"gpus_per_instance":1,"instances":0}"#,
            r#"{"job":"b","submit_s":1,"duration_s":2,"gpus_per_instance":1,"gpu":1}"#,
            r#"{"job":"b","submit_s":1,"duration_s":2,"gpus_per_instance":1,"gpu_milli":0}"#,
            "[]",
        ] {
            let error = read(&format!("{good}\n{bad}\n")).unwrap_err();
            assert_eq!(error.line(), Some(2), "{bad}: {error}");
        }
    }
    #[test]
    fn a_share_that_is_none_is_refused_in_the_words_of_the_queue() {
        for (share, expected) in [
            (
                r#""gpus_per_instance":1,"gpu_milli":1000"#,
                "gpu_milli: found integer `1000`, expected an integer from 1 to 999",
            ),
            (
                r#""gpu_milli":0,"gpus_per_instance":1"#,
                "gpu_milli: found integer `0`, expected an integer from 1 to 999",
            ),
            (
                r#""gpu_milli":500,"gpus_per_instance":2"#,
                "gpu_milli: job \"s\" asks 500 thousandths of each of 2 GPUs, expected 1 to 999 of one GPU, or whole GPUs",
            ),
        ] {
            let trace = read(&format!(r#"{{"job":"s","submit_s":1,"duration_s":2,{share}}}"#)).unwrap_err();
            let line = format!(r#"{{"job":"s","instances":1,{share}}}"#);
            let mut cluster = crate::cluster::Cluster::default();
            let queue = super::super::read_queue_from("q", line.as_bytes(), &mut cluster).unwrap_err();
            for error in [trace, queue] {
                assert!(error.to_string().contains(expected) && error.line() == Some(1), "{error}");
            }
        }
    }
}
