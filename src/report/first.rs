//! The first decisions on a queue, a line each, for people.

use super::asks::{asks, refusal_text};
use super::number::grouped;
use super::table::{Align, Rows};
use crate::cluster::{Cluster, GpuMask, gpu_indices};
use crate::decide::{Decision, Status, Why};

/// Decisions that the table shows.
const SHOWN: usize = 10;

/// Characters of the places of one job, after which the rest is only counted.
const WIDTH: usize = 32;

/// The first decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FirstDecisions {
    rows: Vec<[String; 5]>,
}

impl FirstDecisions {
    /// Keeps one decision more, if it is among the first.
    pub(super) fn add(&mut self, cluster: &Cluster, decision: &Decision) {
        if self.rows.len() >= SHOWN {
            return;
        }
        let job = decision.job;
        let (status, place) = match decision.status {
            Status::Placed => ("placed", places(cluster, decision)),
            Status::Blocked(why) => ("blocked", refusal_text(explained(why), decision.proven)),
            Status::Removed => ("removed", String::new()),
            Status::Absent => ("absent", "had been blocked".to_owned()),
        };
        let moves = match decision.migrations.len() {
            0 => String::new(),
            n => grouped(n as u64),
        };
        let (name, asks) = (cluster.whole_job_name(job), asks(cluster, job));
        self.rows.push([name.to_owned(), asks, status.to_owned(), moves, place]);
    }

    /// The table, with the number of all decisions; nothing without any.
    pub(super) fn table(&self, all: u64) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let (left, right) = (|name| (name, Align::Left), |name| (name, Align::Right));
        let columns = [left("JOB"), right("ASKS"), left("DECISION"), right("MOVES"), left("WHERE, OR WHY NOT")];
        let mut table = Rows::new(&columns);
        self.rows.iter().for_each(|row| table.push(row.clone()));
        let more = all - self.rows.len() as u64;
        let more = if more > 0 { format!("and {} more\n", grouped(more)) } else { String::new() };
        format!("{}{more}", table.text())
    }
}

/// A reason in a few words.
pub(super) fn explained(why: Why) -> &'static str {
    match why {
        Why::Capacity => "capacity: too few usable GPUs are free",
        Why::Fragmentation => "fragmentation: enough are free, not together",
        Why::Constraint => "constraint: CPU, memory, model or topology",
        Why::Space => "space: only outside Σ or with more moves",
    }
}

/// Where the instances are, as in `n1[0-3] n2[0-2,5]`; as many as fit, and the number of the rest.
fn places(cluster: &Cluster, decision: &Decision) -> String {
    let mut text = String::new();
    let mut width = 0;
    for (shown, &(node, gpus)) in decision.placements.iter().enumerate() {
        let place = format!("{}{}", cluster.node_name(node), devices(gpus));
        width += place.chars().count() + 1;
        if shown > 0 && width > WIDTH {
            return format!("{text} and {} more", grouped((decision.placements.len() - shown) as u64));
        }
        if shown > 0 {
            text.push(' ');
        }
        text += &place;
    }
    text
}

/// Devices as ranges in brackets; nothing for none.
pub(super) fn devices(gpus: GpuMask) -> String {
    let mut ranges: Vec<(u8, u8)> = Vec::new();
    for gpu in gpu_indices(gpus) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == gpu => *last = gpu,
            _ => ranges.push((gpu, gpu)),
        }
    }
    let range = |&(first, last): &(u8, u8)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    let ranges: Vec<String> = ranges.iter().map(range).collect();
    if ranges.is_empty() { String::new() } else { format!("[{}]", ranges.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_ranges() {
        assert_eq!(devices(0), "");
        assert_eq!(devices(0b1), "[0]");
        assert_eq!(devices(0b1111_0110_0001_0111), "[0-2,4,9,10,12-15]");
    }

    #[test]
    fn every_reason_begins_with_its_name_and_fits_on_a_line() {
        for why in [Why::Capacity, Why::Fragmentation, Why::Constraint, Why::Space] {
            assert!(explained(why).starts_with(why.name()) && explained(why).len() < 46);
        }
    }
}
