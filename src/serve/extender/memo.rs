//! The placements of gangs that were worked out for this version: the members of one gang get one placement.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::seat::{PodAsk, Seat};
use crate::cluster::NodeId;
use crate::serve::live::Asks;
use crate::serve::version::Version;

/// The most pods whose places are kept.
const MOST: usize = 1 << 16;

/// Places by gang and pod, of one version.
#[derive(Debug, Default)]
pub(in crate::serve) struct Memo {
    version: Option<Version>,
    places: FxHashMap<(Arc<str>, Arc<str>), (Asks, NodeId)>,
}

impl Memo {
    /// The place of a pod of a gang, if that was worked out for this version.
    pub(super) fn find(&self, version: Version, pod: &PodAsk) -> Option<Seat> {
        let gang = pod.gang.as_ref().filter(|_| self.version == Some(version))?;
        let &(asks, node) = self.places.get(&(Arc::clone(gang), Arc::clone(&pod.name)))?;
        (asks == pod.asks).then_some(Seat::Node(node))
    }

    /// Keeps the places of a gang.
    pub(super) fn keep(&mut self, version: Version, pod: &PodAsk, members: &[(Arc<str>, Asks)], nodes: &[NodeId]) {
        let Some(gang) = &pod.gang else { return };
        if self.version != Some(version) || self.places.len() + members.len() > MOST {
            self.places.clear();
            self.version = Some(version);
        }
        if members.len() <= MOST {
            let places = members.iter().zip(nodes);
            self.places
                .extend(places.map(|((name, asks), &node)| ((Arc::clone(gang), Arc::clone(name)), (*asks, node))));
        }
    }
}
