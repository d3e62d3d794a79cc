//! Trackable resources as Slurm writes them.

use std::str::FromStr;

use super::gather::is_missing;

/// Trackable resources, such as `billing=64,cpu=64,gres/gpu:h100=8,gres/gpu=8,mem=500G,node=1`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tres<'a> {
    pub(super) is_empty: bool,
    /// GPUs whatever their type.
    total: Option<u64>,
    /// GPUs of each type, in the order of the text.
    pub(super) types: Vec<(&'a str, u64)>,
    /// Shards and other shares of GPUs.
    pub(super) shares: u64,
    pub(super) cpu_milli: u64,
    pub(super) memory_mib: u64,
}

impl<'a> Tres<'a> {
    /// Reads the list; kinds that are none of our business are skipped.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let mut tres = Self { is_empty: is_missing(text), ..Self::default() };
        if tres.is_empty {
            return Ok(tres);
        }
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let (kind, amount) = item.split_once('=').ok_or_else(|| format!("found {item:?}, expected KIND=AMOUNT"))?;
            let count = || number::<u64>(item, amount).and_then(|count| in_range(item, count, 1 << 53));
            match kind {
                "cpu" => tres.cpu_milli = in_range(item, count()?, 1 << 40)? * 1000,
                "mem" => tres.memory_mib = mebibytes(item, amount)?,
                "gres/gpu" => tres.total = Some(count()?),
                "gres/shard" | "gres/mps" => tres.shares = tres.shares.saturating_add(count()?),
                _ => {
                    if let Some(model) = kind.strip_prefix("gres/gpu:") {
                        let count = count()?;
                        if count > 0 {
                            tres.types.push((model, count));
                        }
                    } else if kind.starts_with("gres/shard:") || kind.starts_with("gres/mps:") {
                        tres.shares = tres.shares.saturating_add(count()?);
                    }
                }
            }
        }
        Ok(tres)
    }

    pub(super) fn gpus(&self) -> u64 {
        let sum = || self.types.iter().fold(0u64, |sum, &(_, count)| sum.saturating_add(count));
        self.total.unwrap_or_else(sum)
    }
}

fn number<T: FromStr>(item: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("found {item:?}, expected a number behind ="))
}

fn in_range(item: &str, count: u64, most: u64) -> Result<u64, String> {
    if count <= most { Ok(count) } else { Err(format!("found {item:?}, expected at most {most}")) }
}

/// MiB of a text such as `500G`, `1.50T` or `4096M`, rounded up; without a letter it is MiB already.
fn mebibytes(item: &str, text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, unit)) if unit.is_ascii_alphabetic() => (&text[..at], unit),
        _ => (text, 'M'),
    };
    let amount: f64 = number(item, digits)?;
    let mib = match unit {
        'K' => amount / 1024.0,
        'M' => amount,
        'G' => amount * 1024.0,
        'T' => amount * 1024.0 * 1024.0,
        'P' => amount * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("found {item:?}, expected a unit of K, M, G, T or P")),
    };
    if (0.0..=(1u64 << 53) as f64).contains(&mib) {
        Ok(mib.ceil() as u64)
    } else {
        Err(format!("found {item:?}, expected an amount of memory"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_read() {
        let read = |text| Tres::read(text).unwrap();
        let tres = read("billing=64,cpu=64,gres/gpu:h100=8,gres/gpu=8,mem=500G,node=1");
        assert_eq!((tres.gpus(), tres.cpu_milli, tres.memory_mib), (8, 64_000, 512_000));
        assert_eq!(tres.types, [("h100", 8)]);
        assert_eq!(read("gres/gpu:a100=3,gres/gpu:v100=1").gpus(), 4);
        assert_eq!(read("gres/gpu=2").gpus(), 2);
        assert_eq!((read("cpu=1,gres/shard=4").gpus(), read("gres/shard:t4=4,gres/mps=1").shares), (0, 5));
        for (text, mib) in [("1.50T", 1_572_864), ("4096M", 4096), ("1K", 1), ("7", 7), ("0", 0)] {
            assert_eq!(mebibytes("", text), Ok(mib), "{text}");
        }
        assert!(read("").is_empty && read("Unknown").is_empty);
        for bad in
            ["cpu", "cpu=x", "mem=5X", "mem=", "mem=-1G", "mem=NaNG", "gres/gpu=-1", "cpu=99999999999999", "mem=é"]
        {
            let error = Tres::read(bad).unwrap_err();
            assert!(error.starts_with(&format!("found {bad:?}, expected")), "{error}");
        }
    }
}
