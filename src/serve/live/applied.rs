//! Which changes were made already, by their callers' names for them.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Changed, Condition};

/// So many ids are remembered; older ones are forgotten.
pub const MOST_IDS: usize = 1 << 16;

/// So many bytes of answers are kept for those who ask again, the ids included.
pub const MOST_KEPT_BYTES: usize = 64 << 20;

/// The changes that were made, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Applied {
    order: VecDeque<Arc<str>>,
    made: FxHashMap<Arc<str>, Changed>,
    bytes: usize,
}

impl Applied {
    pub(super) fn find(&self, id: &str) -> Option<Changed> {
        Some(Changed { repeated: true, ..self.made.get(id)?.clone() })
    }

    /// Remembers a change that was not made before, if its caller has a name for it.
    pub(super) fn keep(&mut self, condition: &Condition, made: Changed) {
        let Some(id) = &condition.id else { return };
        let id: Arc<str> = id.as_str().into();
        self.bytes += bytes(&id, &made);
        self.order.push_back(Arc::clone(&id));
        self.made.insert(id, made);
        while self.order.len() > MOST_IDS || (self.bytes > MOST_KEPT_BYTES && self.order.len() > 1) {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.made.remove(&oldest).map_or(0, |made| bytes(&oldest, &made));
        }
    }
}

/// What is kept of a change, its id included.
fn bytes(id: &str, made: &Changed) -> usize {
    id.len() + made.answer.as_ref().map_or(0, |answer| answer.len()) + size_of_val(&made.effects[..])
}
