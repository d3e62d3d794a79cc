//! The cluster as the service knows it. One thread owns it; everything here is sequential.

mod applied;
mod edit;
mod gangs;
mod picture;
mod place;
mod resident;
mod score;

use std::sync::Arc;
use std::time::Instant;

use super::fault::ServeError;
use super::version::{Epoch, Version};
use crate::anchor::State;
use crate::cluster::{Cluster, NodeId};
use crate::evaluate::Backend;
use crate::formats::{EditSpec, Snapshot, read_cluster_from, write_cluster};
use applied::Applied;
pub use applied::{MOST_IDS, MOST_KEPT_BYTES};
pub use gangs::{Asks, Gang, Gangs};
use picture::Pictures;
pub use picture::{GangRoom, NodeRow, Picture, Product, Topology, Totals};
pub use place::{PlaceCall, Show};
use resident::Resident;
use score::Scoring;
pub use score::{Candidates, ScoreCall, Scored, resolve_candidates};

/// Jobs and instances that have ended are kept until there are so many more of them than of those that run.
const MOST_ENDED: usize = 1 << 16;

/// How many jobs and instances more there must be before it is looked again whether there are so many.
const LOOK_AGAIN: usize = 1 << 10;

/// What a caller that changes something knows, and calls it.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// The version that the call is for; `None` for any.
    pub version: Option<Version>,
    /// The caller's own name for the change: the same name again changes nothing more.
    pub id: Option<String>,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The version that it made.
    pub version: Version,
    /// It had been made before, by a call of the same id.
    pub repeated: bool,
    /// What was answered then, where that is kept.
    pub answer: Option<Arc<[u8]>>,
    /// Beside an answer that is kept: what each of its decisions did.
    pub effects: Arc<[Effect]>,
}

impl Changed {
    /// A change that was made now, with nothing to answer.
    pub(super) fn new(version: Version) -> Self {
        Self { version, repeated: false, answer: None, effects: Arc::default() }
    }
}

/// What a decision did: the change of N·SIF, and whether every touched node is in Σ afterwards. Nothing where nothing was
/// decided.
pub type Effect = (Option<i64>, Option<bool>);

/// The cluster, its version, and the device that it is resident on.
pub struct Live {
    version: Version,
    /// When it came to be.
    changed: Instant,
    state: Option<State>,
    gangs: Gangs,
    applied: Applied,
    resident: Resident,
    scoring: Scoring,
    /// The cluster of this version, where somebody has asked for it.
    copy: Option<Arc<Cluster>>,
    pictures: Pictures,
    /// Jobs and instances when those that have ended were last counted.
    counted: usize,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Live {
    /// Without a cluster. Candidates are scored on `backend`.
    pub fn new(backend: Box<dyn Backend>) -> Self {
        Self {
            version: Version { epoch: Epoch::new(), generation: 0 },
            changed: Instant::now(),
            state: None,
            gangs: Gangs::default(),
            applied: Applied::default(),
            resident: Resident::new(backend),
            scoring: Scoring::default(),
            copy: None,
            pictures: Pictures::default(),
            counted: 0,
        }
    }

    /// The version of what is here.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where candidates are scored.
    pub fn backend(&self) -> &'static str {
        self.resident.name()
    }

    /// The state.
    ///
    /// # Errors
    /// If there is no cluster yet.
    pub fn state(&self) -> Result<&State, ServeError> {
        self.state.as_ref().ok_or(ServeError::NoCluster)
    }

    /// The state, to try something on. It must be as it was afterwards.
    ///
    /// # Errors
    /// If there is no cluster yet.
    pub fn state_mut(&mut self) -> Result<&mut State, ServeError> {
        self.state.as_mut().ok_or(ServeError::NoCluster)
    }

    /// The gangs whose parts start one by one, and who else waits.
    pub fn gangs(&self) -> &Gangs {
        &self.gangs
    }

    /// The state to try something on, which must be as it was afterwards, and the gangs.
    ///
    /// # Errors
    /// If there is no cluster yet.
    pub fn parts_mut(&mut self) -> Result<(&mut State, &Gangs), ServeError> {
        Ok((self.state.as_mut().ok_or(ServeError::NoCluster)?, &self.gangs))
    }

    /// The cluster of this version, for work that takes longer than a call may hold the others up. O(cluster) for the
    /// first who asks after a change.
    ///
    /// # Errors
    /// If there is no cluster yet.
    pub fn copy(&mut self) -> Result<Arc<Cluster>, ServeError> {
        let state = self.state.as_ref().ok_or(ServeError::NoCluster)?;
        Ok(Arc::clone(self.copy.get_or_insert_with(|| Arc::new(state.cluster().clone()))))
    }

    /// Whether a call for this version may go on.
    ///
    /// # Errors
    /// If the version is another, or there is no cluster.
    pub fn check(&self, asked: Option<Version>) -> Result<(), ServeError> {
        self.state()?;
        match asked {
            Some(asked) if asked != self.version => Err(ServeError::Stale { asked, current: self.version }),
            _ => Ok(()),
        }
    }

    /// Puts a cluster in place of what was. Ids of changes before are forgotten: whoever puts a snapshot knows what is in it.
    pub fn put(&mut self, cluster: Cluster) -> Version {
        self.replace(Some(State::new(cluster)))
    }

    /// Lets go of everything: what is here can be trusted no more, and must be put again.
    pub fn drop_cluster(&mut self) {
        self.replace(None);
    }

    /// Another state, about which nothing is known of the one before.
    fn replace(&mut self, state: Option<State>) -> Version {
        self.state = state;
        self.gangs = Gangs::default();
        self.applied = Applied::default();
        self.resident.forget();
        self.pictures = Pictures::default();
        self.advance()
    }

    /// Applies edits in their order: all of them, or none.
    ///
    /// # Errors
    /// If the version is another, there is no cluster, or an edit contradicts what is here.
    pub fn edit(&mut self, condition: &Condition, edits: &[EditSpec]) -> Result<Changed, ServeError> {
        if let Some(done) = self.repeated(condition) {
            return if done.answer.is_none() { Ok(done) } else { Err(place::other_change()) };
        }
        self.check(condition.version)?;
        let state = self.state.as_mut().ok_or(ServeError::NoCluster)?;
        let touched =
            edit::apply(state, &mut self.gangs, edits).map_err(|(at, why)| ServeError::Refused { at, why })?;
        self.resident.touch(state.cluster(), &touched);
        let version = self.advance();
        self.applied.keep(condition, Changed::new(version));
        self.forget_ended();
        Ok(Changed::new(version))
    }

    /// The outcome of a change that was made before under the same id.
    fn repeated(&self, condition: &Condition) -> Option<Changed> {
        self.applied.find(condition.id.as_deref()?)
    }

    fn advance(&mut self) -> Version {
        self.version.generation += 1;
        self.changed = Instant::now();
        self.copy = None;
        self.version
    }

    /// Makes the cluster anew without the jobs that have ended, once there are many: so memory goes with what runs, not
    /// with what ever ran. Amortised over those that ended.
    fn forget_ended(&mut self) {
        let Some(state) = &self.state else { return };
        let (jobs, instances) = state.cluster().n_known();
        let runs = state.cluster().jobs().iter().filter(|job| job.runs());
        // Counting goes over all of them, and this is asked after every edit.
        if jobs + instances < MOST_ENDED || (jobs + instances).abs_diff(self.counted) < LOOK_AGAIN {
            return;
        }
        self.counted = jobs + instances;
        let running = runs.fold(0, |sum, job| sum + 1 + job.instances() as usize);
        if jobs + instances < 2 * running + MOST_ENDED {
            return;
        }
        let mut text = Vec::new();
        // What the writer writes the reader takes: a property that is tested, and a vector does not fail.
        let again = write_cluster(state.cluster(), None, &mut text).ok();
        if let Some(Ok(Snapshot { cluster, .. })) = again.map(|()| read_cluster_from("the cluster", &text[..])) {
            self.state = Some(State::new(cluster));
            self.resident.forget();
            self.copy = None;
        }
    }
}

/// The nodes that a list of changes is about, each once.
fn distinct(mut nodes: Vec<NodeId>) -> Vec<NodeId> {
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
