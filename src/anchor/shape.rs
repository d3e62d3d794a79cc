//! The shape of a node: how the Anchor-Based Space Σ sees the multiset of instances that it holds (COMPASS-ABS §4.1).

use std::sync::LazyLock;

use crate::cluster::{Composition, MAX_GPUS, PerSize, slot_width};

/// Why a node is outside Σ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outside {
    /// The slots of its anchors are wider together than the node.
    SlotsOverflow,
    /// It has more 1-GPU instances than its slots have vacancy.
    NoVacancy,
}

impl Outside {
    /// The word in reports: `slots-overflow` or `no-vacancy`.
    pub const fn name(self) -> &'static str {
        match self {
            Outside::SlotsOverflow => "slots-overflow",
            Outside::NoVacancy => "no-vacancy",
        }
    }
}

/// Which of the allowed kinds a node is, or why it is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It holds nothing.
    Empty,
    /// It holds 1-GPU instances only.
    Pool,
    /// It holds anchors in slots, and 1-GPU instances as fillers of their vacancies.
    Slotted,
    /// Not in Σ.
    Outside(Outside),
}

/// What the method asks of a composition on a node of a given capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Its kind.
    pub kind: Kind,
    /// Σ of the slot widths of its anchors; may be more than the capacity if it is outside.
    pub widths: u8,
    /// Unprofiled room: capacity less `widths`, at least 0. The whole capacity for an empty or a pool node.
    pub room: u8,
    /// GPUs that its slots leave to fillers: `widths` less the GPUs of its anchors.
    pub vacancy: u8,
    /// Its 1-GPU instances.
    pub ones: u8,
    /// GPUs held.
    pub busy: u8,
    /// Its number among the sets that a pool sorts its nodes into; see [`Shape::class_of`].
    class: u8,
    /// What pools count: see [`Counted`].
    counted: u8,
}

/// What a pool counts of its nodes, as bits.
pub(super) struct Counted;

impl Counted {
    /// Some GPUs are busy, but not all.
    pub(super) const PARTIAL: u8 = 1;
    /// Outside Σ.
    pub(super) const OUTSIDE: u8 = 2;
    /// Slotted, in Σ, with unprofiled room for a slot.
    pub(super) const WITH_ROOM: u8 = 4;
    /// A pool node with a free GPU.
    pub(super) const PARTIAL_POOL: u8 = 8;
    /// Slotted, in Σ, with a vacancy that no filler holds.
    pub(super) const OPEN: u8 = 16;
}

/// The narrowest slot: room below this is of no use to any anchor.
pub(super) const NARROWEST_SLOT: u8 = 2;

/// How many classes there are: empty, pool nodes by 1..=16 instances, slotted ones by room 0..=16, outside.
pub(super) const N_CLASSES: usize = 35;

impl Shape {
    /// The shape of a composition on a node of `capacity`, which must be able to hold it.
    pub fn of(capacity: u8, composition: Composition) -> Self {
        SHAPES[usize::from(capacity)][usize::from(composition.number())]
    }

    /// The class of nodes of this kind with this number of 1-GPU instances (pool nodes) or this room (slotted ones).
    pub(super) const fn class_of(kind: Kind, amount: u8) -> u8 {
        match kind {
            Kind::Empty => 0,
            Kind::Pool => amount,
            Kind::Slotted => 17 + amount,
            Kind::Outside(_) => 34,
        }
    }

    /// All shapes of a capacity, by composition number.
    pub(super) fn table(capacity: u8) -> &'static [Shape] {
        &SHAPES[usize::from(capacity)]
    }

    /// Whether it has one of the counted properties.
    pub(super) const fn is(self, counted: u8) -> bool {
        self.counted & counted != 0
    }

    /// Whether two shapes are the same to all counters.
    pub(super) const fn counts_like(self, other: Self) -> bool {
        self.counted == other.counted
    }

    /// Its own class.
    pub(super) const fn class(self) -> u8 {
        self.class
    }

    /// True if Σ allows it.
    pub fn in_space(self) -> bool {
        !matches!(self.kind, Kind::Outside(_))
    }

    /// True if it has at least one anchor.
    pub fn has_anchor(self) -> bool {
        self.widths > 0
    }

    /// GPUs of its slots that neither an anchor nor a filler holds.
    pub fn open_vacancy(self) -> u8 {
        self.vacancy.saturating_sub(self.ones)
    }

    /// 1-GPU instances beyond what its vacancy can take; 0 without anchors.
    pub fn excess_ones(self) -> u8 {
        if self.has_anchor() { self.ones.saturating_sub(self.vacancy) } else { 0 }
    }
}

static SHAPES: LazyLock<PerSize<Vec<Shape>>> = LazyLock::new(|| {
    std::array::from_fn(|capacity| {
        Composition::all(capacity as u8).map(|composition| classify(capacity as u8, composition)).collect()
    })
});

fn classify(capacity: u8, composition: Composition) -> Shape {
    let anchors = || (2..=MAX_GPUS as u8).map(|gpus| (gpus, composition.count(gpus)));
    let widths: u8 = anchors().map(|(gpus, n)| n * slot_width(gpus, capacity)).sum();
    let anchor_gpus: u8 = anchors().map(|(gpus, n)| n * gpus).sum();
    let ones = composition.count(1);
    let vacancy = widths - anchor_gpus;
    let kind = if widths > capacity {
        Kind::Outside(Outside::SlotsOverflow)
    } else if widths > 0 && ones > vacancy {
        Kind::Outside(Outside::NoVacancy)
    } else if widths > 0 {
        Kind::Slotted
    } else if ones > 0 {
        Kind::Pool
    } else {
        Kind::Empty
    };
    let room = capacity.saturating_sub(widths);
    let class = Shape::class_of(kind, if kind == Kind::Pool { ones } else { room });
    let busy = composition.busy();
    let properties = [
        (Counted::PARTIAL, busy > 0 && busy < capacity),
        (Counted::OUTSIDE, matches!(kind, Kind::Outside(_))),
        (Counted::WITH_ROOM, kind == Kind::Slotted && room >= NARROWEST_SLOT),
        (Counted::PARTIAL_POOL, kind == Kind::Pool && ones < capacity),
        (Counted::OPEN, kind == Kind::Slotted && ones < vacancy),
    ];
    let counted = properties.iter().filter(|(_, holds)| *holds).map(|(bit, _)| bit).sum();
    Shape { kind, widths, room, vacancy, ones, busy, class, counted }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(capacity: u8, sizes: &[u8]) -> Kind {
        Shape::of(capacity, Composition::from_sizes(sizes.iter().copied()).unwrap()).kind
    }

    #[test]
    fn the_examples_of_the_method_hold() {
        assert_eq!(kind(8, &[3, 1]), Kind::Slotted);
        assert_eq!(kind(8, &[4, 1]), Kind::Outside(Outside::NoVacancy));
        assert_eq!(kind(8, &[5, 3]), Kind::Outside(Outside::SlotsOverflow));
        assert_eq!(kind(8, &[3, 3, 1, 1]), Kind::Slotted);
        assert_eq!(kind(8, &[5, 2, 1]), Kind::Outside(Outside::SlotsOverflow));
        assert_eq!(kind(8, &[1; 7]), Kind::Pool);
        assert_eq!(kind(8, &[4, 2]), Kind::Slotted);
        assert_eq!(kind(8, &[]), Kind::Empty);
        assert_eq!(kind(6, &[5, 1]), Kind::Slotted);
        assert_eq!(kind(7, &[4, 2, 1]), Kind::Outside(Outside::NoVacancy));
    }

    #[test]
    fn the_parts_of_a_shape_add_up() {
        for capacity in 1..=16 {
            for composition in Composition::all(capacity) {
                let shape = Shape::of(capacity, composition);
                assert_eq!(shape.widths - shape.vacancy + shape.ones, composition.busy());
                assert_eq!(shape.in_space(), shape.excess_ones() == 0 && shape.widths <= capacity);
            }
        }
    }
}
