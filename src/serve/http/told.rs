//! Decisions on their way to those who watch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::App;
use crate::cluster::Cluster;
use crate::decide::Decision;
use crate::serve::history::{Decided, Ring};

/// The decisions of one call. They are told when this is dropped, however the call ends: what is decided is done.
pub(super) struct Told {
    app: Arc<App>,
    via: &'static str,
    commit: bool,
    last: Ring<Decided>,
    counts: BTreeMap<&'static str, u64>,
}

impl Told {
    pub(super) fn new(app: &Arc<App>, via: &'static str, commit: bool) -> Self {
        Self { app: Arc::clone(app), via, commit, last: Ring::of_decisions(), counts: BTreeMap::new() }
    }

    pub(super) fn keep(&mut self, cluster: &Cluster, decision: &Decision) {
        let decided = Decided::of(cluster, decision, self.via, self.commit);
        *self.counts.entry(decided.status).or_default() += 1;
        self.last.push(decided);
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        for (status, &n) in &self.counts {
            self.app.metrics.decided(self.via, status, n);
        }
        let last = std::mem::replace(&mut self.last, Ring::of_decisions());
        self.app.history.decided(last);
    }
}
