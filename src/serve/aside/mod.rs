//! What takes longer than a call may hold the others up: it is worked out aside, on a copy of the cluster, a few at a
//! time. Documents in, documents out, the same over HTTP and gRPC.

mod audit;
mod plan;

use std::sync::Arc;
use std::time::Instant;

pub use audit::AuditQuestion;
pub use plan::{ExplainQuestion, PlanQuestion};

use super::fault::ServeError;
use super::http::App;
use super::version::Version;
use crate::cluster::Cluster;
use crate::formats::write_cluster;

/// What is asked about a copy of the cluster.
pub trait Question: Send + 'static {
    /// For which version; `None` for any.
    fn version(&self) -> Option<Version>;

    /// The answer, a line of JSON that is an object. Nobody waits for it after the deadline.
    ///
    /// # Errors
    /// If the question makes no sense of this cluster.
    fn answer(&self, cluster: Cluster, deadline: Option<Instant>) -> Result<Vec<u8>, ServeError>;
}

impl App {
    /// Works on a thread of its own, for which nobody waits after the deadline.
    ///
    /// # Errors
    /// What `work` says; or that too many do so already, or it is too late.
    pub(super) async fn aside<R: Send + 'static>(
        &self,
        deadline: Option<Instant>,
        work: impl FnOnce() -> Result<R, ServeError> + Send + 'static,
    ) -> Result<R, ServeError> {
        let permit = Arc::clone(&self.aside).try_acquire_owned().map_err(|_| ServeError::Busy)?;
        work_apart(permit, deadline, work).await
    }

    /// Reads or writes a snapshot on a thread of its own; a few at a time, which the others wait for until the deadline.
    ///
    /// # Errors
    /// What `work` says; or that it is too late.
    pub(super) async fn on_a_snapshot<R: Send + 'static>(
        &self,
        deadline: Option<Instant>,
        work: impl FnOnce() -> Result<R, ServeError> + Send + 'static,
    ) -> Result<R, ServeError> {
        let turn = Arc::clone(&self.snapshots).acquire_owned();
        let permit = match deadline {
            None => turn.await,
            Some(deadline) => tokio::time::timeout_at(deadline.into(), turn).await.map_err(|_| ServeError::Late)?,
        };
        work_apart(permit.map_err(|_| ServeError::Closing)?, deadline, work).await
    }

    /// A snapshot of what is here, as text, and its version.
    ///
    /// # Errors
    /// If there is no cluster, or it is too late.
    pub(super) async fn written(&self, deadline: Option<Instant>) -> Result<(Version, Vec<u8>), ServeError> {
        let (version, cluster) = self.engine.run(deadline, |live| Ok((live.version(), live.copy()?))).await?;
        let bytes = self.on_a_snapshot(deadline, move || {
            let mut bytes = Vec::new();
            write_cluster(&cluster, None, &mut bytes).map_err(|error| ServeError::Failed(error.to_string()))?;
            Ok(bytes)
        });
        Ok((version, bytes.await?))
    }

    /// The answer to a question, a JSON object with the version that it is about in front.
    ///
    /// # Errors
    /// If there is no cluster, its version is another, or the question makes no sense of it.
    pub(super) async fn answer(
        &self,
        deadline: Option<Instant>,
        question: impl Question,
    ) -> Result<Vec<u8>, ServeError> {
        let asked = question.version();
        let copy = move |live: &mut super::Live| live.check(asked).and_then(|()| Ok((live.version(), live.copy()?)));
        let (version, cluster) = self.engine.run(deadline, copy).await?;
        let line = self.aside(deadline, move || question.answer(Cluster::clone(&cluster), deadline)).await?;
        let mut document = format!("{{\"version\":\"{version}\",").into_bytes();
        document.extend_from_slice(line.strip_prefix(b"{").unwrap_or(&line).trim_ascii_end());
        Ok(document)
    }
}

/// Works to its end, and holds the permit until then, whether somebody still waits for it or not: until the deadline somebody
/// does.
async fn work_apart<R: Send + 'static>(
    permit: tokio::sync::OwnedSemaphorePermit,
    deadline: Option<Instant>,
    work: impl FnOnce() -> Result<R, ServeError> + Send + 'static,
) -> Result<R, ServeError> {
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(permit);
        done
    });
    let done = match deadline {
        None => done.await,
        Some(deadline) => tokio::time::timeout_at(deadline.into(), done).await.map_err(|_| ServeError::Late)?,
    };
    done.map_err(|error| ServeError::Failed(error.to_string()))?
}

fn unwritten(error: serde_json::Error) -> ServeError {
    ServeError::Failed(error.to_string())
}
