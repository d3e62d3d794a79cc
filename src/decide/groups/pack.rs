//! Whether instances of several kinds fit on nodes together: exact, as far as a number of steps goes.
//!
//! A depth-first search over nodes. Only *full* contents of a node are tried, those that leave no room for one instance
//! more of what is still to be placed: in any packing an instance may be drawn from a later node to an earlier one that
//! has room for it. Nodes with equal amounts left come one after another, and what was found to be a dead end is
//! remembered by what was still to be placed, so that equal nodes are not told apart. Bounds on what the nodes that are
//! left can take prune it, and settle most questions before the first step.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use crate::cluster::NodeId;

/// The most kinds that are told apart.
pub(super) const MOST_KINDS: usize = 16;

/// Instances that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) gpus: u8,
    pub(super) cpu_milli: u32,
    pub(super) memory_mib: u32,
    pub(super) wanted: u32,
}

/// What a node has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bin {
    pub(super) node: NodeId,
    pub(super) gpus: u8,
    /// Milli-cores and MiB; `u64::MAX` sets no limit.
    pub(super) cpu_milli: u64,
    pub(super) memory_mib: u64,
    /// Bit i: an instance of kind i may go there, and fits.
    pub(super) open: u32,
}

/// What the search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// The nodes of the instances of each kind, ascending.
    Found(Vec<Vec<NodeId>>),
    /// There is none.
    Impossible,
    /// The steps, or the kinds that are told apart, did not suffice to tell.
    Unknown,
}

/// Looks for a packing of all kinds, in at most so many steps; they are taken off.
pub(super) fn pack(kinds: &[Kind], bins: Vec<Bin>, steps: &mut u32) -> Packing {
    if kinds.len() > MOST_KINDS {
        return Packing::Unknown;
    }
    // The largest first: they have the least choice.
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_by_key(|&kind| {
        let Kind { gpus, cpu_milli, memory_mib, .. } = kinds[kind];
        (Reverse(gpus), Reverse(cpu_milli), Reverse(memory_mib), kind)
    });
    let sorted: Vec<Kind> = order.iter().map(|&kind| kinds[kind]).collect();
    let bins = relevant(&sorted, &order, bins);
    let mut search = Search::new(&sorted, &bins);
    match search.run(steps) {
        None => Packing::Unknown,
        Some(false) => Packing::Impossible,
        Some(true) => {
            let mut hosts = vec![Vec::new(); kinds.len()];
            for (bin, chosen) in bins.iter().zip(search.chosen.chunks(kinds.len().max(1))).take(search.level) {
                for (&kind, &n) in order.iter().zip(chosen) {
                    hosts[kind].extend(std::iter::repeat_n(bin.node, n as usize));
                }
            }
            hosts.iter_mut().for_each(|nodes| nodes.sort_unstable());
            Packing::Found(hosts)
        }
    }
}

/// The nodes that matter, equal ones one after another: those that the fewest kinds may have first, the fullest first
/// among them. Amounts beyond all that is asked are as good as that.
fn relevant(kinds: &[Kind], order: &[usize], mut bins: Vec<Bin>) -> Vec<Bin> {
    let total = |of: fn(&Kind) -> u32| {
        kinds.iter().fold(0u64, |sum, kind| sum.saturating_add(u64::from(of(kind)) * u64::from(kind.wanted)))
    };
    let (cpu, memory) = (total(|kind| kind.cpu_milli), total(|kind| kind.memory_mib));
    for bin in &mut bins {
        let open = order.iter().enumerate().filter(|&(_, kind)| bin.open >> kind & 1 == 1);
        bin.open = open.fold(0, |open, (place, _)| open | 1 << place);
        (bin.cpu_milli, bin.memory_mib) = (bin.cpu_milli.min(cpu), bin.memory_mib.min(memory));
    }
    bins.retain(|bin| bin.open != 0);
    let class = |bin: &Bin| (bin.open.count_ones(), bin.open, bin.gpus, bin.cpu_milli, bin.memory_mib);
    bins.sort_unstable_by_key(|bin| (class(bin), bin.node));
    // Of equal ones no more are of use than there are instances.
    let wanted = kinds.iter().map(|kind| u64::from(kind.wanted)).sum::<u64>();
    let (mut last, mut alike) = (None, 0u64);
    bins.retain(|bin| {
        alike = if last == Some(class(bin)) { alike + 1 } else { 1 };
        last = Some(class(bin));
        alike <= wanted
    });
    bins
}

/// What nodes from some level on can take at most.
#[derive(Clone, Debug)]
struct Bounds {
    /// Of each kind alone.
    room: Vec<u64>,
    /// Of parts of each of the sizes: an instance of g GPUs takes ⌊g/s⌋ parts of s, and a node with f free has ⌊f/s⌋.
    parts: Vec<u64>,
    cpu_milli: u64,
    memory_mib: u64,
}

struct Search<'a> {
    kinds: &'a [Kind],
    bins: &'a [Bin],
    /// 1, and the GPUs of each kind that asks any.
    sizes: Vec<u8>,
    /// From each level on; a level is the number of nodes that are settled.
    bounds: Vec<Bounds>,
    level: usize,
    /// How many of each kind go to each node, node after node.
    chosen: Vec<u32>,
    /// How many of each kind are still to be placed at each level.
    left: Vec<u32>,
    dead_ends: FxHashSet<(u32, Box<[u32]>)>,
}

impl<'a> Search<'a> {
    fn new(kinds: &'a [Kind], bins: &'a [Bin]) -> Self {
        let mut sizes: Vec<u8> = kinds.iter().map(|kind| kind.gpus).filter(|&gpus| gpus > 0).chain([1]).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let none = Bounds { room: vec![0; kinds.len()], parts: vec![0; sizes.len()], cpu_milli: 0, memory_mib: 0 };
        let mut bounds = vec![none];
        for bin in bins.iter().rev() {
            let mut more = bounds[bounds.len() - 1].clone();
            for (place, kind) in kinds.iter().enumerate() {
                more.room[place] += room(kind, place, bin);
            }
            for (parts, &size) in more.parts.iter_mut().zip(&sizes) {
                let large = kinds.iter().enumerate().any(|(at, kind)| bin.open >> at & 1 == 1 && kind.gpus >= size);
                *parts += if large { u64::from(bin.gpus / size) } else { 0 };
            }
            more.cpu_milli = more.cpu_milli.saturating_add(bin.cpu_milli);
            more.memory_mib = more.memory_mib.saturating_add(bin.memory_mib);
            bounds.push(more);
        }
        bounds.reverse();
        let width = kinds.len();
        let mut left = vec![0; (bins.len() + 1) * width];
        left.iter_mut().zip(kinds).for_each(|(left, kind)| *left = kind.wanted);
        let chosen = vec![0; bins.len() * width];
        Self { kinds, bins, sizes, bounds, level: 0, chosen, left, dead_ends: FxHashSet::default() }
    }

    /// Whether there is a packing; `None` if the steps did not suffice. If there is, `chosen` has it up to `level`.
    fn run(&mut self, steps: &mut u32) -> Option<bool> {
        loop {
            *steps = steps.checked_sub(1)?;
            if self.left_here().iter().all(|&n| n == 0) {
                return Some(true);
            }
            if self.is_dead() {
                // Back to the last node with another choice.
                loop {
                    let Some(level) = self.level.checked_sub(1) else { return Some(false) };
                    self.level = level;
                    if self.choose_next(steps)? {
                        break;
                    }
                    self.dead_ends.insert((level as u32, self.left_here().into()));
                }
            } else {
                self.chosen[self.level * self.kinds.len()..][..self.kinds.len()].fill(0);
                self.fill_from(0);
            }
            self.descend();
        }
    }

    fn left_here(&self) -> &[u32] {
        &self.left[self.level * self.kinds.len()..][..self.kinds.len()]
    }

    /// Whether what is left cannot be placed on the nodes that are left.
    fn is_dead(&self) -> bool {
        let (left, bounds) = (self.left_here(), &self.bounds[self.level]);
        let counted = || self.kinds.iter().zip(left).map(|(kind, &n)| (kind, u64::from(n)));
        let sum = |of: &dyn Fn(&Kind) -> u64| counted().fold(0u64, |sum, (kind, n)| sum.saturating_add(of(kind) * n));
        self.level == self.bins.len()
            || counted().zip(&bounds.room).any(|((_, n), &room)| n > room)
            || self
                .sizes
                .iter()
                .zip(&bounds.parts)
                .any(|(&size, &parts)| sum(&|kind| (kind.gpus / size).into()) > parts)
            || sum(&|kind| kind.cpu_milli.into()) > bounds.cpu_milli
            || sum(&|kind| kind.memory_mib.into()) > bounds.memory_mib
            || self.dead_ends.contains(&(self.level as u32, left.into()))
    }

    /// Goes on to the next node with what was chosen for this one.
    fn descend(&mut self) {
        let width = self.kinds.len();
        let (here, next) = self.left[self.level * width..].split_at_mut(width);
        let chosen = &self.chosen[self.level * width..][..width];
        for ((next, here), chosen) in next.iter_mut().zip(here).zip(chosen) {
            *next = *here - chosen;
        }
        self.level += 1;
    }

    /// What this node has left beside what is chosen for it.
    fn rest(&self) -> Bin {
        let mut rest = self.bins[self.level];
        for (kind, &n) in self.kinds.iter().zip(&self.chosen[self.level * self.kinds.len()..]) {
            rest.gpus -= (u32::from(kind.gpus) * n) as u8;
            rest.cpu_milli -= u64::from(kind.cpu_milli) * u64::from(n);
            rest.memory_mib -= u64::from(kind.memory_mib) * u64::from(n);
        }
        rest
    }

    /// Puts as many as go of each kind from this one on.
    fn fill_from(&mut self, first: usize) {
        let mut rest = self.rest();
        let width = self.kinds.len();
        for place in first..width {
            let kind = self.kinds[place];
            let n = room(&Kind { wanted: self.left_here()[place], ..kind }, place, &rest) as u32;
            self.chosen[self.level * width + place] = n;
            rest.gpus -= (u32::from(kind.gpus) * n) as u8;
            rest.cpu_milli -= u64::from(kind.cpu_milli) * u64::from(n);
            rest.memory_mib -= u64::from(kind.memory_mib) * u64::from(n);
        }
    }

    /// The next full content of this node, in falling order. False after the last; `None` if the steps are used up.
    fn choose_next(&mut self, steps: &mut u32) -> Option<bool> {
        let width = self.kinds.len();
        loop {
            *steps = steps.checked_sub(1)?;
            let here = &mut self.chosen[self.level * width..][..width];
            // Of the last kind nothing but the most is full.
            let Some(place) = here[..width - 1].iter().rposition(|&n| n > 0) else { return Some(false) };
            here[place] -= 1;
            here[place + 1..].fill(0);
            self.fill_from(place + 1);
            let (rest, here) = (self.rest(), &self.chosen[self.level * width..]);
            let full = (0..=place).all(|place| {
                let wanted = self.left_here()[place] - here[place];
                room(&Kind { wanted, ..self.kinds[place] }, place, &rest) == 0
            });
            if full {
                return Some(true);
            }
        }
    }
}

/// How many instances of a kind a node can take, no more than are wanted.
fn room(kind: &Kind, place: usize, bin: &Bin) -> u64 {
    if bin.open >> place & 1 == 0 {
        return 0;
    }
    let by = |have: u64, each: u64| have.checked_div(each).unwrap_or(u64::MAX);
    u64::from(kind.wanted)
        .min(by(bin.gpus.into(), kind.gpus.into()))
        .min(by(bin.cpu_milli, kind.cpu_milli.into()))
        .min(by(bin.memory_mib, kind.memory_mib.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By definition: each instance on each node, one after the other.
    fn fits(kinds: &[Kind], bins: &mut [Bin]) -> bool {
        let Some(place) = kinds.iter().position(|kind| kind.wanted > 0) else { return true };
        let mut rest = kinds.to_vec();
        rest[place].wanted -= 1;
        let Kind { gpus, cpu_milli, memory_mib, .. } = kinds[place];
        (0..bins.len()).any(|at| {
            let bin = bins[at];
            if room(&kinds[place], place, &bin) == 0 {
                return false;
            }
            bins[at].gpus -= gpus;
            bins[at].cpu_milli -= u64::from(cpu_milli);
            bins[at].memory_mib -= u64::from(memory_mib);
            let fits = fits(&rest, bins);
            bins[at] = bin;
            fits
        })
    }

    fn small() -> impl Strategy<Value = (Vec<Kind>, Vec<Bin>)> {
        let kind = (0u8..=4, 0u32..4, 0u32..3, 1u32..=3).prop_map(|(gpus, cpu_milli, memory_mib, wanted)| Kind {
            gpus,
            cpu_milli,
            memory_mib,
            wanted,
        });
        let bin = (0u8..=5, 0u64..8, 0u64..6, 0u32..8).prop_map(|(gpus, cpu_milli, memory_mib, open)| Bin {
            node: NodeId(0),
            gpus,
            cpu_milli,
            memory_mib,
            open,
        });
        (prop::collection::vec(kind, 1..=3), prop::collection::vec(bin, 0..5))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn it_finds_what_there_is((kinds, mut bins) in small()) {
            for (number, bin) in bins.iter_mut().enumerate() {
                bin.node = NodeId(number as u32);
            }
            match pack(&kinds, bins.clone(), &mut 100_000) {
                Packing::Unknown => prop_assert!(false, "so few steps are enough"),
                Packing::Impossible => prop_assert!(!fits(&kinds, &mut bins)),
                Packing::Found(hosts) => {
                    for (place, (kind, nodes)) in kinds.iter().zip(&hosts).enumerate() {
                        prop_assert_eq!(nodes.len(), kind.wanted as usize);
                        for node in nodes {
                            let bin = &mut bins[node.index()];
                            prop_assert!(room(kind, place, bin) > 0);
                            bin.gpus -= kind.gpus;
                            bin.cpu_milli -= u64::from(kind.cpu_milli);
                            bin.memory_mib -= u64::from(kind.memory_mib);
                        }
                    }
                }
            }
        }
    }

    fn whole(gpus: u8, wanted: u32) -> Kind {
        Kind { gpus, cpu_milli: 0, memory_mib: 0, wanted }
    }

    fn bins(free: &[(u8, u32)]) -> Vec<Bin> {
        let all = free.iter().flat_map(|&(gpus, n)| std::iter::repeat_n(gpus, n as usize));
        let bin = |(number, gpus)| Bin {
            node: NodeId(number),
            gpus,
            cpu_milli: u64::MAX,
            memory_mib: u64::MAX,
            open: u32::MAX,
        };
        (0u32..).zip(all).map(bin).collect()
    }

    #[test]
    fn bounds_settle_large_questions_at_once() {
        // Of 10,000 nodes with 4 free GPUs, 5 of 8 and 20 of 3: 4's take what 3's do.
        let nodes = || bins(&[(4, 10_000)]);
        let mut steps = 1;
        assert_eq!(pack(&[whole(4, 9000), whole(3, 1001)], nodes(), &mut steps), Packing::Impossible);
        let mut steps = 20_000;
        let found = pack(&[whole(4, 9000), whole(3, 1000), whole(1, 1000)], nodes(), &mut steps);
        assert!(matches!(found, Packing::Found(hosts) if hosts[0].len() == 9000 && hosts[2].len() == 1000));
    }

    #[test]
    fn what_takes_too_long_is_not_known() {
        // 6 = 3 + 3, 5 = 3 + 2 and no remainder anywhere: many ways that are one.
        let kinds = [whole(3, 40), whole(2, 41)];
        let nodes = || bins(&[(7, 20), (5, 13)]);
        assert_eq!(pack(&kinds, nodes(), &mut 10), Packing::Unknown);
        assert_ne!(pack(&kinds, nodes(), &mut 100_000), Packing::Unknown);
        let many: Vec<Kind> = (0..17).map(|_| whole(1, 1)).collect();
        assert_eq!(pack(&many, nodes(), &mut 100_000), Packing::Unknown);
    }
}
