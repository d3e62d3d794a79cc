//! What must leave for guests to fit, wherever it goes: a bound that needs no program.

use super::layout::{GUEST, Item, Layout, UNBOUND};

impl Layout {
    /// What must leave a node of a class for 0, 1, … guests to fit.
    pub(super) fn host_costs(&self, number: u32, count: i64) -> Vec<i64> {
        let class = &self.classes[number as usize];
        if !self.admits(class.kind, &class.homes, GUEST) {
            return vec![0];
        }
        host_costs(self, (class.free, class.cpu, class.memory), class.whole, &class.movers, count)
    }
}

/// More ways for instances to leave a node than this are not looked at one by one.
const MOST_WAYS: u64 = 1 << 16;

/// GPUs, CPU and memory.
type Amounts = (u8, i64, i64);

/// Whether there are very many multisets that may leave.
pub(super) fn has_too_many_ways(movers: &[(u16, u16)]) -> bool {
    let ways = movers.iter().try_fold(1u64, |ways, &(_, n)| ways.checked_mul(u64::from(n) + 1));
    ways.is_none_or(|ways| ways > MOST_WAYS)
}

/// What is free once `n` of an item have left besides.
fn with_left((gpus, cpu, memory): Amounts, item: &Item, n: u16) -> Amounts {
    let add = |amount: i64, each: i64| if amount == UNBOUND { UNBOUND } else { amount + each * i64::from(n) };
    (gpus + item.gpus * n as u8, add(cpu, item.cpu), add(memory, item.memory))
}

/// How many guests fit, `count` at most.
fn guests_in(guest: &Item, (gpus, cpu, memory): Amounts, count: i64) -> usize {
    let by = |free: i64, each: i64| if each == 0 || free == UNBOUND { i64::MAX } else { free.max(0) / each };
    let most = by(i64::from(gpus), i64::from(guest.gpus)).min(by(cpu, guest.cpu)).min(by(memory, guest.memory));
    most.min(count) as usize
}

/// How many guests fit on a node with so much room while nothing leaves it.
pub(super) fn hosted(layout: &Layout, room: Amounts, whole: bool, movers: &[(u16, u16)], count: i64) -> usize {
    let guest = &layout.items[GUEST];
    if guest.whole {
        let is_clear = movers.iter().all(|&(item, _)| layout.items[usize::from(item)].gpus == 0);
        return usize::from(whole && is_clear && count > 0);
    }
    guests_in(guest, room, count)
}

/// What must leave a node with so much room for 0, 1, … guests to fit, the cheapest way; as many as can fit at all.
pub(super) fn host_costs(layout: &Layout, room: Amounts, whole: bool, movers: &[(u16, u16)], count: i64) -> Vec<i64> {
    let guest = &layout.items[GUEST];
    if guest.whole {
        let all = movers.iter().filter(|&&(item, _)| layout.items[usize::from(item)].gpus > 0);
        let cost = all.map(|&(item, n)| layout.items[usize::from(item)].cost * i64::from(n)).sum();
        return if whole { vec![0, cost] } else { vec![0] };
    }
    if has_too_many_ways(movers) {
        // Nothing is known but what fits if all of them leave.
        let most = movers.iter().fold(room, |room, &(item, n)| with_left(room, &layout.items[usize::from(item)], n));
        return vec![0; guests_in(guest, most, count) + 1];
    }
    let mut costs = Vec::new();
    // All multisets that may leave, counted like a number.
    let mut leave = vec![0u16; movers.len()];
    loop {
        let mut left = room;
        let mut cost = 0;
        for (&(item, _), &n) in movers.iter().zip(&leave) {
            let item = &layout.items[usize::from(item)];
            left = with_left(left, item, n);
            cost += item.cost * i64::from(n);
        }
        let fit = guests_in(guest, left, count);
        if costs.len() <= fit {
            costs.resize(fit + 1, i64::MAX);
        }
        costs[..=fit].iter_mut().for_each(|known| *known = cost.min(*known));
        let Some(digit) = leave.iter().zip(movers).position(|(&n, &(_, most))| n < most) else { return costs };
        leave[..digit].fill(0);
        leave[digit] += 1;
    }
}

/// The least sum with which nodes of these costs host `count` guests together; `None` if they cannot.
pub(super) fn cheapest<'c>(costs: impl Iterator<Item = &'c [i64]>, count: usize) -> Option<i64> {
    let mut least = vec![None; count + 1];
    least[0] = Some(0i64);
    for costs in costs {
        for hosted in (1..=count).rev() {
            for (more, cost) in costs.iter().enumerate().skip(1) {
                let before: Option<i64> = least[hosted.saturating_sub(more)];
                if let Some(sum) = before.map(|before| before.saturating_add(*cost))
                    && least[hosted].is_none_or(|known| sum < known)
                {
                    least[hosted] = Some(sum);
                }
            }
        }
    }
    least[count]
}
