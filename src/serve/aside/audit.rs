//! How fragmented the cluster is, and who waits for that.

use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Question, unwritten};
use crate::anchor::State;
use crate::cluster::{Cluster, JobId};
use crate::decide::audit;
use crate::formats::read_queue_from;
use crate::report::audit_json;
use crate::serve::fault::ServeError;
use crate::serve::http::{lines, read};
use crate::serve::version::Version;
use crate::workload::submitted_jobs;

/// A question of `/v1/audit`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditQuestion {
    version: Option<Version>,
    queue: Option<Vec<Box<RawValue>>>,
}

impl AuditQuestion {
    /// Reads it; an empty text asks about any version and no queue.
    ///
    /// # Errors
    /// If it is no such question.
    pub fn read(body: &[u8]) -> Result<Self, ServeError> {
        if body.is_empty() { Ok(Self::default()) } else { read(body) }
    }
}

impl Question for AuditQuestion {
    fn version(&self) -> Option<Version> {
        self.version
    }

    fn answer(&self, mut cluster: Cluster, _: Option<Instant>) -> Result<Vec<u8>, ServeError> {
        let waiting: Option<Vec<JobId>> = match &self.queue {
            None => None,
            Some(queue) => {
                let (queue, _) = read_queue_from("queue", &lines(queue)[..], &mut cluster)?;
                Some(submitted_jobs(&queue, &cluster).collect())
            }
        };
        let mut state = State::new(cluster);
        let audit = audit(&mut state, waiting.as_deref());
        let mut out = Vec::new();
        audit_json(&mut out, state.cluster(), &audit).map_err(unwritten)?;
        Ok(out)
    }
}
