//! A number that tells inputs apart by their content.

use std::fmt;
use std::io;

use xxhash_rust::xxh3::Xxh3Default;

use crate::cluster::Cluster;
use crate::formats::write_cluster;
use crate::workload::{NodeEvent, TraceJob};

/// 128 bits of XXH3: equal inputs have the same, and different ones differ unless somebody means them not to. It is the
/// same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u128);

impl fmt::Display for Fingerprint {
    /// As 32 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A fingerprint in the making. Every part says how long it is, so that none can be taken for the parts of another.
pub(super) struct Prints(Xxh3Default);

impl Prints {
    pub(super) fn new(what: &str) -> Self {
        let mut prints = Self(Xxh3Default::new());
        prints.text(what);
        prints
    }

    fn number(&mut self, n: u64) {
        self.0.update(&n.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    pub(super) fn list<S: AsRef<str>>(&mut self, texts: impl IntoIterator<Item = S>) {
        let mut n = 0;
        for text in texts {
            self.text(text.as_ref());
            n += 1;
        }
        self.number(n);
    }

    /// All of the jobs that a simulation looks at, and the names, by which jobs are told apart.
    pub(super) fn jobs(&mut self, jobs: &[TraceJob]) {
        for job in jobs {
            self.text(&job.name);
            let sizes = [u64::from(job.instances), job.gpus_per_instance.into(), job.gpu_milli.into()];
            let amounts = [job.cpu_milli, job.memory_mib, job.priority].map(u64::from);
            [job.submit_s, job.duration_s].into_iter().chain(sizes).chain(amounts).for_each(|n| self.number(n));
            self.list(&job.models);
        }
        self.number(jobs.len() as u64);
    }

    /// A cluster, as a snapshot states it.
    pub(super) fn cluster(&mut self, cluster: Option<&Cluster>) {
        struct Sink<'a>(&'a mut Xxh3Default, u64);
        impl io::Write for Sink<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.update(bytes);
                self.1 += bytes.len() as u64;
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut sink = Sink(&mut self.0, 0);
        if let Some(cluster) = cluster {
            // A hash takes whatever it is given.
            let _ = write_cluster(cluster, None, &mut sink);
        }
        let length = sink.1;
        self.number(length);
    }

    /// What happens to nodes, which the cluster numbers.
    pub(super) fn node_events(&mut self, events: &[NodeEvent]) {
        for event in events {
            self.number(event.at_s);
            self.number(u64::from(event.node.0));
            self.text(event.change.name());
        }
        self.number(events.len() as u64);
    }

    pub(super) fn finish(self) -> Fingerprint {
        Fingerprint(self.0.digest128())
    }
}
