//! Generic resources as Slurm writes them: `gpu:h100:8(S:0-1)`, `gpu:h100:3(IDX:0-1,7),shard:8(3/5,5/5,0/5,0/5)`.

use crate::cluster::{GpuMask, MAX_GPUS};

use super::hostlist::split_outside;

/// The GPUs of a list of generic resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gres {
    /// Whole GPUs of each type, in the order of the list; the type is empty where none is stated. Also types of which
    /// there are none.
    pub(super) types: Vec<(String, u64)>,
    /// The indices of those that are held; `None` where a GPU is held without one.
    pub(super) devices: Option<GpuMask>,
    /// Shards of GPUs, configured or held.
    pub(super) shards: u64,
    /// The devices of which shards are held; empty where the list does not say.
    pub(super) sharded: GpuMask,
}

impl Gres {
    /// Reads a list. It is written by a program, and cut where it is long: what is not understood is not there.
    pub(super) fn read(list: &str) -> Self {
        let mut gres = Self { devices: Some(0), ..Self::default() };
        for item in split_outside(list) {
            let (head, inside) = match item.split_once('(') {
                Some((head, inside)) => (head, inside.split(')').next().unwrap_or("")),
                None => (item, ""),
            };
            let (name, kind, count) = name_kind_count(head.trim());
            let count = inside.strip_prefix("CNT:").and_then(|count| count.parse().ok()).or(count).unwrap_or(1);
            match name {
                "gpu" => gres.add(kind, count, inside),
                "shard" | "mps" => {
                    gres.shards = gres.shards.saturating_add(count);
                    gres.sharded |= sharded(inside);
                }
                _ => {}
            }
        }
        gres
    }

    fn add(&mut self, kind: &str, count: u64, inside: &str) {
        self.types.push((kind.to_owned(), count));
        if count == 0 {
            return;
        }
        let listed =
            inside.strip_prefix("IDX:").and_then(indices).filter(|listed| u64::from(listed.count_ones()) == count);
        self.devices = self.devices.zip(listed).map(|(devices, listed)| devices | listed);
    }

    /// Whole GPUs of all types.
    pub(super) fn gpus(&self) -> u64 {
        self.types.iter().fold(0, |sum, &(_, count)| sum.saturating_add(count))
    }

    /// The types of which there are any.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.types.iter().filter(|&&(_, count)| count > 0).map(|(kind, _)| kind.as_str())
    }
}

/// The parts of `name[:type][:count]`. A type may be a number too, such as 4090.
fn name_kind_count(item: &str) -> (&str, &str, Option<u64>) {
    let (name, rest) = item.split_once([':', '=']).unwrap_or((item, ""));
    match rest.rsplit_once([':', '=']) {
        Some((kind, count)) => (name, kind, count.parse().ok()),
        None => match rest.parse() {
            Ok(count) => (name, "", Some(count)),
            Err(_) => (name, rest, None),
        },
    }
}

/// The set that a list such as `0-3,7` names.
fn indices(list: &str) -> Option<GpuMask> {
    let mut mask = 0;
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.trim().parse::<usize>().ok()?, last.trim().parse::<usize>().ok()?);
        if last >= MAX_GPUS {
            return None;
        }
        (first..=last).for_each(|index| mask |= 1 << index);
    }
    Some(mask)
}

/// The devices of which a list such as `3/5,0/5` says that shards are held.
fn sharded(list: &str) -> GpuMask {
    let held =
        |part: &str| part.split('/').next().and_then(|held| held.parse::<u64>().ok()).is_some_and(|held| held > 0);
    let parts = list.split(',').take(MAX_GPUS).enumerate();
    parts.filter(|&(_, part)| part.contains('/') && held(part)).fold(0, |mask, (index, _)| mask | 1 << index)
}

/// A GPU that is a slice of one, by its type: `1g.5gb`, `a100_3g.20gb`.
pub(super) fn is_slice(kind: &str) -> bool {
    let profile = kind.rsplit('_').next().unwrap_or("");
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    profile
        .split_once("g.")
        .is_some_and(|(slices, memory)| number(slices) && memory.split("gb").next().is_some_and(number))
}

/// What a request such as `gres/gpu:h100:4`, `gres:gpu:4` or `cpu=1,gres/gpu=1` asks of GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Whole GPUs.
    pub(super) gpus: u64,
    /// Of these types; empty for any.
    pub(super) kinds: Vec<String>,
    /// It asks for shards.
    pub(super) shares: bool,
}

impl Asked {
    /// Reads a request.
    pub(super) fn read(text: &str) -> Self {
        let mut asked = Self::default();
        for item in text.split(',') {
            let Some(item) = item.trim().strip_prefix("gres").and_then(|item| item.strip_prefix(['/', ':'])) else {
                continue;
            };
            let (name, kind, count) = name_kind_count(item);
            let count = count.unwrap_or(1);
            match name {
                "gpu" if count > 0 => {
                    asked.gpus = asked.gpus.saturating_add(count);
                    if !kind.is_empty() {
                        asked.kinds.push(kind.to_owned());
                    }
                }
                "shard" | "mps" => asked.shares |= count > 0,
                _ => {}
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_read() {
        let of = |list: &str| {
            let gres = Gres::read(list);
            (gres.gpus(), gres.devices, gres.shards, gres.sharded)
        };
        assert_eq!(of("gpu:h100:8(S:0-1)"), (8, None, 0, 0));
        assert_eq!(of("gpu:h100:5(IDX:0-2,4-5)"), (5, Some(0b11_0111), 0, 0));
        assert_eq!(of("gpu:h100:0(IDX:N/A)"), (0, Some(0), 0, 0));
        assert_eq!(of("gpu:a100:2(IDX:0-1),gpu:v100:0(IDX:)"), (2, Some(0b11), 0, 0));
        assert_eq!(of("gpu:a100:1(IDX:1),gpu:v100:1(IDX:3)"), (2, Some(0b1010), 0, 0));
        assert_eq!(of("gpu:a100:1(IDX:2),shard:a100:8(3/5,5/5,0/5,0/5)"), (1, Some(0b100), 8, 0b11));
        assert_eq!(of("gpu:1(IDX:0),shard:8(-/5,5/5,3/5,0/5)"), (1, Some(1), 8, 0b110));
        assert_eq!(of("gpu:1,shard:0"), (1, None, 0, 0));
        assert_eq!(of("gpu(CNT:3)"), (3, None, 0, 0));
        assert_eq!(of("craynetwork:4,gpu:2(IDX:0,16)"), (2, None, 0, 0));
        for nothing in ["", "(null)", "N/A", "tmpdisk:500G"] {
            assert_eq!(of(nothing), (0, Some(0), 0, 0), "{nothing}");
        }
        // Cut where a buffer ended, or not what it counts.
        for unsure in ["gpu:a:9(IDX:0-3,", "gpu:a:2(IDX:0-3)", "gpu:2(IDX:x)", "gpu:2(IDX:3-1)"] {
            assert_eq!(Gres::read(unsure).devices, None, "{unsure}");
        }
        assert_eq!(Gres::read("gpu:a100:2,gpu:v100:0,gpu:1").kinds().collect::<Vec<_>>(), ["a100", ""]);
    }

    #[test]
    fn what_is_asked_is_read() {
        let of = |text: &str| {
            let asked = Asked::read(text);
            (asked.gpus, asked.kinds.join(" "), asked.shares)
        };
        assert_eq!(of("gres/gpu:h100:4"), (4, "h100".to_owned(), false));
        assert_eq!(of("gres:gpu:4"), (4, String::new(), false));
        assert_eq!(of("gres:gpu"), (1, String::new(), false));
        assert_eq!(of("cpu=1,gres/gpu=2"), (2, String::new(), false));
        assert_eq!(of("gres/gpu:a100=3,gres/gpu:v100=1"), (4, "a100 v100".to_owned(), false));
        assert_eq!(of("gres/shard:3"), (0, String::new(), true));
        assert_eq!(of("gres/gpu:4090:2"), (2, "4090".to_owned(), false));
        assert_eq!(of("cpu=1"), (0, String::new(), false));
    }

    #[test]
    fn slices_are_told_from_gpus() {
        for (kind, slice) in
            [("1g.5gb", true), ("a100_3g.20gb", true), ("1g.10gb+me", true), ("h100", false), ("", false)]
        {
            assert_eq!(is_slice(kind), slice, "{kind}");
        }
    }
}
