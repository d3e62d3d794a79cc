//! Which changes were made already, by their callers' names for them.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Changed, Condition};
use crate::serve::version::Version;

/// So many ids are remembered; older ones are forgotten.
pub const MOST_IDS: usize = 1 << 16;

/// So many bytes of answers are kept for those who ask again, the ids included.
pub const MOST_KEPT_BYTES: usize = 64 << 20;

/// What a change made, and what was answered.
type Made = (Version, Option<Arc<[u8]>>);

/// The changes that were made, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Applied {
    order: VecDeque<Arc<str>>,
    made: FxHashMap<Arc<str>, Made>,
    bytes: usize,
}

impl Applied {
    pub(super) fn find(&self, id: &str) -> Option<Changed> {
        let (version, answer) = self.made.get(id)?;
        Some(Changed { version: *version, repeated: true, answer: answer.clone() })
    }

    /// Remembers a change that was not made before, if its caller has a name for it.
    pub(super) fn keep(&mut self, condition: &Condition, version: Version, answer: Option<Arc<[u8]>>) {
        let Some(id) = &condition.id else { return };
        let id: Arc<str> = id.as_str().into();
        self.bytes += id.len() + answer.as_ref().map_or(0, |answer| answer.len());
        self.order.push_back(Arc::clone(&id));
        self.made.insert(id, (version, answer));
        while self.order.len() > MOST_IDS || (self.bytes > MOST_KEPT_BYTES && self.order.len() > 1) {
            let Some(oldest) = self.order.pop_front() else { break };
            let answer = self.made.remove(&oldest).and_then(|(_, answer)| answer);
            self.bytes -= oldest.len() + answer.map_or(0, |answer| answer.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::version::Epoch;

    #[test]
    fn the_oldest_are_forgotten_first() {
        let version = Version { epoch: Epoch::new(), generation: 1 };
        let condition = |id: usize| Condition { version: None, id: Some(id.to_string()) };
        let mut applied = Applied::default();
        for id in 0..MOST_IDS + 10 {
            applied.keep(&condition(id), version, None);
        }
        assert_eq!((applied.order.len(), applied.made.len()), (MOST_IDS, MOST_IDS));
        assert!(applied.find("9").is_none() && applied.find("10").is_some());
        // Large answers push more out, but the last one is kept.
        let large: Arc<[u8]> = vec![0; MOST_KEPT_BYTES].into();
        applied.keep(&condition(MOST_IDS + 10), version, Some(large));
        assert_eq!(applied.order.len(), 1);
        assert!(applied.find(&(MOST_IDS + 10).to_string()).is_some_and(|made| made.repeated));
        applied.keep(&Condition::default(), version, None);
        assert_eq!(applied.order.len(), 1);
    }
}
