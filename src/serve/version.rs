//! Which cluster a call is about.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A life of the service, from its start to its end: generations of another one say nothing about this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// One that no other process has, as far as chance goes.
    pub fn new() -> Self {
        // The keys of the standard library's hasher are random by process and by instance.
        Self(RandomState::new().build_hasher().finish())
    }
}

impl Default for Epoch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A state of the cluster: every change has its own. Written `EPOCH-GENERATION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    /// The life of the service.
    pub epoch: Epoch,
    /// Counts the changes in it.
    pub generation: u64,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.generation)
    }
}

/// A text that is no version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a version as the service gives them, 16 hexadecimal digits, a hyphen and a number")]
pub struct NoVersion;

impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let (epoch, generation) = text.split_once('-').ok_or(NoVersion)?;
        let is_hex = epoch.len() == 16 && epoch.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_number = generation == "0" || !generation.starts_with(['0', '+']);
        if !is_hex || !is_number {
            return Err(NoVersion);
        }
        let epoch = u64::from_str_radix(epoch, 16).map_err(|_| NoVersion)?;
        Ok(Self { epoch: Epoch(epoch), generation: generation.parse().map_err(|_| NoVersion)? })
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_written_and_read_alike() {
        for version in
            [Version { epoch: Epoch(7), generation: 0 }, Version { epoch: Epoch::new(), generation: u64::MAX }]
        {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        for bad in ["", "7", "0000000000000007-", "0000000000000007-01", "000000000000000G-1", "0000000000000007-+1"] {
            assert_eq!(bad.parse::<Version>(), Err(NoVersion), "{bad}");
        }
        assert_ne!(Epoch::new(), Epoch::new());
    }
}
