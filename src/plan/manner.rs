//! Which of the nodes that are alike to the program a plan takes.
//!
//! Alike there are nodes that can be left by the same and receive the same. What stays on them may differ, and so what they
//! are like afterwards: partial or not, in Σ or not, in this rack or that. A plan is made in some manners more than one, and
//! scores tell which is best; none of them costs a move more.

use super::layout::{Counts, Layout};
use crate::anchor::Shape;
use crate::cluster::{Cluster, Composition, NodeId};

/// Whom to take of those that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The first by number.
    First,
    /// The last by number.
    Last,
    /// Those that are best afterwards, each by itself, then the first.
    Tidy,
}

/// A manner of choosing nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// Of nodes that are left.
    pub(super) leave: Order,
    /// Of nodes that receive.
    pub(super) receive: Order,
}

impl Manner {
    /// The first of everything.
    pub(super) const PLAIN: Self = Self { leave: Order::First, receive: Order::First };

    /// The others, those first that are likely to be better.
    pub(super) const OTHERS: [Self; 7] = [
        Self { leave: Order::Tidy, receive: Order::Tidy },
        Self { leave: Order::First, receive: Order::Tidy },
        Self { leave: Order::Tidy, receive: Order::First },
        Self { leave: Order::Last, receive: Order::Tidy },
        Self { leave: Order::Last, receive: Order::Last },
        Self { leave: Order::First, receive: Order::Last },
        Self { leave: Order::Last, receive: Order::First },
    ];
}

/// What becomes of a node, less is better: in the order of ranks of candidates, as far as it is a matter of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Effect {
    leaves_space: bool,
    partial: i8,
    is_opened: bool,
    left: u8,
}

impl Effect {
    /// Something like it as one number, at least 0.
    pub(super) fn weight(self) -> i64 {
        2 * i64::from(self.leaves_space) + i64::from(self.partial) + 1
    }

    /// What becomes of a node that these leave and then these come to.
    pub(super) fn of(cluster: &Cluster, layout: &Layout, node: NodeId, leave: &Counts, receive: &Counts) -> Self {
        let (here, before) = (cluster.node(node), cluster.node(node).composition());
        let sizes = |counts: &Counts| {
            let size = |&(item, n): &(u16, u16)| std::iter::repeat_n(layout.items[usize::from(item)].gpus, n.into());
            counts.iter().flat_map(size).filter(|&gpus| gpus > 0).collect::<Vec<u8>>()
        };
        let without = sizes(leave).into_iter().try_fold(before, Composition::without);
        let Some(after) = without.and_then(|rest| sizes(receive).into_iter().try_fold(rest, Composition::with)) else {
            return Self::default();
        };
        let capacity = here.capacity();
        if after.busy() > capacity {
            return Self::default();
        }
        let is_partial = |busy: u8| i8::from(busy > 0 && busy < capacity);
        let in_space = |composition| Shape::of(capacity, composition).in_space();
        Self {
            leaves_space: in_space(before) && !in_space(after),
            partial: is_partial(after.busy()) - is_partial(before.busy()),
            is_opened: before.busy() == 0 && after.busy() > 0,
            left: capacity - after.busy(),
        }
    }
}
