//! What may be written after `sweep` and `merge`.

use std::collections::BTreeSet;

use clap::Args as ClapArgs;

use super::{ReplayArgs, help, integer};
use crate::simulate::{Shard, Share};

/// The most numbers of a list.
const LONGEST: u64 = 1_000_000;

/// `sweep`.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct SweepArgs {
    #[command(flatten)]
    pub(in super::super) replay: ReplayArgs,
    /// As many 8-GPU nodes as hold the demand of each window for this share of its time [default: 0.90]
    #[arg(long, value_name = "SHARE,…", value_delimiter = ',', group = "size")]
    pub(in super::super) eta: Vec<Share>,
    /// This many 8-GPU nodes
    #[arg(long, value_name = "N,…", value_delimiter = ',', group = "size", value_parser = integer::<u64>(1..=help::MOST / 8))]
    pub(in super::super) nodes: Vec<u64>,
    /// A run for each of these days of the trace, from 0: all, or numbers and ranges A..B, B excluded [default: one run
    /// of the whole trace]
    #[arg(long, value_name = "LIST", value_parser = days)]
    pub(in super::super) days: Option<Days>,
    /// Seconds for which a running job pauses when an event moves it; numbers and ranges
    #[arg(long, value_name = "LIST", default_value = "8", value_parser = costs)]
    pub(in super::super) move_cost: Numbers,
    /// The seeds of the policy `random`; numbers and ranges
    #[arg(long, value_name = "LIST", default_value = "0", value_parser = numbers)]
    pub(in super::super) seed: Numbers,
    /// Play part I of N alone, from 1: every N-th cell
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = shard)]
    pub(in super::super) shard: Shard,
    /// Go on with what an earlier run of the same sweep left in --out or its .partial
    #[arg(long)]
    pub(in super::super) resume: bool,
}

/// `merge`.
#[derive(Debug, ClapArgs)]
pub(in super::super) struct MergeArgs {
    /// Files that sweep wrote, also unfinished ones; - for standard input
    #[arg(value_name = "FILE", required = true)]
    pub(in super::super) files: Vec<String>,
    /// Merge what is there, also if cells are missing
    #[arg(long)]
    pub(in super::super) partial: bool,
}

/// Days of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Days {
    /// From the first to the last on which a job is submitted.
    All,
    /// These.
    These(Vec<u32>),
}

/// Numbers, each once, in the order in which they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Numbers(pub(in super::super) Vec<u64>);

fn days(text: &str) -> Result<Days, String> {
    if text == "all" {
        return Ok(Days::All);
    }
    let Numbers(days) = numbers_up_to(text, u64::from(u32::MAX)).map_err(|error| format!("{error}, or all"))?;
    Ok(Days::These(days.into_iter().map(|day| day as u32).collect()))
}

fn costs(text: &str) -> Result<Numbers, String> {
    numbers_up_to(text, 1 << 32)
}

fn numbers(text: &str) -> Result<Numbers, String> {
    numbers_up_to(text, u64::MAX)
}

/// Numbers and ranges `A..B`, B excluded, with commas between them.
fn numbers_up_to(text: &str, most: u64) -> Result<Numbers, String> {
    let wrong = |item: &str, expected: &str| format!("found {item:?}, expected {expected}");
    let mut numbers = Vec::new();
    let mut seen = BTreeSet::new();
    for item in text.split(',') {
        let number = |text: &str| text.parse::<u64>().ok().filter(|&n| n <= most);
        let range = match item.split_once("..") {
            None => number(item).map(|n| (n, n)),
            Some((from, to)) => {
                number(from).zip(number(to)).filter(|(from, to)| from < to).map(|(from, to)| (from, to - 1))
            }
        };
        let (from, to) = range.ok_or_else(|| {
            wrong(item, &format!("integers up to {most} and ranges A..B, A below B, with commas between them"))
        })?;
        if to - from >= LONGEST - seen.len() as u64 {
            return Err(wrong(item, &format!("at most {LONGEST} numbers")));
        }
        for n in from..=to {
            if !seen.insert(n) {
                return Err(wrong(item, &format!("{n} once")));
            }
            numbers.push(n);
        }
    }
    Ok(Numbers(numbers))
}

/// `I/N`, from 1.
fn shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
    let shard = parts.map(|(index, of)| Shard { index, of }).filter(|shard| (1..=shard.of).contains(&shard.index));
    shard.ok_or_else(|| "expected I/N, two integers, I from 1 to N".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_or_refused() {
        assert_eq!(numbers("3,5..8,0"), Ok(Numbers(vec![3, 5, 6, 7, 0])));
        assert_eq!(days("all"), Ok(Days::All));
        assert_eq!(days("0..3"), Ok(Days::These(vec![0, 1, 2])));
        assert_eq!(numbers("18446744073709551615"), Ok(Numbers(vec![u64::MAX])));
        for bad in ["", "1,", "2..2", "3..1", "1..", "..4", "x", "-1", "1,1", "0..4,3", "0..1000001", "1.5", "1...4"] {
            assert!(numbers(bad).unwrap_err().contains("expected"), "{bad}");
        }
        assert!(days("4294967296").is_err() && costs("4294967297").is_err());
    }

    #[test]
    fn shards_are_read_or_refused() {
        assert_eq!(shard("3/7"), Ok(Shard { index: 3, of: 7 }));
        for bad in ["", "1", "0/4", "5/4", "1/0", "a/b", "1/2/3"] {
            assert!(shard(bad).is_err(), "{bad}");
        }
    }
}
